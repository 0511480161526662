"""Which numbers of live sessions are tried."""

import math

from benchmarks.peers.figures import Lateness
from benchmarks.peers.search import largest, next_count


def late(p99_ms: float, behind: bool = False) -> Lateness:
    return Lateness(p99_ms / 2, p99_ms, p99_ms, p99_ms, 1.0, behind)


def test_the_given_numbers_come_first_and_in_their_order() -> None:
    assert next_count({}, [1, 20, 60], 0) == 1
    assert next_count({1: late(10)}, [1, 20, 60], 0) == 20
    assert next_count({1: late(10), 20: late(500), 60: late(900)}, [1, 20, 60], 0) is None


def test_nothing_is_tried_beyond_what_could_not_be_kept_up_with() -> None:
    assert next_count({1: late(10), 20: late(math.inf, behind=True)}, [1, 20, 60], 0) is None


def test_the_search_goes_halfway_between_in_time_and_late() -> None:
    found = {1: late(10), 20: late(150), 60: late(210)}
    assert next_count(found, [1, 20, 60], 2) == 40
    assert next_count(found | {40: late(190)}, [1, 20, 60], 2) == 50
    assert next_count(found | {40: late(190), 50: late(199)}, [1, 20, 60], 2) is None


def test_the_search_doubles_what_was_in_time_where_nothing_was_late() -> None:
    assert next_count({1: late(10), 20: late(150)}, [1, 20], 1) == 40


def test_the_search_ends_where_no_number_lies_between() -> None:
    assert next_count({1: late(300)}, [1], 3) is None
    assert next_count({1: late(10), 2: late(300)}, [1, 2], 3) is None


def test_the_largest_number_is_one_whose_p99_is_below_200_ms() -> None:
    assert largest({1: late(10), 20: late(199), 60: late(200), 80: late(100, behind=True)}) == 20
    assert largest({1: late(200)}) == 0
