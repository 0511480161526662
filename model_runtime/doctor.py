"""Says what this machine can run: runtimes, devices, models, and where each stage of each recipe would run.

python -m model_runtime.doctor [--route file.yaml] [--recipe name ...] [--file model.tflite ...]
"""

import argparse
import importlib.metadata
import logging
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import yaml

from model_runtime.assembly import Assembly, assemble
from model_runtime.card import PACKAGE_MODELS, USER_MODELS, load_card
from model_runtime.devices import RouteConfig, probe
from model_runtime.engine import SpeechEngine
from model_runtime.errors import ConfigError, NotImportedError, SpeechError
from model_runtime.graph_check import check_graph
from model_runtime.graph_file import GraphFile, read_graph_file
from model_runtime.recipe import PACKAGE_RECIPES, load_recipe
from model_runtime.tflite import RUNTIME

__all__ = ["Finding", "examine_devices", "examine_file", "examine_models", "examine_recipe", "load_route", "main"]

_DISTRIBUTIONS = ("ai-edge-litert", "tflite-runtime", "numpy")


class Finding(NamedTuple):
    """One line of the report; `fine` is False when something that is needed cannot run."""

    text: str
    fine: bool = True


def load_route(path: Path) -> RouteConfig:
    """Gives the route of a YAML file: the file itself, or its field `route` (as in the jobs' configurations).

    Raises:
        ConfigError: the file cannot be read or a field is wrong; path and field are named.
    """
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        if isinstance(raw, dict) and "route" in raw:
            raw = raw["route"]
        return msgspec.convert(raw, RouteConfig)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise ConfigError(f"{path}: {error}") from error


def examine_runtimes() -> Iterator[Finding]:
    """Gives the version of each distribution that matters, and which runtime is in use."""
    for name in _DISTRIBUTIONS:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = "not installed"
        yield Finding(f"{name}: {version}{' (in use)' if name == RUNTIME.name else ''}")


def examine_devices(route: RouteConfig) -> Iterator[Finding]:
    """Gives each device of the route with what is there, or why it cannot be had."""
    for report in probe(route):
        needed = report.device in route.devices and route.on_failure == "refuse"
        state = f"{report.reason}: {report.detail}" if report.reason else f"can be used ({report.detail})"
        yield Finding(f"{report.device}: {state}", fine=not (report.reason and needed))


def examine_models(folder: Path = PACKAGE_MODELS) -> Iterator[Finding]:
    """Gives each model of a folder with its variants and their sizes."""
    for path in sorted(folder.glob("*/card.yaml")):
        try:
            card = load_card(str(path))
            sizes = []
            for variant, files in card.variants.items():
                size_bytes = sum((path.parent / name).stat().st_size for name in files.values())
                sizes.append(f"{variant} {size_bytes / 1e6:.1f} MB")
        except (SpeechError, OSError) as error:
            yield Finding(f"{path.parent.name}: {error}", fine=False)
        else:
            yield Finding(f"{card.name} {card.version} ({card.task}, {card.kind}): {', '.join(sizes)}")


def examine_recipe(name: str, route: RouteConfig, needed: bool = True) -> Iterator[Finding]:
    """Gives for each stage's graphs the variant and the device that would run them; a second of silence is run.

    Args:
        needed: whether it matters that a model has not been imported yet.
    """
    try:
        recipe = load_recipe(name)
        assembly = assemble(recipe, route)
        # Graphs with open shapes meet their device at the first call only.
        SpeechEngine(recipe, assembly).run([np.zeros(assembly.sample_rate_hz, np.float32)], batch_size=1)
    except NotImportedError as error:
        yield Finding(f"{name}: cannot run yet: {error}", fine=not needed)
        return
    except SpeechError as error:
        yield Finding(f"{name}: cannot run: {error}", fine=False)
        return
    yield Finding(f"{name}:")
    yield from _stages(assembly)


def _stages(assembly: Assembly) -> Iterator[Finding]:
    for stage, card, graphs in assembly.models:
        for role, graph in graphs.items():
            place = graph.device + (f" ({graph.reason})" if graph.reason else "")
            yield Finding(f"  {stage} {card.name} {role}: {graph.variant} on {place}")


def examine_file(path: Path) -> Iterator[Finding]:
    """Gives the names that a card can use for the tensors of a file, or why the file is refused."""
    try:
        file = read_graph_file(path)
        yield from _tensors(file)
        check_graph(file)
    except SpeechError as error:
        yield Finding(f"refused: {error}", fine=False)


def _tensors(file: GraphFile) -> Iterator[Finding]:
    names = {name: (found.inputs, found.outputs) for name, found in file.signatures.items() if found.subgraph == 0}
    if not names:
        yield Finding("no signature: a card names the tensors themselves")
        by_name = [{file.tensors[index].name: index for index in indexes} for indexes in (file.inputs, file.outputs)]
        names = {"": (by_name[0], by_name[1])}
    for signature, sides in names.items():
        if signature:
            yield Finding(f"signature: {signature}")
        for kind, tensors in zip(("input", "output"), sides, strict=True):
            for name, index in tensors.items():
                tensor = file.tensors[index]
                numbers = f" scale {tensor.scales[0]:g} zero {tensor.zero_points[0]}" if tensor.scales else ""
                yield Finding(f"  {kind} {name}: {tensor.type} {list(tensor.shape)}{numbers}")


class _Warnings(logging.Handler):
    """Keeps the different messages of the runtime's loggers, to show each once."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.messages[record.getMessage()] = None


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the report; gives 1 when something that is needed cannot run, 2 when the route cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m model_runtime.doctor", description=__doc__)
    parser.add_argument("--route", type=Path, help="YAML file of a route, or a job's configuration that holds one")
    parser.add_argument("--recipe", action="append", help="name or path of a recipe; all packaged ones by default")
    parser.add_argument("--file", type=Path, action="append", help="a .tflite file to look into, instead of all else")
    options = parser.parse_args(argv)
    try:
        route = load_route(options.route) if options.route else RouteConfig()
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    warnings = _Warnings()
    logger = logging.getLogger("model_runtime")
    logger.addHandler(warnings)
    logger.propagate = False
    try:
        fine = True
        for title, findings in _sections(route, options.recipe, options.file):
            print(title)
            for finding in findings:
                print(f"  {finding.text}", flush=True)
                fine &= finding.fine
        for message in warnings.messages:
            print(f"warning: {message}")
    finally:
        logger.propagate = True
        logger.removeHandler(warnings)
    return 0 if fine else 1


def _sections(
    route: RouteConfig, recipes: Sequence[str] | None, files: Sequence[Path] | None
) -> Iterator[tuple[str, Iterator[Finding]]]:
    if files:
        yield from ((str(path), examine_file(path)) for path in files)
        return
    yield "Runtimes", examine_runtimes()
    yield "Devices", examine_devices(route)
    yield "Models", chain(examine_models(), examine_models(USER_MODELS))
    names = recipes or sorted(path.stem for path in PACKAGE_RECIPES.glob("*.yaml"))
    yield "Recipes", (finding for name in names for finding in examine_recipe(name, route, bool(recipes)))


if __name__ == "__main__":
    sys.exit(main())
