"""Parts of the work, without Beam: their rows are read, and put together again when all of them are finished."""

import uuid
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path

import msgspec

from transforms.batch_work import entry, finish_row
from transforms.clip_workers import Effort
from transforms.cut_rows import audio_path
from transforms.finished_rows import FinishedRows
from transforms.join_pieces import from_piece_line, join_pieces
from transforms.part_file import FinishedRow, read_header, read_rows, write_part
from transforms.read_clips import read_slice
from transforms.records import ClipResult, ClipRow, KeyedRow, Part, PartDone, PartRows, RowKey
from transforms.row_key import row_key
from transforms.run_journal import Done, RunJournal
from transforms.tally import tally_lines
from transforms.work_order import WorkOrder
from transforms.write_audio import enhanced_path
from transforms.write_subtitles import subtitle_paths


class PartReader:
    """Reads parts. finished: what earlier runs have done, empty for a run that does all anew."""

    def __init__(self, order: WorkOrder, finished: FinishedRows) -> None:
        self._order = order
        self._finished = finished
        self._journal = RunJournal(order.journal)
        self._progress = self._journal.follow()

    def read(self, part: Part) -> Iterator[KeyedRow | PartRows]:
        """Gives the rows that are to be done, and at last, once or oftener, where the others lie.

        A part of a run that is over gives nothing at all.
        """
        if self._progress.read().errors > self._order.max_errors:
            return
        finished: dict[str, list[RowKey]] = {}
        lines: list[bytes] = []
        for row in chain.from_iterable(read_slice(each, self._order.reading) for each in part.slices):
            key = row_key(row, self._order.fingerprint)
            found = self._finished.find(key)
            is_bad = found is not None and bool(msgspec.json.decode(found.line, type=_Outcome).error)
            if found is None or not (is_bad or self._has_files(row)):
                yield KeyedRow(part.number, key, row)
                continue
            finished.setdefault(found.part, []).append(RowKey(row.source, row.row, key))
            lines.append(found.line)
        self._journal.add(Done(tally_lines(lines), len(lines)))
        for name, keys in (finished or {"": []}).items():
            yield PartRows(part.number, name, keys)

    def _has_files(self, row: ClipRow) -> bool:
        """Whether the clean audio and the subtitles of a good row are still there."""
        files = subtitle_paths(row, self._order.output, self._order.subtitles)
        if self._order.enhanced.write:
            files.append(Path(self._order.output) / enhanced_path(row, self._order.enhanced))
        return all(file.exists() for file in files)


def commit_part(order: WorkOrder, number: int, rows: Iterable[PartRows]) -> PartDone:
    """Puts the rows of a part into one file, in the input's order, unless there is a file with just these.

    The pieces of a recording become its row. A name is never used twice: what another process knows of a part stays
    true.

    Args:
        rows: all that PartReader, CutWork and BatchWork have given for the part, in any order.
    """
    groups = [each for each in rows if each.rows]
    keys = sorted(chain.from_iterable(each.rows for each in groups), key=lambda row: (row.source, row.row, row.piece))
    folder, joined = order.parts_folder, list[bytes]()
    if len(groups) == 1 and read_header(folder, groups[0].name)[0].keys == [row.key for row in keys if row.piece < 0]:
        name, count = groups[0].name, len(keys)
    else:
        name = uuid.uuid4().hex
        found = chain.from_iterable(read_rows(folder, each.name, [row.key for row in each.rows]) for each in groups)
        by_key = {row.key: row for row in found}
        lines = list[FinishedRow]()
        for _, of_row in groupby(keys, key=lambda row: (row.source, row.row)):
            first, *others = of_row
            if first.piece < 0:
                lines.append(by_key[first.key])
                continue
            pieces = [from_piece_line(by_key[row.key].line) for row in (first, *others)]
            lines.append(_finished(order, pieces[0], join_pieces(pieces)))
            joined.append(lines[-1].line)
        write_part(folder, name, lines)
        count = len(lines)
    RunJournal(order.journal).add(entry(joined, Effort(), number, name))
    return PartDone(number, name, count)


def _finished(order: WorkOrder, piece: ClipResult, joined: ClipResult) -> FinishedRow:
    """Gives the row of a recording, and removes what its pieces needed."""
    key = piece.piece.row_key if piece.piece else ""
    audio_path(order.parts_folder, key).unlink(missing_ok=True)
    if order.enhanced.write and not joined.error:
        joined = joined._replace(enhanced_path=enhanced_path(joined, order.enhanced))
    return FinishedRow(key, finish_row(joined, order))


class _Outcome(msgspec.Struct):
    error: str
