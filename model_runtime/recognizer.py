"""The asr stage of one utterance: audio in, partials on the way, a final at the end."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
from msgspec.structs import replace

from model_runtime.calls import Call, States, Steps
from model_runtime.ctc import START, DecoderState, GreedyDecoder, PrefixBeamDecoder, Token, Tokens
from model_runtime.encoder import StreamingEncoderKernel
from model_runtime.local_agreement import stability
from model_runtime.records import Event, Final, Partial, TentativeEnd, Utterance, Word
from model_runtime.transducer import TransducerState
from model_runtime.words import WordTimes

Decoder = GreedyDecoder | PrefixBeamDecoder


class Search(Protocol):
    """How a streaming recogniser turns its encoder's output into tokens: what it remembers is its own affair."""

    def start(self) -> DecoderState | TransducerState:
        """Gives the state of a new utterance."""

    def advance(self, state: Any, encoded: np.ndarray) -> Steps[Any]:
        """Takes the output of the next frames."""

    def so_far(self, state: Any) -> Tokens:
        """Gives the tokens of an utterance that goes on."""

    def finish(self, state: Any) -> Tokens:
        """Gives the tokens of the whole utterance."""


class CtcSearch:
    """A CTC decoder, which needs no model on the way."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self.so_far = decoder.so_far
        self.finish = decoder.finish

    def start(self) -> DecoderState:
        """Gives the state of a new utterance."""
        return START

    def advance(self, state: DecoderState, log_probs: np.ndarray) -> Steps[DecoderState]:
        """Takes log probabilities [frames, tokens]."""
        yield from ()
        return self._decoder.advance(state, log_probs)


class UtteranceState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An utterance under way; positions are samples at the models' rate."""

    utterance: int
    start: int
    # Audio that has not been through the model yet: float32 [n], or all of it in pieces of int16 [n].
    audio: tuple[np.ndarray, ...]
    # Samples that have been through the model, or, where it hears utterances whole, that have been kept for it.
    consumed: int = 0
    # The memory of streaming recognisers.
    states: States = ()
    decoder: DecoderState | TransducerState = START
    # Of the next event that has one.
    revision: int = 0
    text: str = ""
    # Recognisers that hear utterances whole only: what the last interval was decoded as.
    decoded: str = ""
    # Samples between two partials in this session; None: as the recipe has it.
    partial_interval: int | None = None


class Recognizer(Protocol):
    """What a listener needs of an asr stage."""

    # True where nothing is known before the utterance has ended.
    waits_for_end: bool

    def start(self, utterance: int, position: int) -> UtteranceState:
        """Begins an utterance at `position`."""

    def push(self, state: UtteranceState, samples: np.ndarray, events: list[Event]) -> Steps[UtteranceState]:
        """Takes the next samples; appends partials to `events`."""

    def finish(self, state: UtteranceState, end: int, silence: int) -> Steps[Final | Utterance]:
        """Ends the utterance at `end`; the last `silence` samples that were pushed held no speech."""

    def last_token(self, state: UtteranceState) -> tuple[Token, Token] | None:
        """Gives the first and the last token so far, or None."""


class StreamingRecognizer:
    """A streaming encoder and a search that go on block by block."""

    waits_for_end = False

    def __init__(
        self, kernel: StreamingEncoderKernel, search: Search, times: WordTimes, partial_interval_samples: int
    ) -> None:
        self._kernel = kernel
        self._search = search
        self._times = times
        self._interval = partial_interval_samples

    def start(self, utterance: int, position: int) -> UtteranceState:
        """Begins an utterance at `position` with a fresh memory."""
        context = np.zeros(self._kernel.framing.context_samples, np.float32)
        states = self._kernel.initial_states()
        return UtteranceState(utterance, position, (context,), 0, states, self._search.start())

    def push(self, state: UtteranceState, samples: np.ndarray, events: list[Event]) -> Steps[UtteranceState]:
        """Takes the next samples; appends a partial whenever a multiple of the interval is passed with new text."""
        framing = self._kernel.framing
        block, needed = framing.block_samples, framing.block_samples + framing.context_samples
        audio = np.concatenate((state.audio[0], samples))
        consumed, states, decoder, at = state.consumed, state.states, state.decoder, 0
        revision, text = state.revision, state.text
        interval = self._interval if state.partial_interval is None else state.partial_interval
        while len(audio) - at >= needed:
            encoded, states = yield Call(self._kernel, None, (audio[at : at + needed], states))
            at += block
            decoder = yield from self._search.advance(decoder, encoded)
            if interval and (consumed + block) // interval > consumed // interval:
                new_text = self._times.text(self._search.so_far(decoder))
                if new_text != text:
                    end = state.start + consumed + block
                    stands = stability(text, new_text)
                    events.append(Partial(state.utterance, revision, new_text, state.start, end, stands))
                    text = new_text
                    revision += 1
            consumed += block
        audio = audio[at:].copy()
        return replace(
            state,
            audio=(audio,),
            consumed=consumed,
            states=states,
            decoder=decoder,
            revision=revision,
            text=text,
        )

    def finish(self, state: UtteranceState, end: int, silence: int) -> Steps[Final]:
        """Flushes the model with zeros, as far as the silence that it heard falls short of its tail."""
        framing = self._kernel.framing
        pending = len(state.audio[0]) - framing.context_samples
        missing = pending + max(0, framing.tail_samples - silence)
        zeros = np.zeros(-(-missing // framing.block_samples) * framing.block_samples - pending, np.float32)
        state = yield from self.push(state, zeros, [])
        tokens = self._search.finish(state.decoder)
        words = self._times.words(tokens, state.start, end)
        text, confidence = self._times.text(tokens), mean_confidence(words)
        return Final(state.utterance, state.revision, text, words, confidence, state.start, end)

    def last_token(self, state: UtteranceState) -> tuple[Token, Token] | None:
        """Gives the first and the last token so far."""
        tokens = state.decoder.tokens()
        return (tokens[0], tokens[-1]) if tokens else None


def tentative_end(
    recognizer: Recognizer | None, state: UtteranceState, start: int, end: int, silence: int
) -> Steps[tuple[UtteranceState, TentativeEnd]]:
    """Gives the event of an utterance [start, end) that may be over, and the state from which it goes on if it is not.

    Args:
        recognizer: None where nobody knows any words.
        silence: as in Recognizer.finish.
    """
    text, words = state.text, tuple[Word, ...]()
    if recognizer is not None and not recognizer.waits_for_end:
        final = yield from recognizer.finish(state, end, silence)
        if isinstance(final, Final):
            text, words = final.text, final.words
    event = TentativeEnd(state.utterance, state.revision, text, words, start, end)
    return replace(state, revision=state.revision + 1), event


def mean_confidence(words: Sequence[Word]) -> float:
    """Gives the confidence of a text from those of its words: their mean, 0 where nothing was said."""
    return round(sum(word.confidence for word in words) / len(words), 4) if words else 0.0
