"""Segments from timestamps, and hypotheses without them."""

import numpy as np

from model_runtime.whisper_decode import Hypothesis
from model_runtime.whisper_segments import Segment, segments_of, without_timestamps

TIME = 100


def decode(tokens: tuple[int, ...]) -> str:
    return "".join(f" {token}" for token in tokens)


def test_segments_lie_between_timestamps() -> None:
    tokens = (TIME + 1, 7, 8, TIME + 50, TIME + 60, 9, TIME + 90)
    assert segments_of(tokens, TIME, decode, 5_000) == (Segment("7 8", 20, 1_000), Segment("9", 1_200, 1_800))


def test_a_segment_without_an_end_reaches_to_that_of_the_clip_and_none_beyond() -> None:
    assert segments_of((TIME, 7), TIME, decode, 730) == (Segment("7", 0, 730),)
    assert segments_of((TIME, 7, TIME + 90), TIME, decode, 730) == (Segment("7", 0, 730),)


def test_text_without_timestamps_keeps_its_probabilities_and_the_end() -> None:
    attention = tuple(np.full((1, 1), place, np.float32) for place in range(5))
    whole = Hypothesis((TIME, 7, 8, TIME + 9), (-0.1, -0.2, -0.3, -0.4, -0.5), attention, True)
    text = without_timestamps(whole, TIME)
    assert (text.tokens, text.log_probs, text.ended) == ((7, 8), (-0.2, -0.3, -0.5), True)
    assert [int(one.item()) for one in text.attention] == [1, 2, 4]


def test_a_loop_is_seen_through_its_timestamps_and_cut_behind_its_first_round() -> None:
    rounds = tuple(token for place in range(4) for token in (TIME + place, 7, 8, 9, TIME + place))
    looping = Hypothesis(rounds, (-0.1,) * len(rounds), (np.zeros((1, 1)),) * len(rounds))
    end = looping.loop(end_of_text=50)
    assert end == 4
    assert looping.cut(end).tokens == (TIME, 7, 8, 9)
