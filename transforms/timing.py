"""Where a result's time went, from the capture of the last sample to its writing. Knows no Beam."""

import time
from typing import NamedTuple


class Moments(NamedTuple):
    """When the last sample that a session has taken in came by, in Unix ms of the workers' clocks.

    read_ms: read from Kafka (0: it did not come from there); taken_ms: its session took it; heard_ms: the models began
    to hear it. taken_ms and heard_ms differ where it had to wait for chunks before it.
    """

    read_ms: int = 0
    taken_ms: int = 0
    heard_ms: int = 0


class Timing(NamedTuple):
    """The stretches of a result's way, in ms (docs/streaming.md); until_ms: where the last of them ended (Unix ms).

    With what is left until it is written they add up to the result's latency. ingest_ms is None where there is no
    capture time that can be true.
    """

    ingest_ms: int | None
    queue_ms: int
    reorder_ms: int
    idle_ms: int
    compute_ms: int
    until_ms: int

    def queued(self, now_ms: int) -> "Timing":
        """Gives the same after it has waited for a worker until `now_ms`."""
        return self._replace(queue_ms=self.queue_ms + _between(self.until_ms, now_ms), until_ms=now_ms)

    def computed(self, now_ms: int) -> "Timing":
        """Gives the same after it has been worked on until `now_ms`."""
        return self._replace(compute_ms=self.compute_ms + _between(self.until_ms, now_ms), until_ms=now_ms)


def begin_timing(captured_ms: int | None, moments: Moments, now_ms: int) -> Timing | None:
    """Gives the stretches up to the turn of work that begins at `now_ms`; None for what did not come from Kafka."""
    if not moments.read_ms:
        return None
    unknown = captured_ms is None or captured_ms > moments.read_ms
    return Timing(
        ingest_ms=None if unknown or captured_ms is None else moments.read_ms - captured_ms,
        queue_ms=_between(moments.read_ms, moments.taken_ms),
        reorder_ms=_between(moments.taken_ms, moments.heard_ms),
        idle_ms=_between(moments.heard_ms, now_ms),
        compute_ms=0,
        until_ms=now_ms,
    )


def timing_fields(timing: Timing, now_ms: int) -> dict[str, int | None]:
    """Gives the wire form of what is written at `now_ms`."""
    fields = timing._asdict()
    fields["emit_ms"] = _between(fields.pop("until_ms"), now_ms)
    return fields


def clock_ms() -> int:
    """Gives the time of this machine's clock in Unix ms."""
    return time.time_ns() // 1_000_000


def _between(begin_ms: int, end_ms: int) -> int:
    # Clocks of two workers differ, and one can be set back.
    return max(0, end_ms - begin_ms)
