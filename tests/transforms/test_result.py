"""Results of events, and what identifies them."""

import pytest

from model_runtime.records import (
    Enhanced,
    Event,
    Final,
    MadeBy,
    Partial,
    SpeechBegin,
    SpeechEnd,
    SpeechResumed,
    TentativeEnd,
    Word,
)
from transforms.milliseconds import samples_to_ms
from transforms.result import Heard, event_to_result, session_end

MADE_BY = MadeBy("m:1:int8", "cpu(delegate_missing)")
HEARD = Heard("a/b", 12, 8_000, 900, captured_ms=5)


@pytest.mark.parametrize(
    ("event", "result_id", "kind", "text", "start_ms", "end_ms", "reason"),
    [
        (SpeechBegin(1, 800), "a/b/12/1/begin", "speech_begin", "", 100, 100, ""),
        (SpeechEnd(1, 800, 1600, "silence"), "a/b/12/1/end", "speech_end", "", 100, 200, "silence"),
        (Partial(1, 0, "on", 800, 1200), "a/b/12/1/0", "partial", "on", 100, 150, ""),
        (TentativeEnd(1, 1, "one", (), 800, 1500), "a/b/12/1/1", "tentative_end", "one", 100, 188, ""),
        (SpeechResumed(1, 2, 1600), "a/b/12/1/2", "speech_resumed", "", 200, 200, ""),
        (Final(1, 3, "one", (), 0.5, 800, 1600), "a/b/12/1/3", "final", "one", 100, 200, ""),
    ],
)
def test_every_event_gives_a_result_with_an_id_of_its_own(
    event: Event, result_id: str, kind: str, text: str, start_ms: int, end_ms: int, reason: str
) -> None:
    result = event_to_result(event, HEARD, MADE_BY)
    assert result is not None
    assert (result.result_id, result.type, result.text) == (result_id, kind, text)
    assert (result.start_ms, result.end_ms, result.reason) == (start_ms, end_ms, reason)
    assert (result.model, result.device) == MADE_BY


def test_a_partial_says_how_stable_it_is_and_nothing_else_does() -> None:
    partial = event_to_result(Partial(0, 3, "one two", 0, 8, 0.5), HEARD, MADE_BY)
    final = event_to_result(Final(0, 4, "one two", (), 1.0, 0, 8), HEARD, MADE_BY)
    assert partial is not None and final is not None
    assert (partial.stability, final.stability) == (0.5, None)


def test_a_tentative_end_has_the_words_of_a_final() -> None:
    word = Word("one", 100, 150, 0.9)
    tentative = event_to_result(TentativeEnd(1, 4, "one", (word,), 800, 1500), HEARD, MADE_BY)
    assert tentative is not None
    assert (tentative.revision, tentative.words) == (4, [word])


def test_clean_audio_is_no_result() -> None:
    assert event_to_result(Enhanced(0, b""), HEARD, MADE_BY) is None


def test_ids_depend_on_data_alone() -> None:
    event = Final(0, 3, "x", (), 1.0, 0, 10)
    first = event_to_result(event, HEARD, MADE_BY)
    again = event_to_result(event, HEARD._replace(captured_ms=99, audio_ms=1), MadeBy("other", "npu"))
    assert first is not None and again is not None
    assert first.result_id == again.result_id


def test_the_end_of_a_session_spans_its_audio() -> None:
    end = session_end(HEARD, MADE_BY, "idle")
    assert (end.result_id, end.start_ms, end.end_ms, end.reason) == ("a/b/12/-1/end", 0, 900, "idle")


@pytest.mark.parametrize(
    ("samples", "rate", "ms"), [(46_218, 16_000, 2889), (1, 8_000, 0), (4, 8_000, 1), (7, 44_100, 0)]
)
def test_positions_are_rounded_to_the_nearest_ms(samples: int, rate: int, ms: int) -> None:
    assert samples_to_ms(samples, rate) == ms
