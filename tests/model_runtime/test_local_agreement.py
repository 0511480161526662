"""What two decodings agree on."""

import pytest

from model_runtime.local_agreement import agreed, newly_passed, stability


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        ("", "and so", ""),
        ("and so", "", ""),
        ("and so my", "and so my fellow", "and so my"),
        ("and so my fell", "and so my fellow", "and so my"),
        ("and so my fellow", "and so", "and so"),
        ("and sow", "and so my", "and"),
        # Case and marks come with what follows, and are those of the later decoding.
        ("And so, my fellow.", "and so my Fellow Americans", "and so my Fellow"),
        ("Well...", "Well, then", "Well,"),
        ("it's", "its own", "its"),
        # Scripts without spaces: by character.
        ("今日は", "今日も", "今日"),
        ("これは pen", "これは pencil", "これは"),
        ("über Maß", "Über Mass", "Über Mass"),
        ("- no", "- yes", "-"),
    ],
)
def test_agreement_is_the_beginning_that_both_share(before: str, now: str, text: str) -> None:
    assert agreed(before, now) == text


@pytest.mark.parametrize(
    ("interval", "before", "now", "numbers"),
    [(100, 0, 99, []), (100, 0, 100, [1]), (100, 99, 301, [1, 2, 3]), (100, 100, 199, []), (0, 0, 1000, [])],
)
def test_intervals_are_passed_where_their_last_sample_has_come(
    interval: int, before: int, now: int, numbers: list[int]
) -> None:
    assert list(newly_passed(interval, before, now)) == numbers


@pytest.mark.parametrize(
    ("before", "now", "share"),
    [("", "", 0), ("", "one", 0), ("one two", "one two six", 0.6364), ("one two", "one too", 0.4286), ("b", "a b", 0)],
)
def test_stability_is_the_share_of_the_text_that_both_agree_on(before: str, now: str, share: float) -> None:
    assert stability(before, now) == share
