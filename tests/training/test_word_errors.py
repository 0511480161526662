"""Word errors by hand-counted examples."""

import pytest

from training.word_errors import error_rate, word_errors


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
