"""Voice: from what the engine says about a session to results and clean audio. Knows no Beam."""

from collections import Counter

import numpy as np

from model_runtime.decode import encode_linear16
from model_runtime.records import Enhanced, Event, Final, Partial, SpeechBegin, SpeechEnd, Utterance, UtteranceAudio
from transforms.dead_letter import DeadLetter
from transforms.lag import Lag
from transforms.milliseconds import samples_to_ms
from transforms.open_utterance import follow
from transforms.overload import PARTIALS
from transforms.result import Heard, Result, event_to_result, session_end, session_life
from transforms.session_book import SessionBook
from transforms.session_means import SessionMeans
from transforms.session_turn import Turn
from transforms.stream_records import EnhancedChunk, SessionAudio, SpokenUtterance

# Well below the 1 MiB that brokers accept in one record.
_ENHANCED_SAMPLES = 131_072


class Voice:
    """Collects the results and the clean audio of one session, as far as the configuration wants them."""

    def __init__(self, means: SessionMeans, session: str, now_ms: int) -> None:
        """now_ms: the clock when work on what is to be said begins."""
        self.results: list[Result] = []
        self.enhanced: list[EnhancedChunk] = []
        # Utterances that are to be transcribed elsewhere, and the audio of the one under way.
        self.utterances: list[SpokenUtterance] = []
        self.continues = False
        self.audio = b""
        # Whether the utterance that was under way before is over.
        self.audio_over = False
        # What the engine has heard, if it is to be kept.
        self.heard: list[SessionAudio] = []
        self._keep_audio = means.keep_audio
        self._engine = means.engine
        self._output = means.output
        self._session = session
        self._now_ms = now_ms

    def hear(self, book: SessionBook, samples: np.ndarray) -> None:
        """Takes what the engine is about to hear: the newest samples of the session."""
        if self._keep_audio:
            life, start = session_life(self._session, book.incarnation), book.samples - len(samples)
            self.heard.append(SessionAudio(life, book.sample_rate_hz, start, encode_linear16(samples)))

    def say(self, book: SessionBook, events: list[Event]) -> None:
        """Takes the engine's events."""
        if not events:
            return
        heard, made_by = book.heard(self._session, self._now_ms), self._engine.made_by()
        partials = self._output.partials and PARTIALS not in book.shedding
        self._enhance(book, [event for event in events if isinstance(event, Enhanced)])
        for event in events:
            book.open_utterance = follow(book.open_utterance, event, made_by)
            match event:
                case UtteranceAudio():
                    self.audio += event.pcm
                case Utterance(over=True):
                    self._hand_on(event, heard)
                    self.audio, self.audio_over = b"", True
                case Utterance() if partials:
                    self._hand_on(event, heard)
                case Partial() if not partials:
                    continue
                case SpeechBegin() | SpeechEnd() if not self._output.segments:
                    continue
            result = event_to_result(event, heard, made_by)
            if result is not None:
                self.results.append(result)
            if isinstance(event, Final) or (isinstance(event, Utterance) and event.over):
                # What goes on being left out is marked anew.
                book.shed = book.shedding
                heard = heard._replace(shed=book.shed)

    def end_unread(self, book: SessionBook) -> None:
        """Ends the utterance under way, if one is, without the engine's state, which cannot be read."""
        open_, heard = book.open_utterance, book.heard(self._session)
        book.open_utterance = None
        if open_ is None:
            return
        if self._engine.defers and open_.audio_bytes:
            self._hand_on(open_.to_transcribe(book.sample_rate_hz, self._engine.sample_rate_hz), heard)
        wanted = ["final"] + ["speech_end"] * self._output.segments
        self.results += [result for result in open_.last_words(heard) if result.type in wanted]

    def end(self, book: SessionBook, reason: str) -> None:
        """Says that the session has ended, and why."""
        ended = session_end(book.heard(self._session), self._engine.made_by(), reason)
        if self._engine.defers:
            # The end of a session is said after its last final, which another step finds.
            self.utterances.append(SpokenUtterance(None, b"", book.heard(self._session), [ended]))
        else:
            self.results.append(ended)
        self.audio, self.audio_over = b"", True
        if self._output.enhanced and book.wishes.enhanced:
            self._send(book, book.samples, b"", end_of_stream=True)

    def finish(self, now_ms: int) -> None:
        """Takes note that the work on all that has been said was done at `now_ms`."""
        for index, result in enumerate(self.results):
            if result.timing is not None:
                self.results[index] = result._replace(timing=result.timing.computed(now_ms))
        for index, spoken in enumerate(self.utterances):
            if spoken.heard.timing is not None:
                heard = spoken.heard._replace(timing=spoken.heard.timing.computed(now_ms))
                self.utterances[index] = spoken._replace(heard=heard)

    def turn(
        self,
        book: bytes | None,
        timer_ms: int | None,
        dead_letters: list[DeadLetter],
        counts: Counter[str],
        lag: Lag | None,
    ) -> Turn:
        """Gives what has been collected, and the rest of what a turn has brought about."""
        return Turn(
            book=book,
            timer_ms=timer_ms,
            results=self.results,
            enhanced=self.enhanced,
            dead_letters=dead_letters,
            counts=counts,
            utterances=self.utterances,
            continues=self.continues,
            audio=self.audio,
            audio_over=self.audio_over,
            lag=lag,
            heard=self.heard,
        )

    def _hand_on(self, utterance: Utterance, heard: Heard) -> None:
        """Gives an utterance with what has been heard of it, in place of what had been heard of it a moment ago."""
        if self.utterances and not self.utterances[-1].is_over():
            self.utterances.pop()
        if not self.utterances:
            self.continues = not self.audio_over
        self.utterances.append(SpokenUtterance(utterance, self.audio, heard, []))

    def _enhance(self, book: SessionBook, events: list[Enhanced]) -> None:
        """Sends what has been cleaned (it follows on, event by event) as one record: each record has its cost."""
        if not (self._output.enhanced and book.wishes.enhanced and events):
            return
        samples = np.frombuffer(b"".join([event.pcm for event in events]), "<f4")
        for start in range(0, len(samples), _ENHANCED_SAMPLES):
            piece = samples[start : start + _ENHANCED_SAMPLES]
            self._send(book, events[0].start_samples + start, encode_linear16(piece))

    def _send(self, book: SessionBook, start: int, payload: bytes, end_of_stream: bool = False) -> None:
        event_ms = book.first_event_ms + samples_to_ms(start, book.sample_rate_hz)
        self.enhanced.append(
            EnhancedChunk(
                self._session,
                book.enhanced_chunks,
                book.sample_rate_hz,
                end_of_stream,
                payload,
                event_ms,
                book.incarnation,
                start,
            )
        )
        book.enhanced_chunks += 1
