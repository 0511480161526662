"""The asr stage of one utterance: audio in, partials on the way, a final at the end."""

from typing import Protocol

import msgspec
import numpy as np

from model_runtime.calls import Call, States, Steps
from model_runtime.ctc import START, DecoderState, GreedyDecoder, PrefixBeamDecoder, Token, Tokens
from model_runtime.ctc_encoder import StreamingCtcKernel, UtteranceCtcKernel
from model_runtime.records import Event, Final, Partial
from model_runtime.words import WordTimes

Decoder = GreedyDecoder | PrefixBeamDecoder


class UtteranceState(msgspec.Struct, frozen=True, array_like=True):
    """An utterance under way; positions are samples at the models' rate."""

    utterance: int
    start: int
    # Audio that has not been through the model yet: arrays [n], float32.
    audio: tuple[np.ndarray, ...]
    # Streaming recognisers only: samples that have been through it, and its memory.
    consumed: int = 0
    states: States = ()
    decoder: DecoderState = START
    revision: int = 0
    text: str = ""


class Recognizer(Protocol):
    """What a listener needs of an asr stage."""

    # True where nothing is known before the utterance has ended.
    waits_for_end: bool

    def start(self, utterance: int, position: int) -> UtteranceState:
        """Begins an utterance at `position`."""

    def push(self, state: UtteranceState, samples: np.ndarray, events: list[Event]) -> Steps[UtteranceState]:
        """Takes the next samples; appends partials to `events`."""

    def finish(self, state: UtteranceState, end: int, silence: int) -> Steps[Final]:
        """Ends the utterance at `end`; the last `silence` samples that were pushed held no speech."""

    def last_token(self, state: UtteranceState) -> tuple[Token, Token] | None:
        """Gives the first and the last token so far, or None."""


class StreamingRecognizer:
    """A streaming CTC model and a decoder that go on block by block."""

    waits_for_end = False

    def __init__(
        self, kernel: StreamingCtcKernel, decoder: Decoder, times: WordTimes, partial_interval_samples: int
    ) -> None:
        self._kernel = kernel
        self._decoder = decoder
        self._times = times
        self._interval = partial_interval_samples

    def start(self, utterance: int, position: int) -> UtteranceState:
        """Begins an utterance at `position` with a fresh memory."""
        context = np.zeros(self._kernel.framing.context_samples, np.float32)
        states = self._kernel.initial_states()
        return UtteranceState(utterance, position, (context,), 0, states)

    def push(self, state: UtteranceState, samples: np.ndarray, events: list[Event]) -> Steps[UtteranceState]:
        """Takes the next samples; appends a partial whenever a multiple of the interval is passed with new text."""
        framing = self._kernel.framing
        block, needed = framing.block_samples, framing.block_samples + framing.context_samples
        audio = np.concatenate((state.audio[0], samples))
        consumed, states, decoder, at = state.consumed, state.states, state.decoder, 0
        revision, text = state.revision, state.text
        while len(audio) - at >= needed:
            log_probs, states = yield Call(self._kernel, None, (audio[at : at + needed], states))
            at += block
            decoder = self._decoder.advance(decoder, log_probs)
            if self._interval and (consumed + block) // self._interval > consumed // self._interval:
                new_text = self._times.text(self._decoder.so_far(decoder))
                if new_text != text:
                    text = new_text
                    end = state.start + consumed + block
                    events.append(Partial(state.utterance, revision, text, state.start, end))
                    revision += 1
            consumed += block
        audio = audio[at:].copy()
        return UtteranceState(state.utterance, state.start, (audio,), consumed, states, decoder, revision, text)

    def finish(self, state: UtteranceState, end: int, silence: int) -> Steps[Final]:
        """Flushes the model with zeros, as far as the silence that it heard falls short of its tail."""
        framing = self._kernel.framing
        pending = len(state.audio[0]) - framing.context_samples
        missing = pending + max(0, framing.tail_samples - silence)
        zeros = np.zeros(-(-missing // framing.block_samples) * framing.block_samples - pending, np.float32)
        state = yield from self.push(state, zeros, [])
        return _final(state, self._decoder.finish(state.decoder), self._times, end)

    def last_token(self, state: UtteranceState) -> tuple[Token, Token] | None:
        """Gives the first and the last token so far."""
        tokens = state.decoder.tokens()
        return (tokens[0], tokens[-1]) if tokens else None


class UtteranceRecognizer:
    """A full-context CTC model that runs once, when the utterance has ended."""

    waits_for_end = True

    def __init__(self, kernel: UtteranceCtcKernel, decoder: Decoder, times: WordTimes) -> None:
        self._kernel = kernel
        self._decoder = decoder
        self._times = times

    def start(self, utterance: int, position: int) -> UtteranceState:
        """Begins an utterance at `position`."""
        return UtteranceState(utterance, position, ())

    def push(self, state: UtteranceState, samples: np.ndarray, events: list[Event]) -> Steps[UtteranceState]:
        """Keeps the samples."""
        yield from ()
        return UtteranceState(state.utterance, state.start, state.audio + (samples.copy(),))

    def finish(self, state: UtteranceState, end: int, silence: int) -> Steps[Final]:
        """Runs the model over [start, end), padded with zeros."""
        framing = self._kernel.framing
        audio = np.concatenate((np.zeros(framing.context_samples, np.float32), *state.audio))
        audio = audio[: framing.context_samples + end - state.start]
        multiple = framing.pad_multiple_samples
        samples = max(multiple, -(-(end - state.start) // multiple) * multiple)
        padded = np.zeros(framing.context_samples + samples, np.float32)
        padded[: len(audio)] = audio
        log_probs = yield Call(self._kernel, samples, (padded,))
        decoder = self._decoder.advance(START, log_probs)
        return _final(state, self._decoder.finish(decoder), self._times, end)

    def last_token(self, state: UtteranceState) -> None:
        """Nothing is known before the end."""
        return None


def _final(state: UtteranceState, tokens: Tokens, times: WordTimes, end: int) -> Final:
    words = times.words(tokens, state.start, end)
    confidence = round(sum(word.confidence for word in words) / len(words), 4) if words else 0.0
    return Final(state.utterance, state.revision, times.text(tokens), words, confidence, state.start, end)
