"""Results as Parquet: the answer's columns always have the same types, the input's own columns the best that fits."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

WORD = pa.struct(
    [("text", pa.string()), ("start_ms", pa.int64()), ("end_ms", pa.int64()), ("confidence", pa.float64())]
)
SEGMENT = pa.struct([("start_ms", pa.int64()), ("end_ms", pa.int64())])
ANSWER = {
    "pred_text": pa.string(),
    "words": pa.list_(WORD),
    "segments": pa.list_(SEGMENT),
    "duration": pa.float64(),
    "model": pa.string(),
    "device": pa.string(),
    "answer": pa.string(),
    "error": pa.string(),
    "error_class": pa.string(),
    "error_retriable": pa.bool_(),
    "source_file": pa.string(),
    "source_row": pa.int64(),
}
ENHANCED = {"enhanced_filepath": pa.string()}

_ROWS_PER_GROUP = 2_000
Rows = list[dict[str, Any]]


def write_table(lines: Iterable[bytes], path: Path, with_enhanced: bool) -> None:
    """Writes JSON objects as one Parquet file, in order. Holds _ROWS_PER_GROUP of them at a time, and reads them twice.

    A column of the input keeps its type, nested ones too; one whose values have no common type, or that Parquet
    cannot hold, is written as JSON text.
    """
    answer = {**ANSWER, **(ENHANCED if with_enhanced else {})}
    own = _own_types(lines, answer)
    schema = pa.schema([*((name, kind or pa.string()) for name, kind in own.items()), *answer.items()])
    with pq.ParquetWriter(path, schema) as writer:
        for rows in _chunks(lines):
            columns = [_own_array(rows, name, kind) for name, kind in own.items()]
            columns += [pa.array([row[name] for row in rows], kind) for name, kind in answer.items()]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def _chunks(lines: Iterable[bytes]) -> Iterator[Rows]:
    remaining = iter(lines)
    while chunk := list(islice(remaining, _ROWS_PER_GROUP)):
        yield [msgspec.json.decode(line) for line in chunk]


def _own_types(lines: Iterable[bytes], answer: dict[str, pa.DataType]) -> dict[str, pa.DataType | None]:
    """Gives the type of every column of the input; None stands for JSON text."""
    types: dict[str, pa.DataType | None] = {}
    for rows in _chunks(lines):
        names = dict.fromkeys(name for row in rows for name in row if name not in answer)
        for name in names:
            kind = _inferred([row.get(name) for row in rows])
            types[name] = kind if name not in types else _common(types[name], kind)
    return {name: _settled(kind) for name, kind in types.items()}


def _inferred(values: list[Any]) -> pa.DataType | None:
    try:
        return pa.array(values).type
    except (pa.ArrowException, OverflowError):
        return None


def _common(left: pa.DataType | None, right: pa.DataType | None) -> pa.DataType | None:
    if left is None or right is None:
        return None
    try:
        schemas = [pa.schema([("", kind)]) for kind in (left, right)]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return None


def _settled(kind: pa.DataType | None) -> pa.DataType | None:
    """Nothing but nulls is text; a struct without fields cannot be written."""
    if kind is None or pa.types.is_null(kind):
        return None if kind is None else pa.string()
    if pa.types.is_list(kind):
        inner = _settled(kind.value_type)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_struct(kind):
        fields = [(field.name, _settled(field.type)) for field in kind]
        return None if not fields or any(inner is None for _, inner in fields) else pa.struct(fields)
    return kind


def _own_array(rows: Rows, name: str, kind: pa.DataType | None) -> pa.Array:
    if kind is None:
        return pa.array([msgspec.json.encode(row[name]).decode() if name in row else None for row in rows])
    return pa.array([row.get(name) for row in rows], kind)
