"""What both jobs say about speech: one record per event, and its JSON on the wire (design.md, "The wire")."""

from typing import NamedTuple

import msgspec

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
    Utterance,
    UtteranceAudio,
    Word,
)
from transforms.milliseconds import samples_to_ms
from transforms.record_coder import register
from transforms.session_anchors import Anchor, event_time_ms
from transforms.timing import Timing, timing_fields

RESULTS = "results"
"""The output tag of Result records."""
ENHANCED = "enhanced"
"""The output tag of clean audio."""

NO_UTTERANCE = -1
"""The utterance of a result that is about the whole session."""


class Gap(NamedTuple):
    """Chunks that never came, and the silence that stands in for them, in ms from the session's first sample.

    The silence may be shorter than what is missing (SessionConfig.max_fill_ms); before the first sample there is none.
    """

    start_ms: int
    end_ms: int
    chunks: int


class Heard(NamedTuple):
    """What a result says about the session it belongs to, besides the event itself.

    incarnation: tells sessions apart that use the same key one after the other (the place of the first record; 0 for
    a clip); sample_rate_hz: of the session's input, the unit of the events' positions; audio_ms: audio taken in so
    far; gaps: the newest 32; duplicates: chunks that came twice; captured_ms: the capture time of the last
    sample taken in (Unix ms), from which the latency is measured at output; None where there is no such clock; timing:
    where the time since then went, None outside streams; anchors: capture times of samples, none outside streams;
    shed: what was left out under overload.
    """

    session: str
    incarnation: int
    sample_rate_hz: int
    audio_ms: int
    gaps: list[Gap] = []  # noqa: RUF012  (a NamedTuple default, never changed)
    duplicates: int = 0
    captured_ms: int | None = None
    timing: Timing | None = None
    anchors: list[Anchor] = []  # noqa: RUF012  (as gaps)
    shed: list[str] = []  # noqa: RUF012  (as gaps)


class Result(NamedTuple):
    """One event of a session. `result_id` is the same on every replay: keep one row per id.

    type: speech_begin, partial, tentative_end, speech_resumed, speech_end, final or session_end. utterance counts
    from 0 within the session and is -1 at session_end; revision counts within an utterance, a final has the highest.
    reason: what ended the speech (silence, length, stream) or the session (see transforms.session); empty otherwise.
    stability: of a partial, None otherwise and where the recogniser does not say; event_ms: the capture time of the
    end of what it is about (Unix ms), None outside streams; timing: of finals; shed: partials, denoise, where they
    were left out under overload.
    """

    result_id: str
    session: str
    utterance: int
    revision: int
    type: str
    text: str
    words: list[Word]
    start_ms: int
    end_ms: int
    audio_ms: int
    model: str
    device: str
    gaps: list[Gap]
    duplicates: int
    reason: str
    captured_ms: int | None
    stability: float | None = None
    event_ms: int | None = None
    timing: Timing | None = None
    shed: list[str] = []  # noqa: RUF012  (as those of Heard)


def session_life(session: str, incarnation: int) -> str:
    """Gives the name of one of the sessions that use a key one after the other."""
    return f"{session}/{incarnation}"


def life_of(result: Result) -> str:
    """Gives the name of the session that a result is of."""
    return result.result_id.rsplit("/", 2)[0]


def event_to_result(event: Event, heard: Heard, made_by: MadeBy) -> Result | None:
    """Gives the result of an event; None for audio and what is not yet in words: they go other ways."""
    match event:
        case SpeechBegin(utterance, start):
            return _result(heard, made_by, "speech_begin", utterance, "begin", start, start)
        case SpeechEnd(utterance, start, end, reason):
            return _result(heard, made_by, "speech_end", utterance, "end", start, end)._replace(reason=reason)
        case TentativeEnd(utterance, revision, text, words, start, end):
            result = _result(heard, made_by, "tentative_end", utterance, str(revision), start, end)
            return result._replace(revision=revision, text=text, words=list(words))
        case SpeechResumed(utterance, revision, position):
            result = _result(heard, made_by, "speech_resumed", utterance, str(revision), position, position)
            return result._replace(revision=revision)
        case Partial(utterance, revision, text, start, end, stability):
            result = _result(heard, made_by, "partial", utterance, str(revision), start, end)
            return result._replace(revision=revision, text=text, stability=stability)
        case Final(utterance, revision, text, words, _, start, end):
            result = _result(heard, made_by, "final", utterance, str(revision), start, end)
            return result._replace(revision=revision, text=text, words=list(words), timing=heard.timing)
        case Enhanced() | UtteranceAudio() | Utterance():
            return None


def session_end(heard: Heard, made_by: MadeBy, reason: str) -> Result:
    """Gives the result that says a session has ended, after its last final; start to end is all of its audio."""
    end_samples = heard.audio_ms * heard.sample_rate_hz // 1000
    ended = _result(heard, made_by, "session_end", NO_UTTERANCE, "end", 0, end_samples)
    return ended._replace(end_ms=heard.audio_ms, reason=reason)


def result_to_json(result: Result, now_ms: int | None = None) -> bytes:
    """Gives the wire form.

    latency_ms is measured here, from the capture of the last sample to `now_ms`. It is null where there is no clock, or
    where the last sample would lie ahead of it: then the timestamps are not those of capture.
    """
    fields = result._asdict()
    captured_ms = fields.pop("captured_ms")
    fields["words"] = [word._asdict() for word in result.words]
    fields["gaps"] = [gap._asdict() for gap in result.gaps]
    timed = now_ms is not None and captured_ms is not None and captured_ms <= now_ms
    fields["latency_ms"] = now_ms - captured_ms if timed else None
    if result.timing is not None and now_ms is not None:
        fields["timing"] = timing_fields(result.timing, now_ms)
    return msgspec.json.encode(fields)


def _result(
    heard: Heard, made_by: MadeBy, type_: str, utterance: int, step: str, start_samples: int, end_samples: int
) -> Result:
    return Result(
        # The last three parts hold no slash, so the id is unique whatever the session is called.
        result_id=f"{session_life(heard.session, heard.incarnation)}/{utterance}/{step}",
        session=heard.session,
        utterance=utterance,
        revision=0,
        type=type_,
        text="",
        words=[],
        start_ms=samples_to_ms(start_samples, heard.sample_rate_hz),
        end_ms=samples_to_ms(end_samples, heard.sample_rate_hz),
        audio_ms=heard.audio_ms,
        model=made_by.model,
        device=made_by.device,
        gaps=heard.gaps,
        duplicates=heard.duplicates,
        reason="",
        captured_ms=heard.captured_ms,
        event_ms=event_time_ms(heard.anchors, end_samples, heard.sample_rate_hz) if heard.anchors else None,
        shed=heard.shed,
    )


register(Result)
