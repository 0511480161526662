"""What earlier runs have finished, found by the keys of rows."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from transforms.part_file import part_names, part_path, read_header

_PLACE = np.dtype([("head", "<u8"), ("tail", "<u8"), ("part", "<u4"), ("size", "<u4"), ("first", "<u8")])
_NONE = np.zeros(0, _PLACE)


class FoundRow(NamedTuple):
    """A row that is finished: the name of the part that it is in, and its JSON object."""

    part: str
    line: bytes


class FinishedRows:
    """The rows of all parts of a folder that need not be done again. Read-only; takes 32 bytes a row.

    Errors that another run may do better are not among them.
    """

    def __init__(self, folder: Path | None) -> None:
        """folder: that of the parts; None: nothing counts as finished."""
        self._folder = folder or Path()
        self._names = part_names(folder) if folder else []
        tables = [_table(self._folder, name, number) for number, name in enumerate(self._names)] or [_NONE]
        rows = np.concatenate(tables)
        self._rows = rows[np.argsort(rows["head"], kind="stable")]
        self._heads = np.ascontiguousarray(self._rows["head"])

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, key: str) -> FoundRow | None:
        """Gives the result with this key; None where there is none."""
        row = self._find(key)
        if row is None:
            return None
        name = self._names[int(row["part"])]
        with open(part_path(self._folder, name), "rb") as file:
            file.seek(int(row["first"]))
            return FoundRow(name, file.read(int(row["size"]))[:-1])

    def _find(self, key: str) -> np.void | None:
        head, tail = int(key[:16], 16), int(key[16:], 16)
        at = int(np.searchsorted(self._heads, np.uint64(head)))
        while at < len(self._rows) and int(self._heads[at]) == head:
            row: np.void = self._rows[at]
            if int(row["tail"]) == tail:
                return row
            at += 1
        return None


def _table(folder: Path, name: str, number: int) -> np.ndarray:
    """[rows] of _PLACE: the rows of one part that need not be done again."""
    header, start = read_header(folder, name)
    table = np.zeros(len(header.keys), _PLACE)
    keys = np.frombuffer(bytes.fromhex("".join(header.keys)), ">u8").reshape(-1, 2)
    table["head"], table["tail"] = keys[:, 0], keys[:, 1]
    table["part"], table["size"] = number, header.sizes
    table["first"] = start + np.cumsum(header.sizes, dtype=np.uint64) - table["size"]
    finished: np.ndarray = table[np.array(header.again, bool) == 0]
    return finished
