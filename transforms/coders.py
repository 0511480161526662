"""Registers RowCoder for the batch job's records; importing it is enough."""

from apache_beam.coders import RowCoder, registry

from model_runtime.records import Word
from transforms.records import (
    ClipResult,
    ClipRow,
    KeyedRow,
    Part,
    PartDone,
    PartRange,
    PartRows,
    Piece,
    RowKey,
    Segment,
    Shard,
    Slice,
    Source,
)

for _record in (
    Word,
    Source,
    Slice,
    Part,
    Piece,
    ClipRow,
    KeyedRow,
    RowKey,
    PartRows,
    PartDone,
    Segment,
    ClipResult,
    PartRange,
    Shard,
):
    registry.register_coder(_record, RowCoder)
