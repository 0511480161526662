"""Puts a recogniser's figures, and the lag of its words, into its card."""

from training.card import read_card, write_card
from training.command import Options
from training.recogniser_evaluation import evaluate


def measure_recogniser(options: Options) -> None:
    """Measures both variants. What words lag behind the card's delay is added to it: a second time adds nothing."""
    card = read_card(options.output)
    quality, lag_samples = {}, {}
    for variant in ("float32", "int8"):
        figures = evaluate(options.output, variant, options.cache, options.shared)
        print(variant, figures, flush=True)
        lag_samples[variant] = int(figures.pop("lag_samples"))
        quality[variant] = dict(figures)
    framing = dict(card["framing"])
    framing["delay_samples"] += lag_samples["float32"]
    write_card(options.output, card | {"framing": framing, "quality": quality})
