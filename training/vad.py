"""``python -m training.vad``: trains, exports and measures unison-vad."""

import functools

from training import vad_network
from training.card import read_card, state_pairs, write_card
from training.command import Options, Steps, run_command
from training.export import Graph, convert_float
from training.filterbank import CONTEXT_SAMPLES
from training.interpreter import Model
from training.vad_evaluation import evaluate
from training.vad_training import train_detector
from training.weights import Arrays, load_weights

NAME = "unison-vad"
_FILE = "vad_float32.tflite"


def train(options: Options) -> Arrays:
    """Trains from nothing, or from the weights given."""
    start = load_weights(options.start) if options.start else vad_network.initialise(options.seed)
    return train_detector(start, options.schedule, options.cache, options.shared, options.seed)


def export(options: Options, arrays: Arrays) -> None:
    """Writes the card and the graph."""
    graph = Graph(functools.partial(vad_network.step, arrays), vad_network.step_inputs())
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / _FILE).write_bytes(convert_float(graph))
    write_card(
        options.output,
        {
            "name": NAME,
            "version": "1",
            "task": "vad",
            "kind": "frame_probability",
            "licence": "Apache-2.0",
            "source": "Trained from nothing by the project itself: python -m training.vad.",
            "sample_rate_hz": 16000,
            "signature": "step",
            "variants": {"float32": {"vad": _FILE}},
            "batch_sizes": "any",
            "graphs": [
                {
                    "role": "vad",
                    "inputs": {"samples": "samples"},
                    "outputs": {"speech": "speech"},
                    "states": list(state_pairs(list(vad_network.state_shapes()))),
                }
            ],
            "framing": {
                "block_samples": vad_network.BLOCK_SAMPLES,
                "context_samples": CONTEXT_SAMPLES,
            },
            "quality": {},
            "data": (
                "English sentences and words by espeak-ng 1.51 and flite 2.2 (several accents and voices) and digits of"
                " the Free Spoken Digit Dataset (CC BY-SA 4.0; jackson, nicolas, theo, yweweler, recordings 5 and"
                " up), in simulated rooms, lines and noises."
            ),
        },
    )


def measure(options: Options) -> None:
    """Measures the graph and writes the figures into the card."""
    figures = evaluate(Model(options.output / _FILE), options.shared)
    print(figures, flush=True)
    write_card(options.output, read_card(options.output) | {"quality": {"float32": dict(figures)}})


def main(argv: list[str] | None = None) -> None:
    """The command."""
    run_command(NAME, __doc__, Steps(train, export, measure), argv)


if __name__ == "__main__":
    main()
