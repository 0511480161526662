"""Where a recording is cut for an answer in pieces: in a pause, or with an overlap where nobody pauses."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from transforms.records import Segment


class PieceLength(NamedTuple):
    """How long pieces are, in ms. most_ms is at least twice least_ms; overlap_ms is less than least_ms."""

    least_ms: int
    most_ms: int
    overlap_ms: int


def cut_points(speech: Sequence[Segment], length_ms: int, piece: PieceLength) -> list[Segment]:
    """Gives the pieces of a recording in order: from its beginning to its end, without a gap.

    A cut lies in a pause, where it is longest within reach, so both pieces go together at it. Where nobody pauses, a
    piece is as long as it may be and the next one begins `overlap_ms` before its end.

    Args:
        speech: where speech is, in order; what lies between is a pause.
    """
    pauses = list(_pauses(speech, length_ms))
    pieces, start, first = list[Segment](), 0, 0
    while length_ms - start > piece.most_ms:
        while first < len(pauses) and pauses[first].end_ms <= start + piece.least_ms:
            first += 1
        # What is left must be long enough as well.
        reach = Segment(start + piece.least_ms, min(start + piece.most_ms, length_ms - piece.least_ms))
        cut = _longest(islice(pauses, first, None), reach)
        if cut is None:
            end = min(start + piece.most_ms, length_ms - piece.least_ms + piece.overlap_ms)
            pieces.append(Segment(start, end))
            start = end - piece.overlap_ms
        else:
            pieces.append(Segment(start, cut))
            start = cut
    return [*pieces, Segment(start, length_ms)]


def _pauses(speech: Sequence[Segment], length_ms: int) -> Iterator[Segment]:
    borders = [Segment(0, 0), *speech, Segment(length_ms, length_ms)]
    for before, after in pairwise(borders):
        if before.end_ms < after.start_ms:
            yield Segment(before.end_ms, after.start_ms)


def _longest(pauses: Iterable[Segment], reach: Segment) -> int | None:
    """Gives the middle of the longest stretch of pause within reach, of the last of equals, or None."""
    best, cut = 0, None
    for pause in pauses:
        if pause.start_ms >= reach.end_ms:
            break
        low, high = max(pause.start_ms, reach.start_ms), min(pause.end_ms, reach.end_ms)
        if high - low >= max(best, 1):
            best, cut = high - low, (low + high) // 2
    return cut
