"""Part files: finished rows of the work, written whole or not at all, found again by their keys."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from transforms.atomic_file import atomic_path
from transforms.tally import Tally, is_retriable, tally_lines

FOLDER = ".parts"
"""Where parts lie, below the output folder."""

_ENDING = ".part"


class FinishedRow(NamedTuple):
    """One row of the results. key: of row_key; line: its JSON object."""

    key: str
    line: bytes


class PartHeader(msgspec.Struct, frozen=True, array_like=True):
    """What a part holds, by row in their order.

    again: 1 where the next run is to try again; sizes: bytes of the row with its line end.
    """

    keys: list[str]
    again: list[int]
    sizes: list[int]
    tally: Tally


def write_part(folder: Path, name: str, rows: Sequence[FinishedRow]) -> Tally:
    """Writes the rows, in their order, over what there may be of that name, and counts them."""
    tally = tally_lines(row.line for row in rows)
    again = [int(tally.retriable > 0 and is_retriable(row.line)) for row in rows]
    header = PartHeader([row.key for row in rows], again, [len(row.line) + 1 for row in rows], tally)
    with atomic_path(part_path(folder, name)) as path, open(path, "wb") as file:
        file.write(msgspec.json.encode(header) + b"\n")
        file.writelines(row.line + b"\n" for row in rows)
    return tally


def read_header(folder: Path, name: str) -> tuple[PartHeader, int]:
    """Gives what a part holds, and the position of its first row in bytes, without reading the rows."""
    with open(part_path(folder, name), "rb") as file:
        first = file.readline()
    return msgspec.json.decode(first, type=PartHeader), len(first)


def read_part(folder: Path, name: str) -> Iterator[bytes]:
    """Gives the lines of a part, without their line ends."""
    with open(part_path(folder, name), "rb") as file:
        file.readline()
        for line in file:
            yield line[:-1]


def read_rows(folder: Path, name: str, keys: Collection[str]) -> Iterator[FinishedRow]:
    """Gives the rows of a part that have these keys, in the order of the part."""
    header, position = read_header(folder, name)
    wanted = set(keys)
    with open(part_path(folder, name), "rb") as file:
        for key, size in zip(header.keys, header.sizes, strict=True):
            if key in wanted:
                file.seek(position)
                yield FinishedRow(key, file.read(size)[:-1])
            position += size


def part_names(folder: Path) -> list[str]:
    """Gives the names of all parts in a folder, sorted; none where there is no folder."""
    return sorted(path.name.removesuffix(_ENDING) for path in folder.glob(f"*{_ENDING}"))


def keep_parts(folder: Path, names: Iterable[str]) -> None:
    """Removes all parts but these."""
    for name in set(part_names(folder)) - set(names):
        part_path(folder, name).unlink(missing_ok=True)


def part_path(folder: Path, name: str) -> Path:
    """Gives the file of a part."""
    return folder / f"{name}{_ENDING}"


def remove_unfinished(output: Path) -> None:
    """Removes what writers that were killed have left below a folder. Nobody else may be writing there."""
    for base, _, names in os.walk(output):
        for name in names:
            if name.startswith(".") and name.endswith(".tmp"):
                os.unlink(os.path.join(base, name))
