"""Words, their times and their confidence."""

import math

import pytest

from model_runtime.ctc import Token
from model_runtime.records import Word
from model_runtime.words import WordTimes

TOKENS = ("<blank>", "▁o", "ne", "▁t", "wo", " ", "a", "b")
TIMES = WordTimes(TOKENS, frame_samples=640, delay_samples=320, sample_rate_hz=16_000)


def test_pieces_become_words_with_times_from_the_peak_of_the_first_to_the_end_of_the_last() -> None:
    tokens = (
        Token(1, 5, 6, math.log(0.9)),
        Token(2, 8, 9, math.log(0.4)),
        Token(3, 20, 20, 0.0),
        Token(4, 22, 22, 0.0),
    )
    words = TIMES.words(tokens, start=16_000, end=64_000)
    assert words == (Word("one", 1180, 1380, 0.6), Word("two", 1780, 1900, 1.0))


def test_words_stay_inside_their_utterance() -> None:
    tokens = (Token(1, 0, 0, 0.0), Token(2, 99, 99, 0.0))
    (word,) = TIMES.words(tokens, start=1600, end=8000)
    assert (word.start_ms, word.end_ms) == (100, 500)


def test_a_word_begins_no_earlier_than_the_one_before_ends() -> None:
    tokens = (Token(1, 2, 6, 0.0), Token(3, 5, 5, 0.0), Token(4, 9, 9, 0.0))
    first, second = TIMES.words(tokens, start=0, end=64_000)
    assert first.end_ms == second.start_ms == 260


def test_characters_with_a_space_token_become_words() -> None:
    tokens = tuple(Token(i, frame, frame, 0.0) for frame, i in enumerate((6, 7, 5, 7)))
    assert TIMES.text(tokens) == "ab b"
    assert [word.text for word in TIMES.words(tokens, 0, 64_000)] == ["ab", "b"]


def test_no_tokens_are_no_words() -> None:
    assert TIMES.text(()) == ""
    assert TIMES.words((), 0, 100) == ()


@pytest.mark.parametrize(
    ("token", "begin", "end"), [(Token(1, 0, 0, 0.0), 1000, 1320), (Token(1, 5, 7, 0.0), 3880, 5800)]
)
def test_a_token_lies_where_its_frames_lie_less_the_delay(token: Token, begin: int, end: int) -> None:
    assert TIMES.begin_of(token, 1000) == begin
    assert TIMES.end_of(token, 1000) == end
