"""How far the workers of one machine have come, through a file that they append to."""

import os
from typing import NamedTuple


class ProgressFile(NamedTuple):
    """A count that several processes add to: the length of a file, one byte each (appends are atomic)."""

    path: str

    def add(self, count: int) -> None:
        """Adds to the count."""
        with open(self.path, "ab", buffering=0) as file:
            file.write(b"." * count)

    def total(self) -> int:
        """Gives the count; 0 before the first add."""
        try:
            return os.path.getsize(self.path)
        except FileNotFoundError:
            return 0
