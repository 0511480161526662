"""How far a session, and the partition it comes from, are behind. Knows no Beam."""

from collections.abc import Sequence
from typing import NamedTuple

from transforms.stream_records import Chunk


class Lag(NamedTuple):
    """How far behind the newest chunk of a session was when its turn came.

    ms: from its capture to now, None where there is no capture time; records: what its partition held behind it when it
    was read.
    """

    ms: int | None
    records: int


def measure_lag(chunks: Sequence[Chunk], now_ms: int) -> Lag:
    """Gives the lag of a session whose chunks of a turn these are, in the order in which they were read."""
    newest = chunks[-1]
    return Lag(None if newest.substituted else max(0, now_ms - newest.event_ms), newest.behind)
