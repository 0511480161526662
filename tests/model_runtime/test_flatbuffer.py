"""The bounds-checked reader of flatbuffer tables."""

import mmap
import struct
from pathlib import Path

import pytest

from model_runtime.flatbuffer import DamagedError, Table

# vtable at 0: its size 8, the table's size 12, field 0 at 4, field 1 at 8. Table at 8: back to the vtable, an int32,
# an offset to a vector at 20 (2 bytes: "hi").
GOOD = struct.pack("<HHHHiiI", 8, 12, 4, 8, 8, -7, 4) + struct.pack("<I2s", 2, b"hi")


def table(tmp_path: Path, data: bytes, position: int = 8) -> Table:
    path = tmp_path / "data"
    path.write_bytes(data)
    with path.open("rb") as file:
        return Table(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), position)


def test_scalars_and_strings_are_read_by_field_number(tmp_path: Path) -> None:
    good = table(tmp_path, GOOD)
    assert good.number(0, "i") == -7
    assert good.text(1) == "hi"
    assert good.integers(1, "B") == (104, 105)


def test_absent_fields_have_their_defaults(tmp_path: Path) -> None:
    good = table(tmp_path, GOOD)
    assert good.number(5, "i", 3) == 3
    assert good.text(5) == ""
    assert good.table(5) is None
    assert list(good.tables(5)) == []


def test_a_vector_that_ends_behind_the_file_is_damage(tmp_path: Path) -> None:
    damaged = table(tmp_path, GOOD[:20] + struct.pack("<I2s", 3, b"hi"))
    with pytest.raises(DamagedError, match="bytes 24 to 27 are needed, the file ends at 26"):
        damaged.text(1)


def test_an_offset_back_before_the_file_is_damage(tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match="bytes -92 to -90"):
        table(tmp_path, GOOD[:8] + struct.pack("<i", 100) + GOOD[12:])


def test_a_table_too_small_for_itself_is_damage(tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match="no table at byte 8"):
        table(tmp_path, struct.pack("<HH", 2, 12) + GOOD[4:])
