"""The reference of every configuration field, written from the Structs and their comments: docs/configuration.md.

python -m pipelines.reference docs/configuration.md
"""

import ast
import inspect
import sys
import textwrap
import typing
from collections.abc import Iterator
from pathlib import Path

import msgspec

from model_runtime.recipe import Recipe
from pipelines.batch import BatchConfig
from pipelines.streaming import StreamingConfig

_INTRODUCTION = """# Configuration

Every field of the jobs' YAML files and of recipes. A field can be set on the command line too, with
`--set group.field=value`. An unknown field, a wrong type or a value out of bounds ends the job before it starts, with
exit code 2 and the field's path. This page is written from the code by
`python -m pipelines.reference docs/configuration.md`.
"""
_PAGES = (
    ("Batch job", "`python -m pipelines.batch --config configs/batch.yaml`", BatchConfig),
    ("Streaming job", "`python -m pipelines.streaming --config configs/streaming.yaml`", StreamingConfig),
    ("Recipes", "`model_runtime/recipes/*.yaml`, or a file of your own", Recipe),
)


class _Row(typing.NamedTuple):
    path: str
    type: str
    default: str
    meaning: str


def reference() -> str:
    """Gives the whole page."""
    parts = [_INTRODUCTION]
    for title, where, struct in _PAGES:
        parts.append(f"## {title}\n\n{where}\n")
        parts.append("| field | type | default | meaning |\n|---|---|---|---|")
        parts.extend(
            f"| `{row.path}` | {row.type} | {row.default} | {row.meaning} |" for row in _rows(struct, prefix="")
        )
        parts.append("")
    return "\n".join(parts)


def _rows(struct: type[msgspec.Struct], prefix: str) -> Iterator[_Row]:
    comments = _comments(struct)
    for field in msgspec.structs.fields(struct):
        inner = _inner_struct(field.type)
        if inner is None:
            default = "required" if field.required else f"`{_shown(_default(field))}`"
            yield _Row(prefix + field.name, _type_name(field.type), default, comments[field.name])
        else:
            if field.default is None:
                yield _Row(prefix + field.name, "group", "absent", comments.get(field.name) or _summary(inner))
            yield from _rows(inner, f"{prefix}{field.name}.")


def _comments(struct: type) -> dict[str, str]:
    """Gives each field's comment: the lines right above it, or what follows it on its own line."""
    lines = textwrap.dedent(inspect.getsource(struct)).splitlines()
    body = ast.parse("\n".join(lines)).body[0]
    found = {}
    for node in body.body if isinstance(body, ast.ClassDef) else []:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        above: list[str] = []
        for line in reversed(lines[: node.lineno - 1]):
            if not line.strip().startswith("#"):
                break
            above.insert(0, line.strip().lstrip("# "))
        behind = lines[(node.end_lineno or node.lineno) - 1][node.end_col_offset :].strip()
        found[node.target.id] = " ".join([*above, behind.lstrip("# ")]).strip().replace("|", "\\|")
    return found


def _inner_struct(annotation: typing.Any) -> type[msgspec.Struct] | None:
    for part in (annotation, *typing.get_args(annotation)):
        if isinstance(part, type) and issubclass(part, msgspec.Struct) and typing.get_origin(annotation) is not dict:
            return part
    return None


def _type_name(annotation: typing.Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        bounds = [
            f"{sign} {value}"
            for meta in arguments[1:]
            for sign, value in ((">=", meta.ge), (">", meta.gt), ("<=", meta.le), ("<", meta.lt))
            if value is not None
        ]
        return ", ".join([_type_name(arguments[0]), *bounds])
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"list of {_type_name(arguments[0])}"
    if origin is dict:
        return f"mapping of {_type_name(arguments[0])} to {_type_name(arguments[1])}"
    if arguments:
        return " or ".join(_type_name(part) for part in arguments)
    return "none" if annotation is type(None) else str(annotation.__name__)


def _default(field: msgspec.structs.FieldInfo) -> typing.Any:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


def _shown(value: typing.Any) -> str:
    return msgspec.json.encode(value).decode()


def _summary(struct: type) -> str:
    return (inspect.getdoc(struct) or "").splitlines()[0]


def main() -> int:
    """Writes the page to the file named on the command line."""
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
