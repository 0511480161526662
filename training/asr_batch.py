"""``python -m training.asr_batch``: trains, exports and measures unison-asr-batch."""

import functools
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from training import batch_network, stream_network
from training.asr_card import asr_card, graph_entry
from training.asr_measure import measure_recogniser
from training.card import write_card
from training.command import Options, Steps, run_command
from training.ctc_training import FIND_WORDS, REFINE, ctc_objective
from training.examples import calibration_pcm
from training.export import Arrays as Tensors
from training.export import Graph, convert_float, convert_int8
from training.fbank import write_fbank
from training.filterbank import CONTEXT_SAMPLES, features
from training.layers import Mode
from training.recogniser_training import train_recogniser
from training.utterances import load_source
from training.weights import Arrays, Weights, fold_norms, load_weights

NAME = "unison-asr-batch"
_FRAMING = {
    "pad_multiple_samples": 4000,
    "frame_samples": 640,
    "context_samples": CONTEXT_SAMPLES,
    "delay_samples": 0,
}
_CALIBRATION_LENGTHS = (24000, 48000, 80000)
_CALIBRATION_EXAMPLES = 40


def _start(options: Options) -> Arrays:
    """Weights given, of this model or of the streaming one; or fresh ones."""
    if options.start is None:
        return batch_network.initialise(options.seed)
    arrays = load_weights(options.start)
    if f"block{stream_network.SIZE.blocks}/depthwise/kernel" in arrays:
        return arrays
    return batch_network.from_stream(arrays, options.seed)


def _network(weights: Weights, inputs: tf.Tensor, mode: Mode) -> tf.Tensor:
    return batch_network.network(weights, inputs, mode)


def train(options: Options) -> Arrays:
    """Trains from the weights given, or from nothing."""
    weight = REFINE if options.start else FIND_WORDS
    folders = (options.cache, options.shared)
    return train_recogniser(ctc_objective(_network, weight), _start(options), options.schedule, *folders, options.seed)


def _calibration(options: Options) -> Iterator[Tensors]:
    source = load_source(options.cache, options.shared)
    for length in _CALIBRATION_LENGTHS:
        for pcm in calibration_pcm(source, _CALIBRATION_EXAMPLES, length):
            yield {"features": features(np.pad(pcm, (CONTEXT_SAMPLES, 0))[None]).numpy()}


def export(options: Options, arrays: Arrays) -> None:
    """Writes the card and the graphs."""
    folded = fold_norms(arrays)
    graph = Graph(functools.partial(batch_network.utterance, folded), batch_network.utterance_inputs())
    write_fbank(options.output)
    (options.output / "encoder_float32.tflite").write_bytes(convert_float(graph))
    quantised = convert_int8(graph, _calibration(options))
    (options.output / "encoder_int8.tflite").write_bytes(quantised)
    encoder = graph_entry("encoder", ["features"], "log_probs", [])
    write_card(options.output, asr_card(NAME, "utterance_ctc", dict(_FRAMING), [encoder]))


def main(argv: list[str] | None = None) -> None:
    """The command."""
    run_command(NAME, __doc__, Steps(train, export, measure_recogniser), argv)


if __name__ == "__main__":
    main()
