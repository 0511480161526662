"""Puts a recogniser's figures, and the lag of its spikes, into its card."""

from collections.abc import Callable, Mapping

from training.asr_card import FEATURES_FILE
from training.asr_evaluation import Recogniser, evaluate
from training.card import Value, read_card, write_card
from training.command import Options
from training.interpreter import Model


def measure_variants(
    options: Options, framing: Mapping[str, Value], evaluate_variant: Callable[[str], dict[str, float]]
) -> None:
    """Measures both variants; `evaluate_variant` gives the figures of one by its name."""
    card = read_card(options.output)
    quality = {}
    for variant in ("float32", "int8"):
        figures = evaluate_variant(variant)
        print(variant, figures, flush=True)
        delay = int(figures.pop("delay_samples"))
        if variant == "float32":
            card["framing"] = dict(framing) | {"delay_samples": delay}
        quality[variant] = dict(figures)
    write_card(options.output, card | {"quality": quality})


def measure_recogniser(
    options: Options, framing: Mapping[str, Value], make: Callable[[Model, Model], Recogniser], multiple: int
) -> None:
    """Measures both variants; `make` calls the graphs as in use, on a multiple of so many samples."""
    features_graph = Model(options.output / FEATURES_FILE)

    def evaluate_variant(variant: str) -> dict[str, float]:
        encoder = Model(options.output / f"encoder_{variant}.tflite")
        return evaluate(make(features_graph, encoder), multiple, options.cache, options.shared)

    measure_variants(options, framing, evaluate_variant)
