"""Listening with a voice activity model: it cuts the session into utterances, and the recogniser hears only those."""

import msgspec
import numpy as np
from msgspec.structs import replace

from model_runtime.calls import Call, States, Steps
from model_runtime.endpoint import EndpointRules
from model_runtime.frame_probability import ProbabilityKernel
from model_runtime.recognizer import Recognizer, UtteranceState, tentative_end
from model_runtime.records import Event, SpeechBegin, SpeechEnd, SpeechResumed
from model_runtime.segmenter import Begin, Change, End, Pause, Resumed, Segmenter, SegmentState


class VadListenerState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a session stands; audio is float32 at the models' rate, positions are its samples."""

    received: int
    # The model's context, then the samples that do not fill its block yet.
    pending: np.ndarray
    # The recogniser's audio up to `received`, as far back as an utterance may still begin.
    recent: np.ndarray
    states: States
    segment: SegmentState
    # Also where there is no recogniser: it counts the revisions.
    utterance: UtteranceState | None = None
    # How far the open utterance has been given to the recogniser.
    heard: int = 0
    # Of this session; None: as the recipe has it.
    partial_interval: int | None = None


class VadListener:
    """The vad stage, and the asr stage behind it where the recipe has one."""

    def __init__(self, kernel: ProbabilityKernel, segmenter: Segmenter, recognizer: Recognizer | None) -> None:
        self._kernel = kernel
        self._segmenter = segmenter
        self._recognizer = recognizer
        self._block = kernel.framing.block_samples
        self._context = kernel.framing.context_samples
        self._lookback = segmenter.lookback_samples(self._block)

    def start(self, rules: EndpointRules | None = None, partial_interval: int | None = None) -> VadListenerState:
        """Gives the state of a new session, with rules of its own where it has them."""
        context, nothing = np.zeros(self._context, np.float32), np.zeros(0, np.float32)
        states, segment = self._kernel.initial_states(), SegmentState(rules=rules)
        return VadListenerState(0, context, nothing, states, segment, partial_interval=partial_interval)

    def push(
        self, state: VadListenerState, vad_audio: np.ndarray, asr_audio: np.ndarray, events: list[Event]
    ) -> Steps[VadListenerState]:
        """Takes equally long audio for the vad and for the recogniser; appends what it gives rise to."""
        state = replace(
            state,
            received=state.received + len(vad_audio),
            pending=np.concatenate((state.pending, vad_audio)),
            recent=np.concatenate((state.recent, asr_audio)) if self._recognizer else state.recent,
        )
        if len(state.pending) < self._context + self._block:
            return state
        while len(state.pending) >= self._context + self._block:
            state = yield from self._judge_block(state, events)
        # Views would keep what is done with.
        return replace(state, pending=state.pending.copy(), recent=state.recent.copy())

    def finish(self, state: VadListenerState, events: list[Event]) -> Steps[VadListenerState]:
        """Ends the session: the rest is judged behind zeros, and an open utterance ends with the stream."""
        rest = len(state.pending) - self._context
        if rest:
            zeros = np.zeros(self._block - rest, np.float32)
            state = replace(state, pending=np.concatenate((state.pending, zeros)))
            state = yield from self._judge_block(state, events)
        segment, end = self._segmenter.finish(state.segment, state.received)
        state = replace(state, segment=segment)
        if end is not None:
            state = yield from self._close(state, end, state.received, events)
        return state

    def _judge_block(self, state: VadListenerState, events: list[Event]) -> Steps[VadListenerState]:
        """Takes the first block off `pending`; frames that begin behind the last received sample do not count."""
        row = (state.pending[: self._context + self._block], state.states)
        probabilities, states = yield Call(self._kernel, None, row)
        segment, frame = state.segment, self._block // len(probabilities)
        block_end = min(segment.position + self._block, state.received)
        left = probabilities[: -(-(block_end - segment.position) // frame)].tolist()
        while left:
            segment, taken, change = self._segmenter.advance(segment, left, frame)
            left = left[taken:]
            if change is not None:
                state = yield from self._follow(state, change, min(segment.position, block_end), events)
        if state.utterance is not None:
            state = yield from self._hear(state, block_end, events)
        keep = state.received - block_end + self._lookback_from(block_end, segment)
        recent = state.recent[max(0, len(state.recent) - keep) :]
        return replace(state, pending=state.pending[self._block :], recent=recent, states=states, segment=segment)

    def _lookback_from(self, now: int, segment: SegmentState) -> int:
        """How far before `now` a later utterance may begin: not before the last speech of the one under way."""
        return self._lookback if segment.start < 0 else min(self._lookback, max(0, now - segment.last_speech))

    def _follow(
        self, state: VadListenerState, change: Change, now: int, events: list[Event]
    ) -> Steps[VadListenerState]:
        """Does what a transition of the segmenter, known at position `now`, asks for."""
        match change:
            case Begin():
                return self._open(state, change, events)
            case Pause():
                return (yield from self._pause(state, change, now, events))
            case Resumed(number, position) if state.utterance is not None:
                utterance = state.utterance
                events.append(SpeechResumed(number, utterance.revision, position))
                return replace(state, utterance=replace(utterance, revision=utterance.revision + 1))
            case End():
                return (yield from self._close(state, change, now, events))
        return state

    def _open(self, state: VadListenerState, begin: Begin, events: list[Event]) -> VadListenerState:
        events.append(SpeechBegin(begin.utterance, begin.start))
        number, start = begin
        utterance = self._recognizer.start(number, start) if self._recognizer else UtteranceState(number, start, ())
        utterance = replace(utterance, partial_interval=state.partial_interval)
        return replace(state, utterance=utterance, heard=start)

    def _hear(self, state: VadListenerState, now: int, events: list[Event]) -> Steps[VadListenerState]:
        """Gives the recogniser the open utterance's audio up to position `now`."""
        if state.utterance is None or self._recognizer is None:
            return state
        first = len(state.recent) - (state.received - state.heard)
        audio = state.recent[first : first + now - state.heard]
        utterance = yield from self._recognizer.push(state.utterance, audio, events)
        return replace(state, utterance=utterance, heard=now)

    def _pause(self, state: VadListenerState, pause: Pause, now: int, events: list[Event]) -> Steps[VadListenerState]:
        """Says what would be said if the utterance ended at position `now`."""
        state = yield from self._hear(state, now, events)
        if state.utterance is None:
            return state
        utterance, event = yield from tentative_end(
            self._recognizer, state.utterance, pause.start, min(pause.end, now), pause.silence
        )
        events.append(event)
        return replace(state, utterance=utterance)

    def _close(self, state: VadListenerState, end: End, now: int, events: list[Event]) -> Steps[VadListenerState]:
        """Ends the utterance, known at position `now`: the rest of its audio, SpeechEnd, Final."""
        end_at = min(end.end, now)
        state = yield from self._hear(state, now, events)
        events.append(SpeechEnd(end.utterance, end.start, end_at, end.reason))
        if state.utterance is not None and self._recognizer is not None:
            final = yield from self._recognizer.finish(state.utterance, end_at, end.silence)
            events.append(final)
        return replace(state, utterance=None)
