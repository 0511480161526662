"""Parts of the work, without Beam: their rows are read, and put together again when all of them are finished."""

import uuid
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import msgspec

from transforms.finished_rows import FinishedRows
from transforms.part_file import read_header, read_rows, write_part
from transforms.read_clips import read_slice
from transforms.records import ClipRow, KeyedRow, Part, PartDone, PartRows, RowKey
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

    A name is never used twice: what another process knows of a part stays true.

    Args:
        rows: all that PartReader and BatchWork have given for the part, in any order.
    """
    groups = [each for each in rows if each.rows]
    keys = [row.key for row in sorted(chain.from_iterable(each.rows for each in groups))]
    folder = order.parts_folder
    if len(groups) == 1 and read_header(folder, groups[0].name)[0].keys == keys:
        name = groups[0].name
    else:
        name = uuid.uuid4().hex
        found = chain.from_iterable(read_rows(folder, each.name, [row.key for row in each.rows]) for each in groups)
        by_key = {row.key: row for row in found}
        write_part(folder, name, [by_key[key] for key in keys])
    RunJournal(order.journal).add(Done(number=number, part=name))
    return PartDone(number, name, len(keys))


class _Outcome(msgspec.Struct):
    error: str
