"""``python -m training.asr_stream``: trains, exports and measures unison-asr-stream."""

import functools

from training import stream_network
from training.asr_card import STREAM_FRAMING, asr_card, graph_entry
from training.asr_measure import measure_recogniser
from training.card import write_card
from training.command import Options, Steps, run_command
from training.ctc_training import FIND_WORDS, REFINE, ctc_objective
from training.examples import session_calls
from training.export import Graph, convert_float, convert_int8
from training.fbank import write_fbank
from training.recogniser_training import train_recogniser
from training.weights import Arrays, fold_norms, load_weights

NAME = "unison-asr-stream"
_FINDING_SHARE = 0.4


def train(options: Options) -> Arrays:
    """Trains from the weights given, or from nothing, in which case it first finds out where words are."""
    schedule = options.schedule
    folders = (options.cache, options.shared)
    if options.start:
        arrays = load_weights(options.start)
    else:
        first = schedule._replace(minutes=_FINDING_SHARE * schedule.minutes, flat=0.95)
        schedule = schedule._replace(minutes=schedule.minutes - first.minutes)
        arrays = stream_network.initialise(options.seed)
        arrays = train_recogniser(
            ctc_objective(stream_network.whole, FIND_WORDS), arrays, first, *folders, options.seed + 1
        )
    return train_recogniser(ctc_objective(stream_network.whole, REFINE), arrays, schedule, *folders, options.seed)


def export(options: Options, arrays: Arrays) -> None:
    """Writes the card and the graphs."""
    folded = fold_norms(arrays)
    graph = Graph(functools.partial(stream_network.step, folded), stream_network.step_inputs())
    write_fbank(options.output)
    (options.output / "encoder_float32.tflite").write_bytes(convert_float(graph))
    heard = session_calls(options.cache, options.shared, graph.function)
    quantised = convert_int8(graph, (call for call, _ in heard))
    (options.output / "encoder_int8.tflite").write_bytes(quantised)
    encoder = graph_entry("encoder", ["features"], "log_probs", list(stream_network.state_shapes()))
    write_card(options.output, asr_card(NAME, "streaming_ctc", dict(STREAM_FRAMING), [encoder]))


def main(argv: list[str] | None = None) -> None:
    """The command."""
    run_command(NAME, __doc__, Steps(train, export, measure_recogniser), argv)


if __name__ == "__main__":
    main()
