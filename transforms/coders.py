"""Registers RowCoder for the batch job's records; importing it is enough."""

from apache_beam.coders import RowCoder, registry

from model_runtime.records import Word
from transforms.records import ClipResult, ClipRow, ResultLine, Segment, Slice, Source

for _record in (Word, Source, Slice, ClipRow, Segment, ClipResult, ResultLine):
    registry.register_coder(_record, RowCoder)
