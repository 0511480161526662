"""What is made of the utterances that live sessions hand on, when there is time and when there is not."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from model_runtime import Audio, Final, Partial, Recipe, SpeechEngine, Utterance, UtteranceAudio
from model_runtime.decode import decode_file
from model_runtime.recipe import AsrConfig, EndpointConfig, VadConfig
from transforms.result import Heard, Result, session_end
from transforms.stream_records import SpokenUtterance
from transforms.transcription import Transcription

ROOT = Path(__file__).resolve().parents[2]
RECIPE = Recipe(
    "agreeing",
    vad=VadConfig("unison-vad"),
    asr=AsrConfig("unison-asr-batch", agreement_interval_ms=400),
    endpoint=EndpointConfig(silence_after_speech_ms=400),
)


@pytest.fixture(scope="module")
def recording() -> Audio:
    return next(a for a in map(decode_file, sorted((ROOT / "samples").glob("*.wav"))) if a.sample_rate_hz == 16_000)


@pytest.fixture(scope="module")
def engine() -> SpeechEngine:
    return SpeechEngine.load(RECIPE, defer=True)


@pytest.fixture(scope="module")
def expected(recording: Audio) -> list[tuple[str, str]]:
    """Ids and texts of all partials and finals."""
    (events,) = SpeechEngine.load(RECIPE).run([recording])
    said = [event for event in events if isinstance(event, Partial | Final)]
    assert sum(isinstance(event, Partial) for event in said) > 3
    return [(f"{event.utterance}/{event.revision}", event.text) for event in said]


@pytest.fixture
def spoken(engine: SpeechEngine, recording: Audio) -> Callable[[str], list[SpokenUtterance]]:
    """Gives what a session of this name hands on, with all of an utterance's audio until then, and its end."""

    def hand_on(session: str) -> list[SpokenUtterance]:
        heard, pcm, result = Heard(session, 0, 16_000, 0), b"", []
        state, events = engine.step(engine.start(), recording.samples)
        for event in events + engine.finish(state)[1]:
            if isinstance(event, UtteranceAudio):
                pcm += event.pcm
            elif isinstance(event, Utterance):
                result.append(SpokenUtterance(event, pcm, heard, []))
                pcm = b"" if event.over else pcm
        return [*result, SpokenUtterance(None, b"", heard, [session_end(heard, engine.made_by(), "idle")])]

    return hand_on


def one_by_one(transcription: Transcription, spoken: Sequence[SpokenUtterance]) -> Iterator[list[Result]]:
    return (transcription.transcribe([one])[0] for one in spoken)


def told(results: Sequence[list[Result]]) -> list[tuple[str, str]]:
    return [(r.result_id.partition("/0/")[2], r.text) for said in results for r in said if r.type != "session_end"]


def test_with_time_for_all_that_is_said_is_what_the_engine_says_of_the_clip(
    engine: SpeechEngine, spoken: Callable[[str], list[SpokenUtterance]], expected: list[tuple[str, str]]
) -> None:
    results = list(one_by_one(Transcription(engine), spoken("a")))
    assert told(results) == expected
    assert [result.type for result in results[-1]] == ["session_end"]


def test_what_has_come_together_gives_every_final_and_no_partial_that_is_behind(
    engine: SpeechEngine, spoken: Callable[[str], list[SpokenUtterance]], expected: list[tuple[str, str]]
) -> None:
    both = [one for pair in zip(spoken("a"), spoken("b"), strict=True) for one in pair]
    results = Transcription(engine).transcribe(both)
    finals = [result for said in results for result in said if result.type == "final"]
    assert [said for said in results if any(result.type == "partial" for result in said)] == []
    last = {text[0].split("/")[0]: text for text in expected}
    assert told([[r for r in finals if r.session == "a"]]) == told([[r for r in finals if r.session == "b"]])
    assert told([[r for r in finals if r.session == "a"]]) == list(last.values())


def test_a_partial_says_the_same_whatever_was_left_out_before_it(
    engine: SpeechEngine, spoken: Callable[[str], list[SpokenUtterance]], expected: list[tuple[str, str]]
) -> None:
    under_way = [(one.utterance, one.pcm) for one in spoken("a") if one.utterance and not one.is_over()]
    partials = [engine.transcribe_so_far(*one).partial for one in under_way]
    texts = {f"{partial.utterance}/{partial.revision}": partial.text for partial in partials}
    texts |= dict(expected)
    for first in range(3):
        some = [one for place, one in enumerate(spoken("a")) if one.is_over() or place % 3 == first]
        said = told(list(one_by_one(Transcription(engine), some)))
        assert said == [(name, texts[name]) for name, _ in said]
        assert sum(one.utterance is not None and one.is_over() for one in some) < len(said) < len(expected)


def test_where_there_is_no_time_finals_are_all_that_is_said(
    engine: SpeechEngine, spoken: Callable[[str], list[SpokenUtterance]], expected: list[tuple[str, str]]
) -> None:
    seconds = count()
    results = list(one_by_one(Transcription(engine, clock=lambda: next(seconds)), spoken("a")))
    last = {row[0].split("/")[0]: row for row in expected}
    assert told(results) == list(last.values())


def test_where_there_is_time_for_one_partial_sessions_take_turns(
    engine: SpeechEngine, spoken: Callable[[str], list[SpokenUtterance]]
) -> None:
    # The clock is read at the beginning and before each partial, and is too late from the third time on.
    readings = count()
    transcription = Transcription(engine, clock=lambda: next(readings) // 2)
    rounds = [together for together in zip(*map(spoken, "xyz"), strict=True) if not together[0].is_over()]
    said = [[r.session for results in transcription.transcribe(together) for r in results] for together in rounds]
    assert {session for sessions in said for session in sessions} == {"x", "y", "z"}
    assert max(map(len, said)) == 1
