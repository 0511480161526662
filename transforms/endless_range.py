"""Ranges of offsets without an end, and the tracker that lets a splittable DoFn go through them in rounds."""

from copy import copy
from typing import Any

from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from apache_beam.transforms.core import RestrictionProvider

NO_END = 2**62
"""Offsets are 63 bits; the end of a restriction must leave room for arithmetic.

Claiming it says that nothing is left, which sends the watermark to its end.
"""

NOTHING_LOST = -1
"""The place before which nothing has been lost."""


BEGINNING_OF_TIME = 0
"""The stream time of what has not been read yet."""


class EndlessRange(OffsetRange):
    """All offsets from `start` on.

    What is known of the partition up to there stays with what is left to read, through checkpoints and restarts:
    lost_before: where reading has gone on after the newest records that were lost; time_ms: its stream time.
    """

    def __init__(
        self, start: int, stop: int = NO_END, lost_before: int = NOTHING_LOST, time_ms: int = BEGINNING_OF_TIME
    ) -> None:
        super().__init__(start, stop)
        self.lost_before = lost_before
        self.time_ms = time_ms

    def split_at(self, split_pos: int) -> tuple["EndlessRange", "EndlessRange"]:
        """Gives what is before a place, and the rest."""
        known = self.lost_before, self.time_ms
        return EndlessRange(self.start, split_pos, *known), EndlessRange(split_pos, self.stop, *known)


class EndlessRangeTracker(OffsetRestrictionTracker):
    """Never splits ahead of what has been claimed: half of an endless range begins at an offset that never comes."""

    def __init__(self, offsets: EndlessRange) -> None:
        # A copy: what becomes known of the partition meanwhile is not known at the checkpoint that this began with.
        super().__init__(copy(offsets))

    def try_split(self, fraction_of_remainder: float) -> tuple[EndlessRange, EndlessRange] | None:
        """Gives what has been claimed and the rest; None for any other place."""
        return None if fraction_of_remainder > 0 else super().try_split(fraction_of_remainder)

    def is_bounded(self) -> bool:
        """Says that there is no end."""
        return False


class EndlessRanges(RestrictionProvider):
    """What splittable DoFns over endless ranges have in common; each says where the range of an element begins."""

    def create_tracker(self, restriction: EndlessRange) -> EndlessRangeTracker:
        return EndlessRangeTracker(restriction)

    # Any: the elements are those of the DoFn.
    def restriction_size(self, element: Any, restriction: EndlessRange) -> float:
        return 1.0

    def truncate(self, element: Any, restriction: EndlessRange) -> None:
        """Leaves nothing of a range where a job is drained; sessions then end by their timers."""
        return None
