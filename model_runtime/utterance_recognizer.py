"""The asr stage of models that hear an utterance whole, once it has ended: here, or wherever its audio is sent."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from msgspec.structs import replace

from model_runtime.calls import Call, Steps
from model_runtime.ctc import START
from model_runtime.decode import decode_pcm, encode_linear16
from model_runtime.encoder import UtteranceEncoderKernel
from model_runtime.local_agreement import agreed, newly_passed
from model_runtime.recognizer import Decoder, UtteranceState, mean_confidence
from model_runtime.records import Event, Final, Partial, Utterance, UtteranceAudio, Word
from model_runtime.whisper_features import SAMPLE_RATE_HZ
from model_runtime.whisper_transcriber import Transcript, WhisperTranscriber
from model_runtime.words import WordTimes

Said = tuple[str, tuple[Word, ...]]


class Transcriber(Protocol):
    """A model that hears an utterance whole."""

    def transcribe(self, audio: np.ndarray, start: int) -> Steps[Said]:
        """Gives text and words of an utterance, float32 [n], whose first sample is number `start` of its session."""


class CtcTranscriber:
    """A full-context CTC model and a decoder."""

    def __init__(self, kernel: UtteranceEncoderKernel, decoder: Decoder, times: WordTimes) -> None:
        self._kernel = kernel
        self._decoder = decoder
        self._times = times

    def transcribe(self, audio: np.ndarray, start: int) -> Steps[Said]:
        """Runs the model over the audio behind zeros of context, padded with zeros to what the model takes."""
        framing = self._kernel.framing
        multiple = framing.pad_multiple_samples
        samples = max(multiple, -(-len(audio) // multiple) * multiple)
        padded = np.zeros(framing.context_samples + samples, np.float32)
        padded[framing.context_samples : framing.context_samples + len(audio)] = audio
        log_probs = yield Call(self._kernel, samples, (padded,), samples, samples - len(audio))
        tokens = self._decoder.finish(self._decoder.advance(START, log_probs))
        return self._times.text(tokens), self._times.words(tokens, start, start + len(audio))


class WhisperKernel:
    """Rows (samples of a clip [n],) -> transcripts."""

    def __init__(self, transcriber: WhisperTranscriber) -> None:
        self._transcriber = transcriber

    @property
    def most_rows(self) -> int:
        """Rows that a call should have at most."""
        return self._transcriber.most_rows

    def run(self, rows: Sequence[tuple[np.ndarray]]) -> list[Transcript]:
        """Transcribes clips of any lengths."""
        return self._transcriber.transcribe([audio for (audio,) in rows])


class WhisperUtterances:
    """A Whisper model, its words moved from the clip's time to the session's."""

    def __init__(self, transcriber: WhisperTranscriber) -> None:
        self._kernel = WhisperKernel(transcriber)

    def transcribe(self, audio: np.ndarray, start: int) -> Steps[Said]:
        """Has the utterance transcribed, which must fit into the model's window."""
        transcript: Transcript = yield Call(self._kernel, None, (audio,))
        start_ms = start * 1000 // SAMPLE_RATE_HZ
        words = [
            word._replace(start_ms=start_ms + word.start_ms, end_ms=start_ms + word.end_ms) for word in transcript.words
        ]
        return transcript.text, tuple(words)


class SoFar(NamedTuple):
    """A partial, and what it was decoded from: the next one needs that."""

    partial: Partial
    decoded: str


