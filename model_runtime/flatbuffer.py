"""A reader of flatbuffer tables that never reads beyond the file: each offset and length is checked first."""

import mmap
import struct
from collections.abc import Iterator

__all__ = ["DamagedError", "Table"]


class DamagedError(Exception):
    """An offset or length in the file does not fit its size."""


class Table:
    """A flatbuffer table: fields by number, all reads within the file."""

    def __init__(self, data: mmap.mmap, position: int) -> None:
        self._data = data
        self._position = position
        vtable = position - self._unpack("<i", position)
        vtable_bytes, table_bytes = self._unpack("<H", vtable), self._unpack("<H", vtable + 2)
        if vtable_bytes < 4 or table_bytes < 4:
            raise DamagedError(f"no table at byte {position}")
        self.check_within(vtable, vtable_bytes)
        self.check_within(position, table_bytes)
        self._vtable = struct.unpack_from(f"<{vtable_bytes // 2 - 2}H", data, vtable + 4)

    def check_within(self, start: int, length: int) -> None:
        """Checks that bytes lie within the file."""
        if start < 0 or length < 0 or start + length > len(self._data):
            raise DamagedError(f"bytes {start} to {start + length} are needed, the file ends at {len(self._data)}")

    def _unpack(self, code: str, start: int) -> int:
        self.check_within(start, struct.calcsize(code))
        return int(struct.unpack_from(code, self._data, start)[0])

    def _field(self, number: int) -> int:
        """Gives the position of a field, 0 when it is absent."""
        offset = self._vtable[number] if number < len(self._vtable) else 0
        return self._position + offset if offset else 0

    def number(self, number: int, code: str, default: int = 0) -> int:
        """Gives a scalar field."""
        start = self._field(number)
        return self._unpack(f"<{code}", start) if start else default

    def _span(self, number: int, item_bytes: int) -> tuple[int, int]:
        """Gives where a vector's items begin and how many there are; (0, 0) when it is absent."""
        field = self._field(number)
        if not field:
            return 0, 0
        start = field + self._unpack("<I", field)
        count = self._unpack("<I", start)
        self.check_within(start + 4, count * item_bytes)
        return start + 4, count

    def check_bytes(self, number: int) -> None:
        """Checks that a vector of bytes lies within the file."""
        self._span(number, 1)

    def integers(self, number: int, code: str = "i") -> tuple[int, ...]:
        """Gives a vector of integers."""
        start, count = self._span(number, struct.calcsize(f"<{code}"))
        return struct.unpack_from(f"<{count}{code}", self._data, start)

    def floats(self, number: int) -> tuple[float, ...]:
        """Gives a vector of float32."""
        start, count = self._span(number, 4)
        return struct.unpack_from(f"<{count}f", self._data, start)

    def text(self, number: int) -> str:
        """Gives a string, "" when it is absent."""
        start, count = self._span(number, 1)
        return bytes(self._data[start : start + count]).decode("utf-8", "replace")

    def table(self, number: int) -> "Table | None":
        """Gives a table field."""
        field = self._field(number)
        return Table(self._data, field + self._unpack("<I", field)) if field else None

    def tables(self, number: int) -> Iterator["Table"]:
        """Gives the tables of a vector of tables."""
        start, count = self._span(number, 4)
        for item in range(start, start + 4 * count, 4):
            yield Table(self._data, item + self._unpack("<I", item))
