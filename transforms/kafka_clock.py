"""The time of a partition: what a record's timestamp is worth, and how far the watermark may go. Knows no Kafka."""

import threading
from collections.abc import Hashable
from typing import NamedTuple

FIRST_EVENT_MS = 1_293_840_000_000
"""2011-01-01: what claims to be older is no capture time."""

# Who is further behind the clock is not about to catch up: his audio is a recording, or his client has given it up
# (delivery.timeout.ms is 2 minutes by default).
_CATCHING_UP_MS = 120_000


class EventTime(NamedTuple):
    """When a record's audio was captured (Unix ms); `substituted` where the time of reading stands in."""

    event_ms: int
    substituted: bool


def event_time(timestamp_ms: int | None, now_ms: int, max_future_ms: int) -> EventTime:
    """Gives the event time of a record with this timestamp, read at `now_ms`.

    None and -1 are what clients give for "no timestamp". One far in the future is a wrong clock, or microseconds or
    nanoseconds: taken at its word it would push the watermark past every live session. One from before there was Kafka
    is a clock that was never set, or seconds. Any other past is left as it is: a topic may be read years later.
    """
    if timestamp_ms is None or not FIRST_EVENT_MS <= timestamp_ms <= now_ms + max_future_ms:
        return EventTime(now_ms, True)
    return EventTime(timestamp_ms, False)


class PartitionClock:
    """The time of one partition, which never goes back: the newest event time seen, or the clock while it is idle."""

    def __init__(self, allowed_disorder_ms: int, idle_partition_ms: int) -> None:
        self._allowed_disorder_ms = allowed_disorder_ms
        self._idle_partition_ms = idle_partition_ms
        self._seen_ms = 0
        self._idle_since_ms: int | None = None
        self._away_since_ms: int | None = None
        # How long the partition must be quiet this time.
        self._patience_ms = 0

    def restart(self) -> None:
        """Forgets the time that has been reached: records are read again, and the runner knows since when."""
        self._seen_ms = 0
        self._idle_since_ms = self._away_since_ms = None

    @property
    def time_ms(self) -> int:
        """The stream time that has been reached."""
        return self._seen_ms

    def begin_round(self, time_ms: int) -> None:
        """Begins a round of reading; `time_ms` is where the last one, perhaps in another process, has left it.

        Time steps on by 1 ms, so the records of two rounds never share a time and cannot be mixed up by a runner that
        sorts by it; within a round runners keep the order of equal times.
        """
        self._seen_ms = max(self._seen_ms, time_ms) + 1

    def stamp(self, event_ms: int) -> int:
        """Gives the stream time of the next record."""
        self._seen_ms = max(self._seen_ms, event_ms)
        return self._seen_ms

    def end_round(self, now_ms: int, got_records: bool, caught_up: bool) -> int:
        """Gives the watermark (ms) after a round.

        A partition that has been quiet for `idle_partition_ms` and read to its end follows the clock, so that it does
        not hold the timers of the others; one whose end is not known holds the watermark. Where its time is behind the
        clock when it becomes quiet, it must be quiet for as long again. For the broker was away, or this process, or
        the senders: they have to find back, and send one after the other what they could not send.
        """
        if got_records:
            self._idle_since_ms = self._away_since_ms = None
        elif not caught_up:
            self._idle_since_ms = None
            self._away_since_ms = self._away_since_ms or now_ms
        else:
            if self._idle_since_ms is None:
                self._idle_since_ms = now_ms
                self._patience_ms = self._idle_partition_ms + self._behind_ms(now_ms)
            if now_ms - self._idle_since_ms >= self._patience_ms:
                self._away_since_ms = None
                self._seen_ms = max(self._seen_ms, now_ms)
        return max(0, self._seen_ms - self._allowed_disorder_ms)

    def _behind_ms(self, now_ms: int) -> int:
        away_ms = now_ms - (self._away_since_ms or now_ms)
        late_ms = now_ms - self._seen_ms
        return max(away_ms, late_ms if 0 < late_ms <= _CATCHING_UP_MS else 0)


class JointWatermark:
    """The watermark of all partitions of a topic that one process reads: that of the slowest.

    Prism takes what the last bundle has reported for the watermark of all (2.77), and an added partition is
    read in bundles of its own: without this, it would run ahead of the others.
    """

    def __init__(self, forget_after_s: float) -> None:
        """A partition that has not been read for `forget_after_s` has gone elsewhere."""
        self._forget_after_s = forget_after_s
        self._reported: dict[Hashable, tuple[int, float]] = {}
        self._lock = threading.Lock()

    def report(self, partition: Hashable, watermark_ms: int, now_s: float) -> int:
        """Takes a partition's own watermark; gives that of all."""
        with self._lock:
            self._reported[partition] = watermark_ms, now_s
            known = {key: value for key, value in self._reported.items() if now_s - value[1] <= self._forget_after_s}
            self._reported = known
            return min(own_ms for own_ms, _ in known.values())

    def leave(self, partition: Hashable) -> None:
        """Takes note that a partition is not read any more."""
        with self._lock:
            self._reported.pop(partition, None)
