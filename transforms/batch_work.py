"""The work on one batch of rows, without Beam: answers, the files beside them, and one file that makes them last."""

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Protocol

from transforms.clip_inference import LONG_S, Engine, InferenceConfig, infer_rows
from transforms.clip_workers import Effort
from transforms.join_pieces import to_piece_line
from transforms.part_file import FinishedRow, write_part
from transforms.records import ClipResult, ClipRow, KeyedRow, PartRows, RowKey, place_of
from transforms.result_lines import to_line
from transforms.run_journal import Done, RunJournal
from transforms.tally import tally_lines
from transforms.work_order import WorkOrder
from transforms.write_subtitles import write_subtitles

# So many calls of the models, so that clips of like length can share one.
_CALLS_PER_BATCH = 4
# A row with much data counts as several, which bounds the bytes in hand.
_BYTES_PER_ROW = 4 << 20
_KEEP_AFTER_S = 30.0


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
        return infer_rows(self._engine, rows, self._order.inference, self._order.clean, tally=effort.calls)


def batch_weight(config: InferenceConfig) -> int:
    """Gives how much a batch may weigh: so many small rows."""
    return _CALLS_PER_BATCH * config.batch_size


def row_weight(row: ClipRow, config: InferenceConfig) -> int:
    """Gives what a row weighs in a batch, 1..batch_weight: more than 1 if it has much data or says that it is long.

    So a batch holds at most 4 MB a row, and four times max_batch_s of audio that is known to be so long. Of a recording
    above LONG_S no more than that counts, however long it is: it is not held.
    """
    data = len(row.data or b"") / _BYTES_PER_ROW
    audio = min(row.duration_s or 0.0, LONG_S) * config.batch_size / config.max_batch_s
    return 1 + int(min(max(data, audio), batch_weight(config) - 1))


class BatchWork:
    """Does batches of rows, of one part or of several."""

    def __init__(self, order: WorkOrder, runner: Runner) -> None:
        self._order = order
        self._runner = runner
        self._journal = RunJournal(order.journal)

    def do(self, batch: Sequence[KeyedRow]) -> Iterator[ClipResult | PartRows]:
        """Gives the results of all rows and, once or oftener, where rows of a part lie; they then are on the disk.

        A batch that takes long is kept in steps, each when there is half of what was to come: recordings come last, and
        the clips beside them do not wait for them.
        """
        effort, began = Effort(), time.monotonic()
        rows = {place_of(each.row): each for each in batch}
        done = list[tuple[KeyedRow, ClipResult]]()
        for result in self._runner.run([each.row for each in batch], effort):
            done.append((rows.pop(place_of(result)), result))
            yield result
            if rows and len(done) >= len(rows) and time.monotonic() - began > _KEEP_AFTER_S:
                yield from self.keep(done, Effort())
                done = []
        yield from self.keep(done, effort)

    def keep(self, done: Sequence[tuple[KeyedRow, ClipResult]], effort: Effort) -> Iterator[PartRows]:
        """Writes rows with their results to one file, and gives, for each part, where its rows lie.

        The clean audio and the subtitles of a row are written before its line is, so a row in a file is whole.
        """
        rows = sorted((each.part, row_key_of(each), self._line(result)) for each, result in done)
        name = uuid.uuid4().hex
        if rows:
            write_part(self._order.parts_folder, name, [FinishedRow(key.key, line) for _, key, line in rows])
        # Pieces count when they are together.
        self._journal.add(entry([line for _, key, line in rows if key.piece < 0], effort))
        for part, of_part in groupby(rows, key=lambda row: row[0]):
            yield PartRows(part, name, [key for _, key, _ in of_part])

    def _line(self, result: ClipResult) -> bytes:
        if result.piece is not None:
            return to_piece_line(result)
        return finish_row(result, self._order)


def finish_row(result: ClipResult, order: WorkOrder) -> bytes:
    """Writes the subtitles of a row and gives its line."""
    write_subtitles(result, order.output, order.subtitles)
    return to_line(result, order.enhanced.write, order.answer)


def row_key_of(row: KeyedRow) -> RowKey:
    """Gives the identity of a row or a piece."""
    source, number, piece = place_of(row.row)
    return RowKey(source, number, row.key, piece)


def entry(lines: Iterable[bytes], effort: Effort, number: int = -1, part: str = "") -> Done:
    """Gives what the journal says of rows that are finished, by their lines, and of what it took."""
    calls, tally = effort.calls, tally_lines(lines)
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
        number=number,
        part=part,
    )
