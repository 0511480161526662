"""Word errors by hand-counted examples."""

from collections.abc import Callable

import numpy as np
import pytest

from model_runtime.ctc import Tokens
from training.decoding import bound, error_rate, greedy, word_errors, words_of
from training.words import TOKENS, encode


def spikes(tokens: list[int], confidence: float = 0.9) -> np.ndarray:
    """Log probabilities with a blank before each token and one at the end."""
    rest = (1.0 - confidence) / (len(TOKENS) - 1)
    path = [step for token in tokens for step in (0, token)] + [0]
    probabilities = np.full((len(path), len(TOKENS)), rest, np.float32)
    probabilities[np.arange(len(path)), path] = confidence
    return np.log(probabilities)


@pytest.mark.parametrize(
    ("reference", "hypothesis", "errors"),
    [
        ("one two", "one two", 0),
        ("one two", "one", 1),
        ("one two", "one oh two", 1),
        ("one two", "four two", 1),
        ("", "yes no", 2),
        ("one two three", "two three four", 2),
    ],
)
def test_word_errors_are_the_least_changes(reference: str, hypothesis: str, errors: int) -> None:
    assert word_errors(reference.split(), hypothesis.split()) == errors


def test_error_rate_counts_errors_over_all_words() -> None:
    references = [["one", "two", "three"], ["four"]]
    assert error_rate(references, [["one", "two"], ["five"]]) == 50.0


@pytest.mark.parametrize("decode", [greedy, bound])
def test_spikes_are_decoded_to_their_words(decode: Callable[[np.ndarray], Tokens]) -> None:
    words = ["five", "five", "oh", "stop"]
    assert words_of(decode(spikes(encode(words)))) == words


def test_the_lexicon_repairs_what_is_no_word() -> None:
    onset, rime = encode(["nine"])[0], encode(["six"])[1]
    assert words_of(greedy(spikes([onset, rime]))) == ["niix"]
    assert words_of(bound(spikes([onset, rime]))) in (["nine"], ["six"])
