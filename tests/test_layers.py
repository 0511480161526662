"""The layers point one way: model_runtime <- transforms <- pipelines, and service stands beside them without Beam."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = {"model_runtime", "transforms", "pipelines", "service", "training", "benchmarks", "tests"}
# What each package may import of the project and of the outside world that is somebody's own layer.
ALLOWED = {
    "model_runtime": set(),
    "service": {"model_runtime", "kafka"},
    "transforms": {"model_runtime", "service", "apache_beam", "kafka"},
    # grpc: Beam's portable runners are spoken to by it.
    "pipelines": {"model_runtime", "service", "transforms", "apache_beam", "grpc", "kafka"},
}
LAYERED = OURS | {"apache_beam", "kafka", "grpc", "tensorflow"}


def imported_packages(file: Path) -> Iterator[str]:
    """Gives the top-level package of every import in a file, wherever in it it stands."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0] if not node.level else file.parent.name


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_a_package_imports_only_the_layers_below_it(package: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in sorted((ROOT / package).rglob("*.py"))
        for name in imported_packages(file)
        if name in LAYERED - {package} - ALLOWED[package]
    ]
    assert wrong == []


def test_transforms_take_only_the_wire_from_service() -> None:
    wrong = [
        f"{file.name}: {node.module}"
        for file in sorted((ROOT / "transforms").rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("service")
        if node.module != "service.wire"
    ]
    assert wrong == []


def test_no_package_lies_outside_the_layers() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - OURS
    assert packages == set()


def test_no_file_is_longer_than_350_lines() -> None:
    folders = [ROOT / name for name in sorted(OURS)]
    lengths = {
        str(file.relative_to(ROOT)): file.read_text(encoding="utf-8").count("\n")
        for folder in folders
        for file in folder.rglob("*.py")
        if "_pb2" not in file.name
    }
    assert {name: lines for name, lines in lengths.items() if lines > 350} == {}
