"""Registers RowCoder for the batch job's records; importing it is enough."""

from apache_beam.coders import RowCoder, registry

from model_runtime.records import Word
from transforms.records import ClipResult, ClipRow, Part, PartDone, PartRange, Segment, Shard, Slice, Source

for _record in (Word, Source, Slice, Part, PartDone, ClipRow, Segment, ClipResult, PartRange, Shard):
    registry.register_coder(_record, RowCoder)
