"""Utterances from speech probabilities: begin, end, padding, and the endpoint rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from model_runtime.endpoint import EndpointRules
from model_runtime.recipe import EndpointConfig, VadConfig
from model_runtime.segmenter import Begin, Change, End, Pause, Resumed, Segmenter, SegmentState

FRAME = 160
VAD = VadConfig(model="x", threshold=0.5, stop_threshold=0.3, min_speech_ms=30, pad_before_ms=50, pad_after_ms=20)
ENDPOINT = EndpointConfig(silence_after_speech_ms=100, max_utterance_ms=1000)


def segments(
    probabilities: list[float], vad: VadConfig = VAD, rules: EndpointRules | None = None
) -> tuple[SegmentState, list[Change]]:
    segmenter, state, found = Segmenter(vad, ENDPOINT, 16_000), SegmentState(rules=rules), []
    while probabilities:
        state, taken, change = segmenter.advance(state, probabilities, FRAME)
        probabilities = probabilities[taken:]
        found += [change] if change else []
    return state, found


def finished(probabilities: list[float], total: int) -> End | None:
    return Segmenter(VAD, ENDPOINT, 16_000).finish(segments(probabilities)[0], total)[1]


@given(st.lists(st.sampled_from([0.0, 0.4, 0.9]), max_size=150), st.integers(1, 150))
def test_it_does_not_matter_how_many_frames_come_at_once(probabilities: list[float], size: int) -> None:
    rules = EndpointRules.of(EndpointConfig(max_utterance_ms=1000, tentative_end_ms=200), 16_000)
    segmenter, state, found = Segmenter(VAD, ENDPOINT, 16_000), SegmentState(rules=rules), []
    for at in range(0, len(probabilities), size):
        left = probabilities[at : at + size]
        while left:
            state, taken, change = segmenter.advance(state, left, FRAME)
            left = left[taken:]
            found += [change] if change else []
    assert (state, found) == segments(probabilities, rules=rules)


def test_an_utterance_is_its_speech_with_padding_on_both_sides() -> None:
    _, found = segments([0.0] * 10 + [0.9] * 20 + [0.0] * 20)
    assert found == [Begin(0, 1600 - 800), End(0, 800, 4800 + 320, 1600, "silence")]


@pytest.mark.parametrize(
    ("fields", "rules", "found"),
    [
        ({"min_speech_ms": 200}, ENDPOINT, [(800, 5120)]),
        ({"min_speech_ms": 201}, ENDPOINT, []),
        ({"pad_before_ms": 0}, ENDPOINT, [(1600, 5120)]),
        ({"pad_after_ms": 0}, ENDPOINT, [(800, 4800)]),
        ({"pad_after_ms": 500}, ENDPOINT, [(800, 6400)]),
        ({"threshold": 0.91}, ENDPOINT, []),
        ({}, EndpointConfig(silence_after_speech_ms=200), [(800, 5120)]),
        ({}, EndpointConfig(silence_after_speech_ms=201), []),
    ],
)
def test_minimum_speech_padding_thresholds_and_hangover_are_those_of_the_configuration(
    fields: dict[str, float], rules: EndpointConfig, found: list[tuple[int, int]]
) -> None:
    vad = structs.replace(VAD, **fields)
    _, changes = segments([0.0] * 10 + [0.9] * 20 + [0.0] * 20, vad, EndpointRules.of(rules, 16_000))
    assert [(change.start, change.end) for change in changes if isinstance(change, End)] == found


def test_padding_does_not_reach_before_the_first_sample() -> None:
    assert segments([0.9] * 3)[1] == [Begin(0, 0)]


def test_a_burst_shorter_than_the_minimum_is_no_speech() -> None:
    assert segments([0.0] * 5 + [0.9] * 2 + [0.0] * 30)[1] == []


def test_speech_goes_on_between_the_two_thresholds() -> None:
    assert segments([0.9] * 5 + [0.4] * 30 + [0.9])[1] == [Begin(0, 0)]


def test_between_the_thresholds_silence_goes_on() -> None:
    assert segments([0.9] * 5 + [0.1] + [0.4] * 9)[1] == [Begin(0, 0), End(0, 0, 800 + 320, 1600, "silence")]


def test_a_pause_shorter_than_the_rule_does_not_end_the_utterance() -> None:
    assert segments([0.9] * 5 + [0.0] * 9 + [0.9] * 5)[1] == [Begin(0, 0)]


def test_an_utterance_is_cut_at_the_greatest_length_and_goes_on_in_the_next_one() -> None:
    _, found = segments([0.9] * 110)
    assert found == [Begin(0, 0), End(0, 0, 16_000, 0, "length"), Begin(1, 16_000)]


def test_utterances_do_not_overlap() -> None:
    _, found = segments([0.9] * 5 + [0.0] * 10 + [0.9] * 5)
    assert found == [Begin(0, 0), End(0, 0, 1120, 1600, "silence"), Begin(1, 1600)]
    wide = VadConfig(model="x", min_speech_ms=30, pad_before_ms=500, pad_after_ms=20)
    assert segments([0.9] * 5 + [0.0] * 10 + [0.9] * 5, wide)[1][-1] == Begin(1, 1120)


def test_the_end_of_the_stream_ends_an_open_utterance() -> None:
    assert finished([0.9] * 10, 1590) == End(0, 0, 1590, 0, "stream")
    assert finished([0.9] * 5 + [0.0] * 5, 1600) == End(0, 0, 1120, 800, "stream")


def test_the_end_of_the_stream_finds_nothing_open() -> None:
    assert finished([0.0] * 10, 1600) is None


def test_the_three_rules_of_endpoints() -> None:
    rules = EndpointRules.of(EndpointConfig(2000, 500, 10_000), 16_000)
    assert rules.check(False, 31_999, 31_999) is None
    assert rules.check(False, 32_000, 32_000) == "silence"
    assert rules.check(True, 7_999, 100_000) is None
    assert rules.check(True, 8_000, 100_000) == "silence"
    assert rules.check(True, 0, 159_999) is None
    assert rules.check(True, 0, 160_000) == "length"


TENTATIVE = EndpointRules(0, 1_600, 16_000, 800)


def test_a_pause_is_told_when_it_reaches_its_length_and_again_when_speech_goes_on() -> None:
    _, found = segments([0.9] * 5 + [0.0] * 7 + [0.9] * 5 + [0.0] * 12, rules=TENTATIVE)
    assert found == [
        Begin(0, 0),
        Pause(0, 0, 800 + 320, 800),
        Resumed(0, 13 * FRAME),
        Pause(0, 0, 17 * FRAME + 320, 800),
        End(0, 0, 17 * FRAME + 320, 1600, "silence"),
    ]


def test_where_the_length_or_the_silence_ends_the_utterance_no_pause_is_told() -> None:
    cut = segments([0.9] * 92 + [0.0] * 4 + [0.9] * 20, rules=TENTATIVE)[1]
    assert cut == [Begin(0, 0), End(0, 0, 16_000, 0, "length"), Begin(1, 16_000)]
    late = EndpointRules(0, 800, 16_000, 800)
    assert segments([0.9] * 5 + [0.0] * 6, rules=late)[1] == [Begin(0, 0), End(0, 0, 800 + 320, 800, "silence")]


def test_rules_of_the_session_hold_in_every_utterance() -> None:
    _, found = segments([0.9] * 5 + [0.0] * 15 + [0.9] * 5 + [0.0] * 15, rules=EndpointRules(0, 480, 16_000, 0))
    assert [change.silence for change in found if isinstance(change, End)] == [480, 480]
