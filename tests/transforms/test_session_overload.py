"""A session that is behind: what is left out, what is marked, and that it comes back."""

from collections.abc import Callable

import numpy as np
import pytest

from transforms.overload import OverloadConfig
from transforms.result import Result
from transforms.session_book import decode_book
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_logic import SessionLogic
from transforms.stream_records import Chunk

OVERLOAD = OverloadConfig(partials_off_ms=1_000, denoise_off_ms=3_000)
LAGS_MS = [0, 1_500, 4_000, 2_000, 0]


@pytest.fixture
def play(stand_in: object, make_chunk: Callable[..., Chunk], noise: np.ndarray) -> Callable[[list[int]], list[Result]]:
    """Gives what a session says whose chunks have these lags, one a turn; the last one ends it."""

    def play(lags_ms: list[int]) -> list[Result]:
        now_ms = 0
        logic = SessionLogic(stand_in, SessionConfig(), OutputConfig(), clock=lambda: now_ms, overload=OVERLOAD)
        book, results = None, []
        for number, lag_ms in enumerate(lags_ms):
            chunk = make_chunk(number, noise[:1600], end_of_stream=number == len(lags_ms) - 1)
            now_ms = chunk.event_ms + lag_ms
            turn = logic.advance(book, [chunk])
            book = turn.book
            results += turn.results
        return results

    return play


def test_partials_are_left_out_while_a_session_is_behind(play: Callable[[list[int]], list[Result]]) -> None:
    partials = [(result.text, result.shed) for result in play(LAGS_MS) if result.type == "partial"]
    # The last turn is not behind, but its final will be marked: chunks before it were heard without.
    assert partials == [("1", []), ("5", ["partials", "denoise"])]


def test_the_denoise_stage_is_switched_off_and_on_again(
    stand_in: object, make_chunk: Callable[..., Chunk], noise: np.ndarray
) -> None:
    now_ms = 0
    logic = SessionLogic(stand_in, SessionConfig(), OutputConfig(), clock=lambda: now_ms, overload=OVERLOAD)
    book = None
    for number, lag_ms in enumerate(LAGS_MS):
        chunk = make_chunk(number, noise[:1600])
        now_ms = chunk.event_ms + lag_ms
        book = logic.advance(book, [chunk]).book
    # After two chunks, and after four.
    assert stand_in.thaw(decode_book(book or b"").engine).switches == (3_200, 6_400)


def test_a_final_says_what_was_left_out_since_the_one_before(play: Callable[[list[int]], list[Result]]) -> None:
    shed = [result.shed for lags in ([0, 0], [0, 1_500, 0], LAGS_MS) for result in play(lags) if result.type == "final"]
    assert shed == [[], ["partials"], ["partials", "denoise"]]


def test_a_session_without_capture_times_is_never_behind(
    stand_in: object, make_chunk: Callable[..., Chunk], noise: np.ndarray
) -> None:
    logic = SessionLogic(stand_in, SessionConfig(), OutputConfig(), clock=lambda: 10**12, overload=OVERLOAD)
    turn = logic.advance(None, [make_chunk(0, noise[:1600], substituted=True)])
    assert [(result.type, result.shed) for result in turn.results] == [("partial", [])]
    assert turn.lag is not None and turn.lag.ms is None
