"""Tentative ends: said early, confirmed or taken back, and of no consequence to who does not look at them."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from msgspec.structs import replace

from model_runtime import (
    Audio,
    Enhanced,
    Event,
    Final,
    Partial,
    Recipe,
    SpeechBegin,
    SpeechEnd,
    SpeechEngine,
    SpeechResumed,
    TentativeEnd,
)
from model_runtime.recipe import AsrConfig, EndpointConfig, VadConfig

VAD = VadConfig("unison-vad")
SEGMENT = Recipe("segment", None, VAD, None, EndpointConfig(tentative_end_ms=200))
RECIPES = {
    "vad": Recipe("t", None, VAD, AsrConfig("unison-asr-stream"), EndpointConfig(tentative_end_ms=200)),
    "transducer": Recipe("t", None, VAD, AsrConfig("unison-asr-transducer"), EndpointConfig(tentative_end_ms=200)),
    "no vad": Recipe("t", asr=AsrConfig("unison-asr-stream"), endpoint=EndpointConfig(tentative_end_ms=300)),
    "waits for the end": Recipe("t", None, VAD, AsrConfig("unison-asr-batch"), EndpointConfig(tentative_end_ms=200)),
    "no recogniser": SEGMENT,
}


def plain(events: list[Event]) -> list[Event]:
    """What a reader keeps who knows nothing of tentative ends; revisions only say which is the later one."""
    kept = [event for event in events if not isinstance(event, TentativeEnd | SpeechResumed)]
    return [event._replace(revision=0) if isinstance(event, Partial | Final) else event for event in kept]


@pytest.mark.parametrize("name", RECIPES)
def test_a_reader_that_leaves_tentative_ends_out_loses_nothing(
    engine: Callable[..., SpeechEngine], samples: list[Audio], name: str
) -> None:
    told = engine(RECIPES[name]).run(samples)
    silent = engine(replace(RECIPES[name], endpoint=EndpointConfig())).run(samples)
    assert any(isinstance(event, TentativeEnd) for events in told for event in events)
    assert [plain(events) for events in told] == [plain(events) for events in silent]


@pytest.mark.parametrize("name", RECIPES)
def test_a_tentative_end_is_confirmed_or_taken_back_by_a_later_revision(
    engine: Callable[..., SpeechEngine], samples: list[Audio], name: str
) -> None:
    for events in engine(RECIPES[name]).run(samples):
        for number in {event.utterance for event in events if isinstance(event, SpeechBegin)}:
            said = [event for event in events if not isinstance(event, Enhanced) and event.utterance == number]
            revised = [event.revision for event in said if not isinstance(event, SpeechBegin | SpeechEnd)]
            assert revised == list(range(len(revised)))
            ends = [event for event in said if isinstance(event, TentativeEnd | SpeechResumed | SpeechEnd)]
            assert isinstance(ends[-1], SpeechEnd)
            for before, after in pairwise(ends):
                assert isinstance(before, TentativeEnd) != isinstance(after, TentativeEnd)


@pytest.mark.parametrize("name", ["vad", "transducer", "no vad"])
def test_a_tentative_end_says_what_the_firm_end_says_if_it_follows(
    engine: Callable[..., SpeechEngine], samples: list[Audio], name: str
) -> None:
    for events in engine(RECIPES[name]).run(samples):
        changes = [event for event in events if not isinstance(event, Enhanced | Partial)]
        for tentative, end, final in zip(changes, changes[1:], changes[2:], strict=False):
            if isinstance(tentative, TentativeEnd) and isinstance(end, SpeechEnd) and end.reason == "silence":
                assert isinstance(final, Final)
                assert (tentative.start_samples, tentative.end_samples) == (end.start_samples, end.end_samples)
                assert [word.text for word in tentative.words] == tentative.text.split() == final.text.split()


def test_without_a_recogniser_or_before_it_knows_the_text_is_empty(
    engine: Callable[..., SpeechEngine], samples: list[Audio]
) -> None:
    for name in ("waits for the end", "no recogniser"):
        (events,) = engine(RECIPES[name]).run(samples[:1])
        assert {(event.text, event.words) for event in events if isinstance(event, TentativeEnd)} == {("", ())}


def test_a_tentative_end_that_is_not_shorter_than_the_firm_one_never_comes(
    engine: Callable[..., SpeechEngine], samples: list[Audio]
) -> None:
    late = replace(SEGMENT, endpoint=EndpointConfig(silence_after_speech_ms=400, tentative_end_ms=400))
    firm = replace(SEGMENT, endpoint=EndpointConfig(silence_after_speech_ms=400))
    assert engine(late).run(samples) == engine(firm).run(samples)
