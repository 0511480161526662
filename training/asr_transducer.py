"""``python -m training.asr_transducer``: trains, exports and measures unison-asr-transducer."""

import functools
from collections.abc import Iterable, Iterator

import numpy as np
import tensorflow as tf

from training import stream_network
from training import transducer_network as net
from training.asr_card import STREAM_FRAMING, asr_card, graph_entry
from training.asr_measure import measure_recogniser
from training.card import write_card
from training.command import Options, Steps, run_command
from training.examples import session_calls
from training.export import Arrays as Tensors
from training.export import Graph, convert_float, convert_int8
from training.fbank import write_fbank
from training.layers import Mode
from training.recogniser_training import Batch, train_recogniser
from training.transducer_loss import transducer_loss
from training.weights import Arrays, Weights, fold_norms, load_weights

NAME = "unison-asr-transducer"
# The prediction network is trained over this many tokens at once: no example has more.
_MOST_LABELS = 48


def _start(options: Options) -> Arrays:
    """Weights given: of this model, or of the streaming recogniser, whose encoder it starts from."""
    arrays = load_weights(options.start) if options.start else stream_network.initialise(options.seed)
    return arrays if "joined/kernel" in arrays else net.initialise(arrays, options.seed)


def _objective(weights: Weights, batch: Batch, mode: Mode) -> tf.Tensor:
    missing = _MOST_LABELS - tf.shape(batch.labels)[1]
    labels = tf.ensure_shape(tf.pad(batch.labels, [[0, 0], [0, missing]]), [None, _MOST_LABELS])
    return transducer_loss(net.whole(weights, batch.features, labels, mode), labels, batch.lengths)


def train(options: Options) -> Arrays:
    """Trains from the weights given, or from nothing."""
    folders = (options.cache, options.shared)
    return train_recogniser(_objective, _start(options), options.schedule, *folders, options.seed)


def _predictor_examples(weights: Arrays) -> Iterator[Tensors]:
    """Random texts: the network has seen every token after every other."""
    rng = np.random.default_rng(37)
    for _ in range(40):
        memory = net.zero_memory(1)
        for token in (0, *rng.integers(1, weights["embedding/kernel"].shape[0], 12)):
            call = {"token": np.array([[token]], np.int32), "memory_in": memory}
            yield call
            memory = net.predictor_step(weights, call["token"], memory)["memory_out"].numpy()


def _joiner_examples(weights: Arrays, encodings: Iterable[tf.Tensor]) -> Iterator[Tensors]:
    """What the encoder hears with what is predicted after random texts."""
    predictions = [net.predictor_step(weights, **call)["prediction"].numpy() for call in _predictor_examples(weights)]
    for number, encoding in enumerate(encodings):
        yield {"encoding": encoding[0, :1].numpy(), "prediction": predictions[number % len(predictions)]}


def export(options: Options, arrays: Arrays) -> None:
    """Writes the card and the graphs."""
    weights = fold_norms(arrays)
    write_fbank(options.output)
    encoder = functools.partial(net.encoder_step, weights)
    heard = (call for call, _ in session_calls(options.cache, options.shared, encoder))
    encodings = (outputs["encoding"] for _, outputs in session_calls(options.cache, options.shared, encoder))
    graphs = {
        "encoder": (net.encoder_step, stream_network.step_inputs(), heard),
        "predictor": (net.predictor_step, net.predictor_inputs(), _predictor_examples(weights)),
        "joiner": (net.joiner_step, net.joiner_inputs(), _joiner_examples(weights, encodings)),
    }
    for role, (function, inputs, examples) in graphs.items():
        graph = Graph(functools.partial(function, weights), inputs)
        (options.output / f"{role}_float32.tflite").write_bytes(convert_float(graph))
        (options.output / f"{role}_int8.tflite").write_bytes(convert_int8(graph, examples))
    entries = [
        graph_entry("encoder", ["features"], "encoding", list(stream_network.state_shapes())),
        graph_entry("predictor", ["token"], "prediction", list(net.STATES)),
        graph_entry("joiner", ["encoding", "prediction"], "log_probs", []),
    ]
    write_card(options.output, asr_card(NAME, "streaming_transducer", dict(STREAM_FRAMING), entries))


def main(argv: list[str] | None = None) -> None:
    """The command."""
    run_command(NAME, __doc__, Steps(train, export, measure_recogniser), argv)


if __name__ == "__main__":
    main()
