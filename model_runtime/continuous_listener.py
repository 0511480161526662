"""Listening without a voice activity model: the recogniser hears all, its tokens tell speech from silence."""

import msgspec
import numpy as np
from msgspec.structs import replace

from model_runtime.calls import Steps
from model_runtime.ctc import Token
from model_runtime.endpoint import EndpointRules
from model_runtime.recognizer import Recognizer, UtteranceState, tentative_end
from model_runtime.records import Event, SpeechBegin, SpeechEnd, SpeechResumed, Utterance
from model_runtime.words import WordTimes


class ContinuousListenerState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a session stands; audio is float32 at the models' rate, positions are its samples."""

    # Samples that do not fill a block yet.
    pending: np.ndarray
    position: int
    utterance: UtteranceState
    # Where SpeechBegin was said to be for the utterance under way, or -1.
    begun_at: int = -1
    # Of this session; None: as the recipe has them.
    rules: EndpointRules | None = None
    partial_interval: int | None = None


class ContinuousListener:
    """The asr stage of a recipe without a vad.

    A recogniser that knows nothing before the end (full context) counts as speaking all the time: only the length
    rule and the end of the stream end its utterances.
    """

    def __init__(self, recognizer: Recognizer, times: WordTimes, rules: EndpointRules, block_samples: int) -> None:
        self._recognizer = recognizer
        self._times = times
        self._rules = rules
        self._block = block_samples

    def start(self, rules: EndpointRules | None = None, partial_interval: int | None = None) -> ContinuousListenerState:
        """Gives the state of a new session, with rules of its own where it has them."""
        utterance = self._start_utterance(0, 0, partial_interval)
        return ContinuousListenerState(
            np.zeros(0, np.float32), 0, utterance, rules=rules, partial_interval=partial_interval
        )

    def push(
        self, state: ContinuousListenerState, audio: np.ndarray, events: list[Event]
    ) -> Steps[ContinuousListenerState]:
        """Takes any number of samples; appends what they give rise to."""
        state = replace(state, pending=np.concatenate((state.pending, audio)))
        while len(state.pending) >= self._block:
            state = yield from self._hear_block(state, events)
        return replace(state, pending=state.pending.copy())

    def finish(self, state: ContinuousListenerState, events: list[Event]) -> Steps[ContinuousListenerState]:
        """Ends the session: the utterance under way ends with the stream."""
        total = state.position + len(state.pending)
        utterance = yield from self._recognizer.push(state.utterance, state.pending, events)
        state = replace(state, pending=state.pending[:0], position=total, utterance=utterance)
        state = yield from self._end(state, "stream", 0, events)
        return state

    def _hear_block(self, state: ContinuousListenerState, events: list[Event]) -> Steps[ContinuousListenerState]:
        partials: list[Event] = []
        pause_before = self._pause(state)
        utterance = yield from self._recognizer.push(state.utterance, state.pending[: self._block], partials)
        now = state.position + self._block
        state = replace(state, pending=state.pending[self._block :], position=now, utterance=utterance)
        known = self._recognizer.last_token(utterance)
        if known is not None and state.begun_at < 0:
            state = replace(state, begun_at=self._times.begin_of(known[0], utterance.start))
            events.append(SpeechBegin(utterance.utterance, state.begun_at))
        events.extend(partials)
        silence = self._silence(state, known)
        spoken = known is not None or self._recognizer.waits_for_end
        rules = state.rules or self._rules
        reason = rules.check(spoken, silence, now - utterance.start)
        if reason is not None:
            return (yield from self._end(state, reason, silence, events))
        match rules.pause(pause_before, self._pause(state)):
            case "begun":
                begin, end = state.begun_at, now - silence
                utterance, event = yield from tentative_end(self._recognizer, utterance, begin, end, silence)
                events.append(event)
            case "over":
                events.append(SpeechResumed(utterance.utterance, utterance.revision, now))
                utterance = replace(utterance, revision=utterance.revision + 1)
        return replace(state, utterance=utterance)

    def _pause(self, state: ContinuousListenerState) -> int:
        """Gives the samples since the last token; none where there is no token."""
        known = self._recognizer.last_token(state.utterance)
        return self._silence(state, known) if known is not None else 0

    def _silence(self, state: ContinuousListenerState, known: tuple[Token, Token] | None) -> int:
        """Gives the samples since the last token, or since the start where there is none."""
        if self._recognizer.waits_for_end:
            return 0
        start = state.utterance.start
        return state.position - (self._times.end_of(known[1], start) if known else start)

    def _end(
        self, state: ContinuousListenerState, reason: str, silence: int, events: list[Event]
    ) -> Steps[ContinuousListenerState]:
        """Ends the utterance here; one in which nothing was said leaves no trace but a fresh memory."""
        utterance, now = state.utterance, state.position
        end = now - silence if reason == "silence" else now
        final = yield from self._recognizer.finish(utterance, end, silence)
        if isinstance(final, Utterance):
            raise TypeError("without a vad, what was said decides whether there was an utterance: it cannot wait")
        number = utterance.utterance
        if state.begun_at >= 0 or final.words:
            begin = state.begun_at if state.begun_at >= 0 else self._times.samples(final.words[0].start_ms)
            if state.begun_at < 0:
                events.append(SpeechBegin(number, begin))
            events += [SpeechEnd(number, begin, end, reason), final._replace(start_samples=begin)]
            number += 1
        return replace(state, utterance=self._start_utterance(number, now, state.partial_interval), begun_at=-1)

    def _start_utterance(self, number: int, position: int, partial_interval: int | None) -> UtteranceState:
        return replace(self._recognizer.start(number, position), partial_interval=partial_interval)
