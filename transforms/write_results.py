"""WriteResults: one line or table row for every row of the input, in its order, in files that appear whole."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

import apache_beam as beam
from msgspec import Meta, Struct

import transforms.coders  # noqa: F401  (registers the records' coders)
from transforms.atomic_file import atomic_path
from transforms.records import ClipResult, ResultLine
from transforms.result_lines import to_ctm, to_line
from transforms.result_table import write_table

# Not a row: makes every shard appear, also one without rows.
_NO_ROW = ResultLine(-1, -1, b"")


class ResultsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How results are written."""

    formats: tuple[Literal["jsonl", "parquet", "ctm"], ...] = ("jsonl", "parquet")  # ctm has the words alone
    name: Annotated[str, Meta(min_length=1)] = "results"  # of the files, without ending
    shards: Annotated[int, Meta(ge=1, le=10_000)] = 1  # files per format; 1 keeps all rows in the input's order

    def __post_init__(self) -> None:
        if not self.formats or len(set(self.formats)) != len(self.formats):
            raise ValueError(f"formats must name jsonl, parquet, ctm or several, none twice, got {list(self.formats)}")
        if os.path.basename(self.name) != self.name or self.name.startswith("."):
            raise ValueError(f"name must be a plain file name, got {self.name!r}")


class WriteResults(beam.PTransform):
    """Writes results: ClipResult -> the paths written.

    With one shard the rows stand in the input's order; with more they are dealt out in turn, each file in order.
    """

    def __init__(self, output: str, config: ResultsConfig, with_enhanced: bool) -> None:
        super().__init__()
        self._output = output
        self._config = config
        self._with_enhanced = with_enhanced

    def expand(self, results: beam.PCollection[ClipResult]) -> beam.PCollection[str]:
        shards = self._config.shards
        keyed = results | "ToLine" >> beam.Map(_keyed_line, shards, self._with_enhanced).with_output_types(
            tuple[int, ResultLine]
        )
        empty = (
            results.pipeline
            | "Shards" >> beam.Create(range(shards), reshuffle=False)
            | "NoRow" >> beam.Map(lambda shard: (shard, _NO_ROW)).with_output_types(tuple[int, ResultLine])
        )
        return (
            (keyed, empty)
            | "Together" >> beam.Flatten()
            | "Shard" >> beam.GroupByKey()
            | "Write"
            >> beam.ParDo(_WriteShardFn(self._output, self._config, self._with_enhanced)).with_output_types(str)
        )


def write_shard(
    lines: Iterable[ResultLine], shard: int, output: str, config: ResultsConfig, with_enhanced: bool
) -> list[str]:
    """Writes the files of one shard and gives their paths; a repeat writes the same files again."""
    ordered = [line.line for line in sorted(lines, key=lambda line: (line.source, line.row)) if line.source >= 0]
    suffix = f"-{shard:05d}-of-{config.shards:05d}" if config.shards > 1 else ""
    written = []
    for form in config.formats:
        path = Path(output) / f"{config.name}{suffix}.{form}"
        with atomic_path(path) as temporary:
            if form == "parquet":
                write_table(ordered, temporary, with_enhanced)
                continue
            with open(temporary, "wb") as file:
                file.writelines(line + b"\n" if form == "jsonl" else to_ctm(line).encode() for line in ordered)
        written.append(str(path))
    return written


def _keyed_line(result: ClipResult, shards: int, with_enhanced: bool) -> tuple[int, ResultLine]:
    return (result.source + result.row) % shards, to_line(result, with_enhanced)


class _WriteShardFn(beam.DoFn):
    def __init__(self, output: str, config: ResultsConfig, with_enhanced: bool) -> None:
        super().__init__()
        self._output = output
        self._config = config
        self._with_enhanced = with_enhanced

    def process(self, element: tuple[int, Iterable[ResultLine]]) -> Iterator[str]:
        shard, lines = element
        yield from write_shard(lines, shard, self._output, self._config, self._with_enhanced)
