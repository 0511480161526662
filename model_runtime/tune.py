"""Measures which batch size is best for a model on this machine's CPU, and writes it into the model's card.

python -m model_runtime.tune unison-denoise unison-vad
python -m model_runtime.tune --recipe batch --write
"""

import argparse
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from model_runtime.card import ModelCard, StreamingFraming, UtteranceCtcFraming, load_card
from model_runtime.devices import RouteConfig
from model_runtime.errors import ConfigError, SpeechError
from model_runtime.graph import Graph
from model_runtime.recipe import load_recipe

SIZES = (1, 2, 4, 8, 16, 32)
"""The batch sizes that are tried."""

# More than this must be gained before a larger batch is worth its memory, and the wait for its rows.
_WORTH = 0.97
# Of whole utterances: short and long ones fill the caches differently. Features are those of steps of 10 ms.
_UTTERANCE_S = 4.0
_FRAMES_PER_S = 100
_LEAST_CALL_S = 0.02


class Measured(NamedTuple):
    """One variant of a card: CPU time of a row in ms, by batch size; best: the size that is worth it."""

    card: ModelCard
    variant: str
    row_ms: dict[int, float]
    best: int


def tune_card(card: ModelCard, rounds: int, threads: int = 1) -> Iterator[Measured]:
    """Measures all variants of a card.

    Whole calls of all its graphs are measured, with random numbers of the shapes that they take; the sizes by turns, so
    that whatever else the machine does hits all alike.

    Args:
        rounds: of which the fastest counts: whatever else the machine does only adds to it.
        threads: of one call of a graph.

    Raises:
        ModelError, ConfigError: the card or a file is refused.
    """
    for variant in card.variants:
        route = RouteConfig(variants=(variant,), threads=threads)
        sizes = None if card.batch_sizes == "any" else card.batch_sizes
        graphs = [Graph.load(card.paths(each.role), each, card.signature, route, sizes) for each in card.graphs]
        allowed = [size for size in SIZES if all(size in graph.batch_sizes for graph in graphs)]
        calls = {size: [_Call(graph, _inputs(graph, card, size), size) for graph in graphs] for size in allowed}
        times: dict[int, list[float]] = {size: [] for size in allowed}
        for _ in range(rounds + 1):
            for size in allowed:
                times[size].append(sum(call.cpu_s() for call in calls[size]) / size)
        # The first round made the interpreters.
        row_ms = {size: 1000 * min(values[1:]) for size, values in times.items()}
        yield Measured(card, variant, row_ms, best_size(row_ms))


def best_size(row_ms: dict[int, float]) -> int:
    """Gives the smallest size that no larger one beats by more than 3 %.

    Args:
        row_ms: time of a row by batch size.
    """
    least = min(row_ms.values())
    return min(size for size, cost in row_ms.items() if cost * _WORTH <= least)


def write_best(card: ModelCard, best: dict[str, int]) -> None:
    """Writes `best_batch_size` into the card's file; every other line stays as it is."""
    path = Path(card.folder) / "card.yaml"
    text = re.sub(r"^best_batch_size:.*\n(?:[ \t]+.*\n)*", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sizes = ", ".join(f"{variant}: {size}" for variant, size in best.items())
    line = f"best_batch_size: {{{sizes}}}\n"
    at = re.search(r"^batch_sizes:.*\n(?:[ \t-]+.*\n)*", text, re.MULTILINE)
    place = at.end() if at else len(text)
    path.write_text(text[:place] + line + text[place:], encoding="utf-8")


class _Call:
    """Repeated calls of one graph with one batch."""

    def __init__(self, graph: Graph, inputs: dict[str, np.ndarray], size: int) -> None:
        self._graph = graph
        self._inputs = inputs
        self._states = graph.initial_states(size)
        self._repeats = 0

    def cpu_s(self) -> float:
        """Gives the CPU time of one call, all threads together."""
        if not self._repeats:
            self._graph.run(self._inputs, self._states)
            began = time.process_time()
            self._graph.run(self._inputs, self._states)
            # A clock with ticks needs calls that last.
            self._repeats = 1 + int(_LEAST_CALL_S / max(1e-5, time.process_time() - began))
        began = time.process_time()
        for _ in range(self._repeats):
            self._graph.run(self._inputs, self._states)
        return (time.process_time() - began) / self._repeats


def _inputs(graph: Graph, card: ModelCard, size: int) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(0)
    shapes = {name: graph.input_shape(name)[1:] for name in graph.input_names}
    return {
        name: numbers.uniform(0, 1, (size, *(_open_size(card, name) if n == -1 else n for n in shape))).astype("f4")
        for name, shape in shapes.items()
    }


def _open_size(card: ModelCard, name: str) -> int:
    """What stands for an open size: the samples of a block or of an utterance, or the frames of features made of them.

    Raises:
        ConfigError: models of this kind take what others of their graphs have made.
    """
    match card.parsed_framing():
        case StreamingFraming(block_samples=block, context_samples=context):
            samples = block
        case UtteranceCtcFraming(context_samples=context):
            samples = int(_UTTERANCE_S * card.sample_rate_hz)
        case _:
            raise ConfigError(f"{card.name}: models of kind {card.kind} cannot be tuned")
    return context + samples if name == "samples" else samples * _FRAMES_PER_S // card.sample_rate_hz


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a line for each variant: 0; 1 where a model is refused."""
    parser = argparse.ArgumentParser("python -m model_runtime.tune", description="Finds the best batch size of models.")
    parser.add_argument("cards", nargs="*", help="names of models, or paths of their cards or folders")
    parser.add_argument("--recipe", action="append", default=[], help="all models of a recipe")
    parser.add_argument("--rounds", type=int, default=9, help="measurements, of which the fastest counts (9)")
    parser.add_argument("--threads", type=int, default=1, help="threads of one call of a graph (1)")
    parser.add_argument("--write", action="store_true", help="write what is best into the cards")
    options = parser.parse_args(argv)
    try:
        recipes = [load_recipe(name) for name in options.recipe]
        stages = [stage for recipe in recipes for stage in (recipe.denoise, recipe.vad, recipe.asr) if stage]
        for name in dict.fromkeys([*options.cards, *(stage.model for stage in stages)]):
            best: dict[str, int] = {}
            for card, variant, row_ms, size in tune_card(load_card(name), options.rounds, options.threads):
                costs = "  ".join(f"{each}: {cost:.3f}" for each, cost in row_ms.items())
                print(f"{card.name} {variant}: best {size}; CPU ms of a row by batch size: {costs}", flush=True)
                best[variant] = size
            if options.write:
                write_best(load_card(name), best)
    except SpeechError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
