"""From speech probabilities to utterances: hysteresis, minimum speech, padding and the endpoint rules."""

from typing import NamedTuple

import msgspec

from model_runtime.endpoint import EndpointRules
from model_runtime.recipe import EndpointConfig, VadConfig


class SegmentState(msgspec.Struct, frozen=True, array_like=True):
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


class Segmenter:
    """Cuts a session into utterances, frame by frame, as a function of the probabilities alone."""

    def __init__(self, config: VadConfig, endpoint: EndpointConfig, sample_rate_hz: int) -> None:
        self._config = config
        self._rules = EndpointRules(endpoint, sample_rate_hz)
        self._min_speech = config.min_speech_ms * sample_rate_hz // 1000
        self._pad_before = config.pad_before_ms * sample_rate_hz // 1000
        self._pad_after = config.pad_after_ms * sample_rate_hz // 1000

    def lookback_samples(self, frame_samples: int) -> int:
        """How far before the current frame's end an utterance can begin, at most."""
        return self._pad_before + self._min_speech + 2 * frame_samples

    def advance(
        self, state: SegmentState, probability: float, frame_samples: int
    ) -> tuple[SegmentState, Begin | End | None]:
        """Takes the next frame's probability; gives the transition it causes, if any."""
        if state.start < 0:
            return self._outside(state, probability, frame_samples)
        return self._inside(state, probability, frame_samples)

    def finish(self, state: SegmentState, total_samples: int) -> tuple[SegmentState, End | None]:
        """Ends the session at `total_samples`; an open utterance ends with reason "stream"."""
        if state.start < 0:
            return state, None
        last_speech = min(state.last_speech, total_samples)
        end = max(state.start, min(last_speech + self._pad_after, total_samples))
        closed = SegmentState(position=total_samples, floor=end, utterance=state.utterance + 1)
        return closed, End(state.utterance, state.start, end, total_samples - last_speech, "stream")

    def _outside(self, state: SegmentState, probability: float, frame: int) -> tuple[SegmentState, Begin | None]:
        now = state.position + frame
        if probability < self._config.threshold:
            return SegmentState(position=now, floor=state.floor, utterance=state.utterance), None
        candidate = state.position if state.candidate < 0 else state.candidate
        if now - candidate < self._min_speech:
            return SegmentState(now, state.floor, candidate, utterance=state.utterance), None
        start = max(state.floor, candidate - self._pad_before)
        opened = SegmentState(now, state.floor, -1, start, True, now, state.utterance)
        return opened, Begin(state.utterance, start)

    def _inside(self, state: SegmentState, probability: float, frame: int) -> tuple[SegmentState, End | None]:
        now = state.position + frame
        bound = self._config.stop_threshold if state.speaking else self._config.threshold
        speaking = probability >= bound
        last_speech = now if speaking else state.last_speech
        reason = self._rules.check(True, now - last_speech, now - state.start)
        if reason is None:
            return SegmentState(now, state.floor, -1, state.start, speaking, last_speech, state.utterance), None
        end = min(last_speech + self._pad_after, now) if reason == "silence" else now
        # Speech that is cut by the length rule goes on in the next utterance, from the cut.
        candidate = end if speaking else -1
        closed = SegmentState(now, end, candidate, utterance=state.utterance + 1)
        return closed, End(state.utterance, state.start, end, now - last_speech, reason)
