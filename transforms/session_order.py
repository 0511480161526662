"""The order of a session's chunks: which is next, which came twice, which came too late. Knows no Beam.

There is no reorder buffer yet: a chunk that skips others is taken at once, and those it skipped are late when they
come after all. A buffer belongs here: `take` would answer WAIT, and the session would ask for what is due.
"""

from enum import Enum

import msgspec

from service.wire import NO_SEQUENCE

_MOST_HOLES = 32


class Verdict(Enum):
    """What to do with a chunk."""

    NEXT = "next"
    DUPLICATE = "duplicate"
    LATE = "late"


class Order(msgspec.Struct, array_like=True):
    """Where a session stands in the order of its chunks; part of its state, so small.

    gaps and duplicates count chunks; holes are the ranges [first, last) that have been skipped, the newest 32.
    """

    next_sequence: int = 0
    last_offset: int = -1
    gaps: int = 0
    duplicates: int = 0
    holes: list[tuple[int, int]] = []

    def take(self, sequence: int, offset: int) -> Verdict:
        """Takes note of a chunk. Without a sequence number the offset is the order (-1: there is none either)."""
        if sequence == NO_SEQUENCE:
            verdict = Verdict.DUPLICATE if 0 <= offset <= self.last_offset else Verdict.NEXT
        elif sequence >= self.next_sequence:
            verdict = Verdict.NEXT
            if sequence > self.next_sequence:
                self.gaps += sequence - self.next_sequence
                self.holes = [*self.holes, (self.next_sequence, sequence)][-_MOST_HOLES:]
            self.next_sequence = sequence + 1
        else:
            verdict = Verdict.LATE if self._fill(sequence) else Verdict.DUPLICATE
        if verdict is Verdict.DUPLICATE:
            self.duplicates += 1
        self.last_offset = max(self.last_offset, offset)
        return verdict

    def _fill(self, sequence: int) -> bool:
        """Takes one number out of the holes; False if it was in none."""
        for index, (first, last) in enumerate(self.holes):
            if first <= sequence < last:
                rest = [part for part in ((first, sequence), (sequence + 1, last)) if part[0] < part[1]]
                self.holes = self.holes[:index] + rest + self.holes[index + 1 :]
                return True
        return False
