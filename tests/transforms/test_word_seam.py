"""The seam of two overlapping runs of words: every word once, in order, whatever the recogniser made of the edges."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_runtime import Word
from transforms.word_seam import word_seam


def _words(text: str) -> list[Word]:
    """Words like "one@1000", 300 ms long."""
    pairs = [word.split("@") for word in text.split()]
    return [Word(name, int(start), int(start) + 300, 1.0) for name, start in pairs]


def _merged(left: list[Word], right: list[Word], middle_ms: int) -> list[str]:
    i, j = word_seam(left, right, middle_ms)
    return [word.text for word in left[:i] + right[j:]]


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        ("", "", ""),
        ("a@100", "", "a"),
        ("", "a@3000", "a"),
        ("a@100 b@900 c@1600", "b@910 c@1590 d@2400", "a b c d"),
        # One that each side puts into the other's half is not lost, one that each puts into its own not doubled.
        ("a@100 b@1870", "b@1830 c@2500", "a b c"),
        ("a@100 b@1830", "b@1870 c@2500", "a b c"),
        # The edges heard half of a word.
        ("a@500 b@1200 see@2800", "bee@1000 b@1210 c@2790 d@3300", "a b c d"),
        # The same word again and again.
        ("one@1000 one@1400 one@1800 one@2200", "one@1390 one@1830 one@2190 one@2600", "one one one one one"),
        # Heard by one side alone: in its half, and in the other's.
        ("a@500 b@1000 c@2400", "d@2900", "a b d"),
        ("a@500", "b@1000 c@2400", "a c"),
        # Two opinions of one word: that of its half.
        ("a@500 four@2400", "for@2420 b@3000", "a for b"),
        ("a@500 four@1400", "for@1420 b@3000", "a four b"),
    ],
)
def test_words_are_these(left: str, right: str, text: str) -> None:
    assert " ".join(_merged(_words(left), _words(right), 2000)) == text


SPOKEN = st.lists(
    st.tuples(st.sampled_from(["one", "two", "to"]), st.integers(180, 700), st.integers(40, 300)), max_size=25
)


@given(SPOKEN, st.integers(3_000, 9_000), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_every_word_that_was_said_is_there_once(said: list[tuple[str, int, int]], at: int, random) -> None:  # type: ignore[no-untyped-def]
    """Both sides hear what is whole on their side, at times that are off by up to 40 ms, and rubbish at their edge."""
    overlap = (at, at + 4_000)
    truth, now = [], 0
    for text, length, pause in said:
        truth.append(Word(text, now, now + length, 1.0))
        now += length + pause

    def heard(word: Word) -> Word:
        shift = random.randint(-40, 40)
        return word._replace(start_ms=word.start_ms + shift, end_ms=word.end_ms + shift)

    left = [heard(word) for word in truth if word.end_ms <= overlap[1]]
    left += [word._replace(text="t", end_ms=overlap[1]) for word in truth if word.start_ms < overlap[1] < word.end_ms]
    right = [word._replace(text="o", start_ms=at) for word in truth if word.start_ms < overlap[0] < word.end_ms]
    right += [heard(word) for word in truth if word.start_ms >= overlap[0]]
    assert _merged(left, right, at + 2_000) == [word.text for word in truth]
