"""The work on one batch of rows, without Beam: answers, the files beside them, and one file that makes them last."""

import uuid
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Protocol

from transforms.clip_inference import Engine, InferenceConfig, infer_rows
from transforms.clip_workers import Effort
from transforms.part_file import FinishedRow, write_part
from transforms.records import ClipResult, ClipRow, KeyedRow, PartRows, RowKey
from transforms.result_lines import to_line
from transforms.run_journal import Done, RunJournal
from transforms.tally import Tally
from transforms.work_order import WorkOrder
from transforms.write_audio import write_enhanced
from transforms.write_subtitles import write_subtitles

# So many calls of the models, so that clips of like length can share one.
_CALLS_PER_BATCH = 4
# A row with much data counts as several, which bounds the bytes in hand.
_BYTES_PER_ROW = 4 << 20


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


def batch_weight(config: InferenceConfig) -> int:
    """Gives how much a batch may weigh: so many small rows."""
    return _CALLS_PER_BATCH * config.batch_size


def row_weight(row: ClipRow, config: InferenceConfig) -> int:
    """Gives what a row weighs in a batch, 1..batch_weight: more than 1 if it has much data or says that it is long.

    So a batch holds at most 4 MB a row, and four times max_batch_s of audio that is known to be so long.
    """
    data = len(row.data or b"") / _BYTES_PER_ROW
    audio = (row.duration_s or 0.0) * config.batch_size / config.max_batch_s
    return 1 + int(min(max(data, audio), batch_weight(config) - 1))


class BatchWork:
    """Does batches of rows, of one part or of several."""

    def __init__(self, order: WorkOrder, runner: Runner) -> None:
        self._order = order
        self._runner = runner
        self._journal = RunJournal(order.journal)

    def do(self, batch: Sequence[KeyedRow]) -> Iterator[ClipResult | PartRows]:
        """Gives the results of all rows, and at last, for each part, where its rows lie; they then are on the disk.

        The clean audio and the subtitles of a row are written before its line is, so a row in a file is whole.
        """
        effort = Effort()
        lines: dict[tuple[int, int], bytes] = {}
        for result in self._runner.run([each.row for each in batch], effort):
            if self._order.enhanced.write:
                result = write_enhanced(result, self._order.output, self._order.enhanced)
            write_subtitles(result, self._order.output, self._order.subtitles)
            lines[result.source, result.row] = to_line(result, self._order.enhanced.write)
            yield result
        rows = sorted((each.part, RowKey(each.row.source, each.row.row, each.key)) for each in batch)
        name = uuid.uuid4().hex
        tally = write_part(
            self._order.parts_folder, name, [FinishedRow(row.key, lines[row.source, row.row]) for _, row in rows]
        )
        self._journal.add(_entry(tally, effort))
        for part, of_part in groupby(rows, key=lambda pair: pair[0]):
            yield PartRows(part, name, [row for _, row in of_part])


def _entry(tally: Tally, effort: Effort) -> Done:
    calls = effort.calls
    return Done(
        tally=tally,
        audio_ms=tally.audio_ms,
        quarantined=effort.quarantined,
        restarts=effort.restarts,
        wait_ms=effort.wait_ms,
        calls=calls.calls,
        called_rows=calls.rows,
        filled_samples=calls.samples,
        padding_samples=calls.padding,
        fixed=calls.fixed,
    )
