"""WriteResults: one line or table row for every row of the input, in its order, in files that appear whole."""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Annotated, Literal

import apache_beam as beam
from msgspec import Meta, Struct

import transforms.coders  # noqa: F401  (registers the records' coders)
from transforms.atomic_file import atomic_path
from transforms.part_file import FOLDER, read_part
from transforms.records import PartDone, PartRange, Shard
from transforms.result_lines import to_ctm, to_rttm
from transforms.result_table import write_table

_FORMS: dict[str, Callable[[bytes], bytes]] = {
    "jsonl": lambda line: line + b"\n",
    "ctm": lambda line: to_ctm(line).encode(),
    "rttm": lambda line: to_rttm(line).encode(),
}


class ResultsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How results are written."""

    formats: tuple[Literal["jsonl", "parquet", "ctm", "rttm"], ...] = ("jsonl", "parquet")  # ctm: words, rttm: speech
    name: Annotated[str, Meta(min_length=1)] = "results"  # of the files, without ending
    shards: Annotated[int, Meta(ge=1, le=10_000)] = 1  # files per format; the rows keep the input's order over all
    rows_per_part: Annotated[int, Meta(ge=1, le=100_000)] = 256  # rows in one file of finished work

    def __post_init__(self) -> None:
        if not self.formats or len(set(self.formats)) != len(self.formats):
            raise ValueError(
                f"formats must name jsonl, parquet, ctm, rttm or several, none twice, got {list(self.formats)}"
            )
        if os.path.basename(self.name) != self.name or self.name.startswith("."):
            raise ValueError(f"name must be a plain file name, got {self.name!r}")


class WriteResults(beam.PTransform):
    """Writes the results of all parts: PartDone -> the paths written, none where a part is missing.

    The rows stand in the input's order; with several shards each has a run of them, all about equally many.
    """

    def __init__(self, output: str, config: ResultsConfig, with_enhanced: bool, parts: int) -> None:
        """parts: how many there are; the results are written when all of them are done."""
        super().__init__()
        self._output = output
        self._config = config
        self._with_enhanced = with_enhanced
        self._parts = parts

    def expand(self, done: beam.PCollection[PartDone]) -> beam.PCollection[str]:
        together = done | "Key" >> beam.Map(lambda part: (0, part)).with_output_types(tuple[int, PartDone])
        if not self._parts:
            # Without a part there is still a result, of no rows.
            together = done.pipeline | "NoPart" >> beam.Create([(0, PartDone(0, "", 0))]).with_output_types(
                tuple[int, PartDone]
            )
        shards = (
            together
            | "Together" >> beam.GroupByKey()
            | "Shards" >> beam.ParDo(_PlanShardsFn(self._config.shards, self._parts)).with_output_types(Shard)
        )
        if self._config.shards > 1:
            # Each by whoever is free. One alone goes on where it is: every step costs a local job 10 ms of CPU time.
            shards = shards | "Spread" >> beam.Reshuffle()
        write = _WriteShardFn(self._output, self._config, self._with_enhanced)
        return shards | "Write" >> beam.ParDo(write).with_output_types(str)


def plan_shards(done: Iterable[PartDone], shards: int, parts: int) -> list[Shard]:
    """Gives what stands in each file; nothing if a part is missing, as where the run was over before it was begun."""
    ordered = sorted(part for part in done if part.name)
    if len(ordered) != parts:
        return []
    total = sum(part.rows for part in ordered)
    borders = [total * shard // shards for shard in range(shards + 1)]
    plan = []
    for shard, (begin, end) in enumerate(pairwise(borders)):
        ranges, at = [], 0
        for part in ordered:
            first, last = max(begin - at, 0), min(end - at, part.rows)
            if first < last:
                ranges.append(PartRange(part.name, first, last))
            at += part.rows
        plan.append(Shard(shard, ranges))
    return plan


class _Lines:
    """The lines of a shard, read from the parts every time anew, so that no more than one is held."""

    def __init__(self, folder: Path, shard: Shard) -> None:
        self._folder = folder
        self._shard = shard

    def __iter__(self) -> Iterator[bytes]:
        for part in self._shard.ranges:
            yield from islice(read_part(self._folder, part.name), part.first, part.last)


def write_shard(shard: Shard, output: str, config: ResultsConfig, with_enhanced: bool) -> list[str]:
    """Writes the files of one shard and gives their paths; a repeat writes the same files again."""
    lines = _Lines(Path(output) / FOLDER, shard)
    suffix = f"-{shard.number:05d}-of-{config.shards:05d}" if config.shards > 1 else ""
    written = []
    for form in config.formats:
        path = Path(output) / f"{config.name}{suffix}.{form}"
        with atomic_path(path) as temporary:
            if form == "parquet":
                write_table(lines, temporary, with_enhanced)
                continue
            with open(temporary, "wb") as file:
                file.writelines(_FORMS[form](line) for line in lines)
        written.append(str(path))
    return written


class _PlanShardsFn(beam.DoFn):
    def __init__(self, shards: int, parts: int) -> None:
        super().__init__()
        self._shards = shards
        self._parts = parts

    def process(self, element: tuple[int, Iterable[PartDone]]) -> Iterator[Shard]:
        yield from plan_shards(element[1], self._shards, self._parts)


class _WriteShardFn(beam.DoFn):
    def __init__(self, output: str, config: ResultsConfig, with_enhanced: bool) -> None:
        super().__init__()
        self._output = output
        self._config = config
        self._with_enhanced = with_enhanced

    def process(self, element: Shard) -> Iterator[str]:
        yield from write_shard(element, self._output, self._config, self._with_enhanced)
