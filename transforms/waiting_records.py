"""How many records of each partition this process has read and not yet heard, so that reading can wait for hearing."""

import threading
import time
from typing import NamedTuple

# Where nothing of a partition has been heard here for so long, its sessions live in another process, or have ended.
_STALE_S = 10.0


class _Heard(NamedTuple):
    offset: int
    at_s: float


class WaitingRecords:
    """The newest record of each partition that has been heard in this process; thread-safe.

    Sessions of a partition are heard one after the other, so what waits can be up to twice what is counted.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._heard: dict[tuple[str, int], _Heard] = {}

    def heard(self, topic: str, partition: int, offset: int) -> None:
        """Takes note that the record at this offset is done with."""
        with self._changed:
            before = self._heard.get((topic, partition))
            newest = offset if before is None else max(before.offset, offset)
            self._heard[topic, partition] = _Heard(newest, time.monotonic())
            self._changed.notify_all()

    def wait_below(self, topic: str, partition: int, next_offset: int, most: int, timeout_s: float) -> bool:
        """Waits, at most `timeout_s`, until fewer than `most` records before `next_offset` wait; says whether it is so.

        It is so as well where this process hears nothing of the partition: then others bound what waits.
        """
        with self._changed:
            return self._changed.wait_for(lambda: self._count(topic, partition, next_offset) < most, timeout_s)

    def _count(self, topic: str, partition: int, next_offset: int) -> int:
        heard = self._heard.get((topic, partition))
        if heard is None or time.monotonic() - heard.at_s > _STALE_S:
            return 0
        return next_offset - 1 - heard.offset


WAITING = WaitingRecords()
"""Those of this process."""
