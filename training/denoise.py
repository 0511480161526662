"""``python -m training.denoise``: trains, exports and measures unison-denoise."""

import functools
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from training import denoise_network as net
from training.card import Value, read_card, state_pairs, write_card
from training.command import Options, Steps, run_command
from training.denoise_evaluation import evaluate
from training.denoise_training import train_denoiser
from training.export import Arrays as Tensors
from training.export import Graph, convert_float, convert_int8
from training.scenes import make_scene
from training.spectra import analyse, log_features
from training.utterances import load_source
from training.weights import Arrays, load_weights

NAME = "unison-denoise"
_CALIBRATION_EXAMPLES = 40
_CALIBRATION_SAMPLES = 64000


def train(options: Options) -> Arrays:
    """Trains from nothing, or from the weights given."""
    start = net.with_recurrence(load_weights(options.start)) if options.start else net.initialise(options.seed)
    return train_denoiser(start, options.schedule, options.cache, options.shared, options.seed)


def _calibration(options: Options, arrays: Arrays) -> Iterator[Tensors]:
    """Inputs and states of calls in the middle of sessions."""
    source = load_source(options.cache, options.shared)
    rng = np.random.default_rng(41)
    step = tf.function(functools.partial(net.step, arrays))
    for _ in range(_CALIBRATION_EXAMPLES):
        noisy = make_scene(rng, source, _CALIBRATION_SAMPLES, 1.0, with_babble=True).noisy
        inputs = log_features(analyse(noisy[None]))
        states = {f"{name}_in": np.zeros((1, net.UNITS), np.float32) for name in net.STATES}
        for start in range(0, inputs.shape[1] - net.CALL_FRAMES + 1, net.CALL_FRAMES):
            call = {"features": inputs[:, start : start + net.CALL_FRAMES]} | states
            yield call
            outputs = step(**call)
            states = {name: outputs[name[:-3] + "_out"].numpy() for name in states}


def _card() -> dict[str, Value]:
    return {
        "name": NAME,
        "version": "1",
        "task": "denoise",
        "kind": "spectral",
        "licence": "Apache-2.0",
        "source": "Trained from nothing by the project itself: python -m training.denoise.",
        "sample_rate_hz": 16000,
        "signature": "step",
        "variants": {v: {"mask": f"mask_{v}.tflite"} for v in ("float32", "int8")},
        "batch_sizes": "any",
        "graphs": [
            {
                "role": "mask",
                "inputs": {"features": "features"},
                "outputs": {"mask": "mask"},
                "states": list(state_pairs(list(net.STATES))),
            }
        ],
        "framing": {
            "window_samples": net.WINDOW_SAMPLES,
            "hop_samples": net.HOP_SAMPLES,
            "frames_per_call": net.CALL_FRAMES,
            "window": "sqrt_hann",
            "feature": "log_magnitude",
            "feature_floor": net.FEATURE_FLOOR,
            "feature_scale": net.FEATURE_SCALE,
            "feature_offset": net.FEATURE_OFFSET,
        },
        "quality": {},
        "data": (
            "English sentences and words by espeak-ng 1.51, flite 2.2 (several accents and voices) and Kokoro-82M"
            " (mixtures of its voices), and digits of the Free Spoken Digit Dataset (CC BY-SA 4.0; jackson, nicolas,"
            " theo, yweweler, recordings 5 and up), in simulated rooms, lines and noises."
        ),
    }


def export(options: Options, arrays: Arrays) -> None:
    """Writes the card and the graphs."""
    graph = Graph(functools.partial(net.step, arrays), net.step_inputs())
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "mask_float32.tflite").write_bytes(convert_float(graph))
    quantised = convert_int8(graph, _calibration(options, arrays))
    (options.output / "mask_int8.tflite").write_bytes(quantised)
    write_card(options.output, _card())


def measure(options: Options) -> None:
    """Measures both variants and writes the figures into the card."""
    quality = {}
    for variant in ("float32", "int8"):
        figures = evaluate(options.output, variant, options.shared)
        print(variant, figures, flush=True)
        quality[variant] = dict(figures)
    write_card(options.output, read_card(options.output) | {"quality": quality})


def main(argv: list[str] | None = None) -> None:
    """The command."""
    run_command(NAME, __doc__, Steps(train, export, measure), argv)


if __name__ == "__main__":
    main()
