"""Loops are found, and what people do say twice is not taken for one."""

import pytest

from model_runtime.whisper_config import WhisperConfig
from model_runtime.whisper_guards import compression, find_loop, is_repetition, is_silence

LEAD = (1, 2, 3, 4)


@pytest.mark.parametrize("run", [(7,), (7, 8), (7, 8, 9), tuple(range(10, 26))])
def test_a_run_that_comes_again_and_again_is_a_loop_that_ends_after_its_first_round(run: tuple[int, ...]) -> None:
    times = max(4, -(-12 // len(run)))
    assert find_loop(LEAD + run * times) == len(LEAD + run)
    assert find_loop(LEAD + run * (times - 1)) is None


def test_a_loop_is_followed_back_to_where_it_began() -> None:
    assert find_loop(LEAD + (7, 8, 9) * 9) == len(LEAD) + 3


def test_what_has_been_left_is_no_loop() -> None:
    assert find_loop((7,) * 20 + (8,)) is None


def test_a_number_said_many_times_is_no_loop() -> None:
    assert find_loop((5,) * 11) is None


def test_a_text_that_repeats_itself_compresses_too_well() -> None:
    config = WhisperConfig()
    sentence = "And so my fellow Americans ask not what your country can do for you."
    assert compression(sentence) < 1.1
    assert not is_repetition((1, 2), sentence, config)
    assert is_repetition((1, 2), " ".join([sentence] * 4), config)


def test_no_text_is_no_repetition() -> None:
    assert compression("") == 0.0


@pytest.mark.parametrize(
    ("no_speech", "average", "silence"), [(0.7, -1.1, True), (0.7, -0.9, False), (0.5, -1.1, False)]
)
def test_silence_is_what_has_both_no_speech_and_an_improbable_text(
    no_speech: float, average: float, silence: bool
) -> None:
    assert is_silence(no_speech, average, WhisperConfig()) is silence
