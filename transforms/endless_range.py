"""Ranges of offsets without an end, and the tracker that lets a splittable DoFn go through them in rounds."""

from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker

NO_END = 2**62
"""Offsets are 63 bits; the end of a restriction must leave room for arithmetic.

Claiming it says that nothing is left, which sends the watermark to its end.
"""


def endless_range(start: int) -> OffsetRange:
    """Gives all offsets from `start` on."""
    return OffsetRange(start, NO_END)


class EndlessRangeTracker(OffsetRestrictionTracker):
    """Never splits ahead of what has been claimed: half of an endless range begins at an offset that never comes."""

    def try_split(self, fraction_of_remainder: float) -> tuple[OffsetRange, OffsetRange] | None:
        """Gives what has been claimed and the rest; None for any other place."""
        return None if fraction_of_remainder > 0 else super().try_split(fraction_of_remainder)

    def is_bounded(self) -> bool:
        """Says that there is no end."""
        return False
