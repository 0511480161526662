"""Cut points: in pauses, the longest within reach, never in speech; with an overlap where nobody pauses."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.cut_points import PieceLength, cut_points
from transforms.records import Segment

LENGTH = PieceLength(10_000, 30_000, 4_000)


def _speech(pauses: list[tuple[int, int]], length_ms: int) -> list[Segment]:
    """Speech everywhere but in the pauses."""
    borders = [(0, 0), *pauses, (length_ms, length_ms)]
    return [Segment(before[1], after[0]) for before, after in pairwise(borders) if before[1] < after[0]]


@pytest.mark.parametrize(
    ("pauses", "length_ms", "pieces"),
    [
        ([], 0, [(0, 0)]),
        ([(5_000, 6_000)], 30_000, [(0, 30_000)]),
        ([(12_000, 12_400), (20_000, 21_000), (28_000, 28_900)], 45_000, [(0, 20_500), (20_500, 45_000)]),
        # Of equal pauses the last.
        ([(12_000, 12_400), (20_000, 20_400)], 45_000, [(0, 20_200), (20_200, 45_000)]),
        # A pause that the reach cuts off counts for what is within.
        ([(2_000, 10_300), (15_000, 15_400)], 40_000, [(0, 15_200), (15_200, 40_000)]),
        ([(2_000, 10_500), (15_000, 15_400)], 40_000, [(0, 10_250), (10_250, 40_000)]),
        ([(0, 80_000)], 80_000, [(0, 20_000), (20_000, 40_000), (40_000, 60_000), (60_000, 80_000)]),
        # The last piece is long enough, too: the pause at 24 s is out of reach.
        ([(15_000, 15_200), (24_000, 25_000)], 31_000, [(0, 15_100), (15_100, 31_000)]),
        ([], 50_000, [(0, 30_000), (26_000, 50_000)]),
        ([], 31_000, [(0, 25_000), (21_000, 31_000)]),
        ([(40_000, 40_200)], 66_000, [(0, 30_000), (26_000, 40_100), (40_100, 66_000)]),
    ],
)
def test_pieces_are_these(pauses: list[tuple[int, int]], length_ms: int, pieces: list[tuple[int, int]]) -> None:
    assert cut_points(_speech(pauses, length_ms), length_ms, LENGTH) == [Segment(*piece) for piece in pieces]


RUNS = st.lists(st.tuples(st.integers(60, 70_000), st.integers(1, 9_000)), max_size=60)


@given(RUNS, st.integers(1_000, 12_000), st.integers(2, 4), st.integers(1, 9))
@settings(max_examples=100, deadline=None)
def test_pieces_cover_the_recording_and_are_cut_in_pauses_or_overlap(
    runs: list[tuple[int, int]], least_ms: int, times: int, tenths: int
) -> None:
    length = PieceLength(least_ms, times * least_ms, least_ms * tenths // 10)
    at, speech = 0, []
    for spoken, pause in runs:
        speech.append(Segment(at, at + spoken))
        at += spoken + pause
    pieces = cut_points(speech, at, length)
    assert (pieces[0].start_ms, pieces[-1].end_ms) == (0, at)
    if at > length.most_ms:
        assert all(least_ms <= piece.end_ms - piece.start_ms <= length.most_ms for piece in pieces)
    else:
        assert len(pieces) == 1
    for before, after in pairwise(pieces):
        low, high = before.start_ms + least_ms, min(before.start_ms + length.most_ms, at - least_ms)
        if after.start_ms == before.end_ms:
            assert not any(each.start_ms < before.end_ms < each.end_ms for each in speech)
        else:
            assert after.start_ms == before.end_ms - length.overlap_ms
            assert low == high or any(each.start_ms <= low and each.end_ms >= high for each in speech)
