"""docs/metrics.md lists the metrics that the jobs make, and no others."""

import ast
from collections.abc import Iterator
from pathlib import Path

from transforms.infer_parts import METRICS
from transforms.session_turn import COUNTS

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"METRICS": METRICS}


def listed() -> list[tuple[str, str, str]]:
    """The namespace, name and kind of each row of the page's table."""
    lines = [line for line in (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8").splitlines() if "`" in line]
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert all(len(row) == 5 and all(row) for row in rows)
    return [(namespace, name, kind) for namespace, name, kind, _, _ in rows]


def made() -> Iterator[tuple[str, str, str]]:
    """The same of every call of Metrics.counter and its like in the code."""
    for file in (path for package in ("transforms", "pipelines") for path in sorted((ROOT / package).glob("*.py"))):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="Metrics"), attr=kind), args=[space, name]):
                    namespace = space.value if isinstance(space, ast.Constant) else NAMES[space.id]
                    yield from ((namespace, each, kind) for each in names(name))


def names(name: ast.expr) -> list[str]:
    match name:
        case ast.Constant(value):
            return [value]
        case ast.JoinedStr(values=[ast.Constant(value), _]):
            return [f"{value}..."]
        case ast.Name("name"):
            return list(COUNTS)
    raise AssertionError(f"the name of a metric is neither a constant nor one of COUNTS: {ast.dump(name)}")


def test_the_page_lists_exactly_the_metrics_of_the_code() -> None:
    assert sorted(listed()) == sorted(made())
