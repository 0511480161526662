"""The command line that all models share: train, or only export, or only evaluate."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from training.card import model_folder
from training.schedule import Schedule, configure_threads
from training.synthesis import DEFAULT_CACHE
from training.weights import Arrays, load_weights

_CHECKPOINTS = Path(__file__).resolve().parent / "weights"


class Options(NamedTuple):
    """What was asked for on the command line.

    Attributes:
        minutes: Wall clock of the training.
        learning_rate: At its highest.
        seed: Of examples and weights.
        shared: The data folder, with data/fsdd and data/speech.
        cache: Where synthesis is kept.
        output: Folder for the card and the .tflite files.
        checkpoint: The trained weights.
        start: Weights to go on from, if any.
    """

    minutes: float
    learning_rate: float
    seed: int
    shared: Path
    cache: Path
    output: Path
    checkpoint: Path
    start: Path | None

    @property
    def schedule(self) -> Schedule:
        """The schedule that these options ask for."""
        return Schedule(self.minutes, self.learning_rate, 0.3, self.checkpoint)


class Steps(NamedTuple):
    """What a model's command can do; each is called with the options."""

    train: Callable[[Options], Arrays]
    export: Callable[[Options, Arrays], None]
    evaluate: Callable[[Options], None]


def run_command(name: str, description: str, steps: Steps, argv: list[str] | None) -> None:
    """Parses the command line and does what it asks for: by default train, export and evaluate."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--minutes", type=float, default=30.0, help="time to train for")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--shared", type=Path, default=Path("../shared"), help="data folder")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="folder for synthesis")
    parser.add_argument("--output", type=Path, default=model_folder(name))
    parser.add_argument("--checkpoint", type=Path, default=_CHECKPOINTS / f"{name}.npz")
    parser.add_argument("--start", type=Path, help="weights to go on from")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--export-only", action="store_true", help="export the checkpoint")
    only.add_argument("--evaluate-only", action="store_true", help="measure what is exported")
    parsed = vars(parser.parse_args(argv))
    export_only, evaluate_only = parsed.pop("export_only"), parsed.pop("evaluate_only")
    options = Options(**parsed)
    configure_threads()
    if not evaluate_only:
        if not export_only:
            steps.train(options)
        # From the checkpoint either way: it holds half precision, and exporting it again must give the same graphs.
        steps.export(options, load_weights(options.checkpoint))
    if not export_only:
        steps.evaluate(options)
