"""The order of a session's chunks: which is next, which must wait, which came twice or too late. Knows no Beam."""

from enum import Enum

import msgspec

from service.wire import NO_SEQUENCE
from transforms.session_config import SessionConfig
from transforms.stream_records import Chunk

_MOST_HOLES = 32


class Verdict(Enum):
    """What to do with a chunk."""

    NEXT = "next"
    EARLY = "early"
    DUPLICATE = "duplicate"
    LATE = "late"


class Order(msgspec.Struct, array_like=True):
    """Where a session stands in the order of its chunks; part of its state, so small.

    partition and last_offset: of the newest chunk; missing and duplicates count chunks; holes are the ranges
    [first, last) that have been given up, the newest 32; waiting are the chunks that came before those they follow,
    sorted by their numbers.
    """

    next_sequence: int = 0
    partition: int = -1
    last_offset: int = -1
    missing: int = 0
    duplicates: int = 0
    holes: list[tuple[int, int]] = []
    waiting: list[Chunk] = []

    def take(self, chunk: Chunk) -> Verdict:
        """Takes note of a chunk; an EARLY one is kept. Without a sequence number the offset is the order (-1: none)."""
        if chunk.partition != self.partition:
            # Partitions have been added, and the key lies elsewhere now: offsets of two of them do not compare.
            self.partition, self.last_offset = chunk.partition, -1
        verdict = self._judge(chunk.sequence, chunk.offset)
        if verdict is Verdict.EARLY:
            self.waiting = sorted([*self.waiting, chunk], key=lambda waiting: waiting.sequence)
        elif verdict is Verdict.DUPLICATE:
            self.duplicates += 1
        elif verdict is Verdict.NEXT and chunk.sequence != NO_SEQUENCE:
            self.next_sequence = chunk.sequence + 1
        self.last_offset = max(self.last_offset, chunk.offset)
        return verdict

    def lies_behind_loss(self, chunk: Chunk) -> bool:
        """Says whether chunks may have been lost before this one, of which no number tells."""
        same = chunk.partition == self.partition
        return same and chunk.sequence == NO_SEQUENCE and self.last_offset < chunk.lost_before <= chunk.offset

    def release(self) -> Chunk | None:
        """Gives the waiting chunk whose turn it is, if there is one, and lets go of it."""
        if not self.waiting or self.waiting[0].sequence != self.next_sequence:
            return None
        chunk, *self.waiting = self.waiting
        self.next_sequence += 1
        return chunk

    def give_up(self) -> int:
        """Gives up the chunks that the first waiting one follows, and says how many they are."""
        first = self.waiting[0].sequence
        count = first - self.next_sequence
        self.missing += count
        self.holes = [*self.holes, (self.next_sequence, first)][-_MOST_HOLES:]
        self.next_sequence = first
        return count

    def is_full(self, config: SessionConfig) -> bool:
        """Says whether more is waiting than may be kept."""
        waiting_bytes = sum(len(chunk.payload or b"") for chunk in self.waiting)
        return len(self.waiting) > config.reorder_chunks or waiting_bytes > config.max_chunk_bytes

    def deadline_ms(self, config: SessionConfig) -> int | None:
        """Gives the stream time at which the first gap is given up; None where nothing waits."""
        if not self.waiting:
            return None
        return min(chunk.stream_ms for chunk in self.waiting) + config.reorder_ms

    def _judge(self, sequence: int, offset: int) -> Verdict:
        if sequence == NO_SEQUENCE:
            return Verdict.DUPLICATE if 0 <= offset <= self.last_offset else Verdict.NEXT
        if sequence == self.next_sequence:
            return Verdict.NEXT
        if sequence > self.next_sequence:
            known = any(chunk.sequence == sequence for chunk in self.waiting)
            return Verdict.DUPLICATE if known else Verdict.EARLY
        return Verdict.LATE if self._fill(sequence) else Verdict.DUPLICATE

    def _fill(self, sequence: int) -> bool:
        """Takes one number out of the holes; False if it was in none."""
        for index, (first, last) in enumerate(self.holes):
            if first <= sequence < last:
                rest = [part for part in ((first, sequence), (sequence + 1, last)) if part[0] < part[1]]
                self.holes = self.holes[:index] + rest + self.holes[index + 1 :]
                return True
        return False
