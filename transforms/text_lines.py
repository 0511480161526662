"""Files of one row a line: cut into runs of lines, and read from the middle."""

from collections.abc import Iterator
from typing import NamedTuple

from transforms.file_access import open_file

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"


class LineRun(NamedTuple):
    """Lines that are read at once. first: number of the first, from 1; rows: those that are not blank."""

    first: int
    rows: int
    offset_bytes: int


def split_lines(path: str, rows_per_run: int) -> Iterator[LineRun]:
    """Gives the runs of a file. Reads it once, and holds one line at a time; a byte order mark is left out.

    Raises:
        OSError: it cannot be read.
    """
    with open_file(path) as file:
        at = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
        file.seek(at)
        first, start, rows = 1, at, 0
        for number, text in enumerate(file, 1):
            if text.strip(_BLANK):
                if rows == rows_per_run:
                    yield LineRun(first, rows, start)
                    first, start, rows = number, at, 0
                rows += 1
            at += len(text)
        if rows:
            yield LineRun(first, rows, start)


def read_lines(path: str, run: LineRun) -> Iterator[tuple[int, bytes | None]]:
    """Gives number and text of each line that is not blank; None for one that has gone since the file was split.

    Raises:
        OSError: it cannot be read.
    """
    with open_file(path) as file:
        file.seek(run.offset_bytes)
        number, left = run.first, run.rows
        while left:
            text = file.readline()
            if not text or text.strip(_BLANK):
                yield number, text or None
                left -= 1
            number += 1