class UtteranceRecognizer:
    """Keeps an utterance's audio in 16 bits until it has ended, then has it transcribed.

    One that defers gives the audio away as it comes, as UtteranceAudio, and an Utterance in place of each Partial and
    of the Final: its memory does not grow, and a long transcription holds up nobody's next chunk. `transcribe` and
    `transcribe_so_far` then make the same of it.

    Every interval of the utterance's audio is a revision, whether anything is said of it or not: whoever leaves
    partials out, for lack of time or because nobody wants them, gets the same Final.
    """

    waits_for_end = True

    def __init__(
        self,
        transcriber: Transcriber,
        sample_rate_hz: int,
        defer: bool,
        interval_samples: int = 0,
        on_the_way: Transcriber | None = None,
    ) -> None:
        """With `on_the_way`, which is to cost no more than it must, there are partials every `interval_samples`."""
        self._transcriber = transcriber
        self._rate_hz = sample_rate_hz
        self._interval = interval_samples
        self._on_the_way = on_the_way
        self.defers = defer

    def start(self, utterance: int, position: int) -> UtteranceState:
        """Begins an utterance at `position`."""
        return UtteranceState(utterance, position, ())

    def push(self, state: UtteranceState, samples: np.ndarray, events: list[Event]) -> Steps[UtteranceState]:
        """Keeps the samples, or gives them away; appends what there is to be said so far."""
        if not len(samples):
            return state
        pcm = encode_linear16(samples)
        passed = newly_passed(self._interval, state.consumed, state.consumed + len(samples))
        state = replace(state, consumed=state.consumed + len(samples))
        if self.defers:
            events.append(UtteranceAudio(state.utterance, pcm))
        else:
            state = replace(state, audio=(*state.audio, np.frombuffer(pcm, "<i2")))
        for number in passed:
            end = state.start + number * self._interval
            so_far = Utterance(state.utterance, state.revision, state.start, end, self._rate_hz, over=False)
            state = replace(state, revision=state.revision + 1)
            if self._on_the_way is None:
                continue
            if self.defers:
                events.append(so_far)
            else:
                state = yield from self._say_so_far(state, so_far, events)
        return state

    def finish(self, state: UtteranceState, end: int, silence: int) -> Steps[Final | Utterance]:
        """Ends the utterance at `end`; audio behind that does not count."""
        utterance = Utterance(state.utterance, state.revision, state.start, end, self._rate_hz)
        if self.defers:
            return utterance
        return (yield from self.transcribe(utterance, _joined(state)))

    def transcribe(self, utterance: Utterance, pcm: bytes) -> Steps[Final]:
        """Gives the Final of an utterance, in the models' positions, from all of its audio, LINEAR16."""
        number, revision, start, end, *_ = utterance
        text, words = yield from self._transcriber.transcribe(self._samples(pcm)[: end - start], start)
        return Final(number, revision, text, words, mean_confidence(words), start, end)

    def transcribe_so_far(self, utterance: Utterance, pcm: bytes, before: str | None) -> Steps[SoFar]:
        """Gives the Partial of an utterance that goes on, in the models' positions.

        Args:
            utterance: as it came.
            pcm: its audio up to there at least, LINEAR16.
            before: what the interval before was decoded as, None where that is not known.
        """
        number, revision, start, end, *_ = utterance
        audio = self._samples(pcm)[: end - start]
        if before is None:
            before = yield from self._decode(audio[: -self._interval], start)
        now = yield from self._decode(audio, start)
        # Every word of it was there in the decoding before.
        return SoFar(Partial(number, revision, agreed(before, now), start, end, stability=1.0), now)

    def last_token(self, state: UtteranceState) -> None:
        """Nothing is known before the end."""
        return None

    def _say_so_far(self, state: UtteranceState, so_far: Utterance, events: list[Event]) -> Steps[UtteranceState]:
        partial, decoded = yield from self.transcribe_so_far(so_far, _joined(state), state.decoded)
        if partial.text != state.text:
            events.append(partial)
        return replace(state, decoded=decoded, text=partial.text)

    def _decode(self, audio: np.ndarray, start: int) -> Steps[str]:
        if not len(audio) or self._on_the_way is None:
            return ""
        text, _ = yield from self._on_the_way.transcribe(audio, start)
        return text

    def _samples(self, pcm: bytes) -> np.ndarray:
        return decode_pcm(pcm, "LINEAR16", 1, self._rate_hz)


def _joined(state: UtteranceState) -> bytes:
    return b"".join([piece.tobytes() for piece in state.audio])
