"""From speech probabilities to utterances: hysteresis, minimum speech, padding and the endpoint rules."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from model_runtime.endpoint import EndpointRules
from model_runtime.recipe import EndpointConfig, VadConfig


class SegmentState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the segmenter stands; positions are samples at the models' rate since the session's start."""

    position: int = 0
    # No utterance may begin before the end of the one before it.
    floor: int = 0
    # Outside an utterance: start of the current run of speech frames, or -1.
    candidate: int = -1
    # Inside one: its start (else -1), whether speech is going on, and where speech was last.
    start: int = -1
    speaking: bool = False
    last_speech: int = 0
    utterance: int = 0
    # Of this session; None: the recipe's.
    rules: EndpointRules | None = None


class Begin(NamedTuple):
    """An utterance begins at `start`; it is known only now."""

    utterance: int
    start: int


class End(NamedTuple):
    """An utterance was [start, end); `silence` samples since its last speech have gone by."""

    utterance: int
    start: int
    end: int
    silence: int
    reason: str


class Pause(NamedTuple):
    """The utterance, [start, end) so far, may be over: `silence` samples since its last speech have gone by."""

    utterance: int
    start: int
    end: int
    silence: int


class Resumed(NamedTuple):
    """Speech goes on after a Pause; the position is that at which it is known."""

    utterance: int
    position: int


Change = Begin | Pause | Resumed | End


class Segmenter:
    """Cuts a session into utterances, frame by frame, as a function of the probabilities alone."""

    def __init__(self, config: VadConfig, endpoint: EndpointConfig, sample_rate_hz: int) -> None:
        self._config = config
        self._rules = EndpointRules.of(endpoint, sample_rate_hz)
        self._min_speech = config.min_speech_ms * sample_rate_hz // 1000
        self._pad_before = config.pad_before_ms * sample_rate_hz // 1000
        self._pad_after = config.pad_after_ms * sample_rate_hz // 1000

    def lookback_samples(self, frame_samples: int) -> int:
        """How far before the current frame's end an utterance can begin, at most."""
        return self._pad_before + self._min_speech + 2 * frame_samples

    def advance(
        self, state: SegmentState, probabilities: Sequence[float], frame_samples: int
    ) -> tuple[SegmentState, int, Change | None]:
        """Takes the probabilities of the next frames, up to the first one that causes a transition.

        Returns:
            The state after the frames that were taken, their number, and the transition, if any.
        """
        if state.start < 0:
            return self._outside(state, probabilities, frame_samples)
        return self._inside(state, probabilities, frame_samples)

    def finish(self, state: SegmentState, total_samples: int) -> tuple[SegmentState, End | None]:
        """Ends the session at `total_samples`; an open utterance ends with reason "stream"."""
        if state.start < 0:
            return state, None
        last_speech = min(state.last_speech, total_samples)
        end = max(state.start, min(last_speech + self._pad_after, total_samples))
        closed = self._between(state, total_samples, end, state.utterance + 1)
        return closed, End(state.utterance, state.start, end, total_samples - last_speech, "stream")

    def _outside(
        self, state: SegmentState, probabilities: Sequence[float], frame: int
    ) -> tuple[SegmentState, int, Begin | None]:
        position, candidate = state.position, state.candidate
        for taken, probability in enumerate(probabilities, start=1):
            now = position + frame
            if probability < self._config.threshold:
                candidate = -1
            else:
                candidate = position if candidate < 0 else candidate
                if now - candidate >= self._min_speech:
                    start = max(state.floor, candidate - self._pad_before)
                    opened = SegmentState(now, state.floor, -1, start, True, now, state.utterance, state.rules)
                    return opened, taken, Begin(state.utterance, start)
            position = now
        return replace(state, position=position, candidate=candidate), len(probabilities), None

    def _inside(
        self, state: SegmentState, probabilities: Sequence[float], frame: int
    ) -> tuple[SegmentState, int, Pause | Resumed | End | None]:
        rules = state.rules or self._rules
        position, speaking, last_speech = state.position, state.speaking, state.last_speech
        for taken, probability in enumerate(probabilities, start=1):
            silence_before = position - last_speech
            position += frame
            speaking = probability >= (self._config.stop_threshold if speaking else self._config.threshold)
            last_speech = position if speaking else last_speech
            silence = position - last_speech
            reason = rules.check(True, silence, position - state.start)
            pause = rules.pause(silence_before, silence)
            if reason is None and pause is None:
                continue
            inside = replace(state, position=position, speaking=speaking, last_speech=last_speech)
            if reason is not None:
                closed, end = self._closed(inside, silence, reason)
                return closed, taken, end
            if pause == "over":
                return inside, taken, Resumed(state.utterance, position)
            end_so_far = min(last_speech + self._pad_after, position)
            return inside, taken, Pause(state.utterance, state.start, end_so_far, silence)
        return replace(state, position=position, speaking=speaking, last_speech=last_speech), len(probabilities), None

    def _closed(self, state: SegmentState, silence: int, reason: str) -> tuple[SegmentState, End]:
        """Ends the utterance at the state's position."""
        now = state.position
        end = min(state.last_speech + self._pad_after, now) if reason == "silence" else now
        # Speech that is cut by the length rule goes on in the next utterance, from the cut.
        candidate = end if state.speaking else -1
        closed = replace(self._between(state, now, end, state.utterance + 1), candidate=candidate)
        return closed, End(state.utterance, state.start, end, silence, reason)

    def _between(self, state: SegmentState, position: int, floor: int, utterance: int) -> SegmentState:
        """Gives the state outside an utterance."""
        return SegmentState(position, floor, utterance=utterance, rules=state.rules)
