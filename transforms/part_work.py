"""The work on one part, without Beam: rows that earlier runs have finished are taken over, the others are done."""

import uuid
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Protocol

import msgspec

from model_runtime.devices import RouteConfig
from transforms.clip_inference import Engine, InferenceConfig, infer_rows
from transforms.clip_workers import Effort
from transforms.finished_rows import FinishedRows
from transforms.part_file import FOLDER, FinishedRow, read_header, write_part
from transforms.read_clips import read_slice
from transforms.reading_config import ReadingConfig
from transforms.records import ClipResult, ClipRow, Part, PartDone, Slice
from transforms.result_lines import to_line
from transforms.row_key import row_key
from transforms.run_journal import Done, RunJournal
from transforms.subtitles import SubtitlesConfig
from transforms.tally import Tally
from transforms.write_audio import EnhancedConfig, enhanced_path, write_enhanced
from transforms.write_subtitles import subtitle_paths, write_subtitles

# Rows in hand are this many batches, so that clips of like length can share one.
_BATCHES_IN_HAND = 4
# A row with much data counts as several, which bounds the bytes in hand.
_BYTES_PER_ROW = 4 << 20


class WorkOrder(msgspec.Struct, frozen=True):
    """All that workers must know of a run.

    fingerprint: of work_fingerprint; journal: path of the run's journal; force: do all rows anew; max_errors: with
    more bad rows than these the run is over, and what is left is left undone.
    """

    output: str
    recipe: str
    route: RouteConfig
    reading: ReadingConfig
    inference: InferenceConfig
    enhanced: EnhancedConfig
    subtitles: SubtitlesConfig
    fingerprint: str
    journal: str
    force: bool
    max_errors: int

    @property
    def parts_folder(self) -> Path:
        """Where part files lie."""
        return Path(self.output) / FOLDER


class Runner(Protocol):
    """Turns rows into results, one for each, in no order."""

    def run(self, rows: Sequence[ClipRow], effort: Effort) -> Iterator[ClipResult]: ...


class EngineRunner:
    """A runner with the engine in this very process."""

    def __init__(self, engine: Engine, order: WorkOrder) -> None:
        self._engine = engine
        self._order = order

    def run(self, rows: Sequence[ClipRow], effort: Effort) -> Iterator[ClipResult]:
        """Gives one result for every row."""
        return infer_rows(self._engine, rows, self._order.inference, self._order.enhanced.write, tally=effort.calls)


def make_parts(slices: Sequence[Slice], rows_per_part: int, least_parts: int = 0) -> list[Part]:
    """Joins slices to parts of about so many rows, in their order.

    Args:
        least_parts: parts are smaller where there would be fewer than these, so that all workers have some.
    """
    wanted = min(rows_per_part, max(1, sum(part.rows for part in slices) // max(1, least_parts)))
    parts: list[Part] = []
    hand: list[Slice] = []
    rows = 0
    for each in slices:
        hand.append(each)
        rows += each.rows
        if rows >= wanted:
            parts.append(Part(len(parts), hand, rows))
            hand, rows = [], 0
    if hand:
        parts.append(Part(len(parts), hand, rows))
    return parts


class PartWork:
    """Does parts. finished: what earlier runs have done, empty for a run that does all anew."""

    def __init__(self, order: WorkOrder, runner: Runner, finished: FinishedRows) -> None:
        self._order = order
        self._runner = runner
        self._finished = finished
        self._journal = RunJournal(order.journal)
        self._progress = self._journal.follow()

    def do(self, part: Part) -> Iterator[ClipResult | PartDone]:
        """Gives the results of the rows that were done, and at last the part, which then is on the disk.

        The clean audio and the subtitles of a row are written before the part is, so a row in a part is whole.
        """
        if self._progress.read().errors > self._order.max_errors:
            yield PartDone(part.number, "", 0)
            return
        rows: dict[tuple[int, int], FinishedRow] = {}
        hand: list[tuple[str, ClipRow]] = []
        weight = reused = errors = 0
        for row in chain.from_iterable(read_slice(each, self._order.reading) for each in part.slices):
            key = row_key(row, self._order.fingerprint)
            line = self._finished_line(key, row)
            if line is not None:
                rows[row.source, row.row] = FinishedRow(key, line)
                reused += 1
                continue
            hand.append((key, row))
            weight += 1 + (len(row.data) // _BYTES_PER_ROW if row.data else 0)
            if weight >= _BATCHES_IN_HAND * self._order.inference.batch_size:
                errors += yield from self._infer(hand, rows)
                hand, weight = [], 0
        if hand:
            errors += yield from self._infer(hand, rows)
        name, tally = self._commit([rows[place] for place in sorted(rows)])
        self._journal.add(Done(reused, tally.errors - errors, reused, number=part.number, part=name))
        yield PartDone(part.number, name, len(rows))

    def _finished_line(self, key: str, row: ClipRow) -> bytes | None:
        line = self._finished.line(key)
        if line is None or msgspec.json.decode(line, type=_Outcome).error:
            return line
        files = subtitle_paths(row, self._order.output, self._order.subtitles)
        if self._order.enhanced.write:
            files.append(Path(self._order.output) / enhanced_path(row, self._order.enhanced))
        return line if all(file.exists() for file in files) else None

    def _infer(
        self, hand: list[tuple[str, ClipRow]], rows: dict[tuple[int, int], FinishedRow]
    ) -> Generator[ClipResult, None, int]:
        """Adds the hand's results to `rows` and returns how many of them are bad."""
        keys = {(row.source, row.row): key for key, row in hand}
        effort, errors, audio_ms = Effort(), 0, 0
        for result in self._runner.run([row for _, row in hand], effort):
            if result.error:
                errors += 1
            else:
                audio_ms += round(1000 * (result.duration_s or 0.0))
            if self._order.enhanced.write:
                result = write_enhanced(result, self._order.output, self._order.enhanced)
            write_subtitles(result, self._order.output, self._order.subtitles)
            place = result.source, result.row
            rows[place] = FinishedRow(keys[place], to_line(result, self._order.enhanced.write))
            yield result
        calls = effort.calls
        self._journal.add(
            Done(
                rows=len(hand),
                errors=errors,
                audio_ms=audio_ms,
                quarantined=effort.quarantined,
                restarts=effort.restarts,
                wait_ms=effort.wait_ms,
                calls=calls.calls,
                called_rows=calls.rows,
                filled_samples=calls.samples,
                padding_samples=calls.padding,
            )
        )
        return errors

    def _commit(self, rows: Sequence[FinishedRow]) -> tuple[str, Tally]:
        """Puts the rows on the disk, unless a part has just these; gives the part's name.

        A name is never used twice: what another process knows of a part stays true.
        """
        name = self._finished.part_of([row.key for row in rows])
        if name is None or read_header(self._order.parts_folder, name)[0].again.count(1):
            name = uuid.uuid4().hex
            return name, write_part(self._order.parts_folder, name, rows)
        return name, read_header(self._order.parts_folder, name)[0].tally


class _Outcome(msgspec.Struct):
    error: str
