"""A session: what each of its chunks, and its end, does to its memory and says to the world. Knows no Beam.

A session opens with its first chunk that holds audio or ends a stream, and closes for one of these reasons:

    end_of_stream   a chunk said so
    idle            nothing came for SessionConfig.idle_timeout_ms of stream time
    length          SessionConfig.max_session_ms of audio; what follows is a new session
    restart         the sender began again at sequence 0
    state           its memory cannot be read any more (other models, another version); the next chunk opens it anew
"""

import logging
from collections import Counter
from typing import NamedTuple

import numpy as np

from model_runtime.decode import encode_linear16
from model_runtime.engine import SessionState, SpeechEngine
from model_runtime.errors import AudioError, SpeechError, StateError
from model_runtime.records import Enhanced, Event, Partial, SpeechBegin, SpeechEnd
from service.wire import NO_SEQUENCE
from transforms.dead_letter import DeadLetter
from transforms.result import Result, event_to_result, samples_to_ms, session_end
from transforms.session_audio import decode_chunk
from transforms.session_book import SessionBook, decode_book, encode_book, new_book
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_order import Order, Verdict
from transforms.stream_records import Chunk, EnhancedChunk, refused_chunk

_logger = logging.getLogger(__name__)

# Well below the 1 MiB that brokers accept in one record.
_ENHANCED_SAMPLES = 131_072


COUNTS = (
    "chunks",
    "chunks_duplicate",
    "chunks_late",
    "chunks_missing",
    "chunks_refused",
    "chunks_without_audio",
    "frames_cut_off",
    "sessions_ended",
    "sessions_opened",
    "states_refused",
)
"""The names under which a Turn counts."""


class Turn(NamedTuple):
    """What a chunk or an end has brought about.

    book: the session's memory from now on (None: nothing to remember); deadline_ms: the stream time at which `expire`
    is to be called; counts: what happened, for the job's metrics.
    """

    book: bytes | None
    deadline_ms: int
    results: list[Result]
    enhanced: list[EnhancedChunk]
    dead_letters: list[DeadLetter]
    counts: Counter[str]


class SessionLogic:
    """Takes sessions on, chunk by chunk. Holds no session: their memory comes in and goes out as bytes."""

    def __init__(self, engine: SpeechEngine, session: SessionConfig, output: OutputConfig) -> None:
        self._engine = engine
        self._config = session
        self._output = output

    def advance(self, data: bytes | None, chunk: Chunk) -> Turn:
        """Takes in the next chunk of a session whose memory is `data` (None: nothing is known of its key)."""
        return _Play(self._engine, self._config, self._output, chunk.session).advance(data, chunk)

    def expire(self, data: bytes, session: str, now_ms: int) -> Turn:
        """Ends a session whose deadline has come, at the stream time `now_ms`; a tombstone is then forgotten.

        Its audio is flushed, so nothing that was said is lost. Before the deadline (runners can fire early, and a chunk
        may have moved it) nothing changes.
        """
        return _Play(self._engine, self._config, self._output, session).expire(data, now_ms)


class _Play:
    """One call of SessionLogic: the engine state of the session at hand, and what there is to say about it."""

    def __init__(self, engine: SpeechEngine, config: SessionConfig, output: OutputConfig, session: str) -> None:
        self._engine = engine
        self._config = config
        self._output = output
        self._session = session
        self._results: list[Result] = []
        self._enhanced: list[EnhancedChunk] = []
        self._dead_letters: list[DeadLetter] = []
        self._counts: Counter[str] = Counter()

    def advance(self, data: bytes | None, chunk: Chunk) -> Turn:
        book = self._read(data)
        if book is not None and not book.ended:
            state = self._thaw(book)
            if state is None:
                self._entomb(book, "state")
            elif _begins_anew(book, chunk):
                self._close(book, state, "restart")
            elif chunk.stream_ms > book.deadline_ms:
                self._close(book, state, "idle")
            else:
                self._take(book, state, chunk)
                return self._turn(book)
        return self._turn(self._open(book, chunk))

    def expire(self, data: bytes, now_ms: int) -> Turn:
        book = self._read(data)
        if book is not None and now_ms < book.deadline_ms:
            return self._turn(book)
        if book is None or book.ended:
            return self._turn(None)
        state = self._thaw(book)
        if state is None:
            self._entomb(book, "state")
        else:
            self._close(book, state, "idle")
        return self._turn(book)

    def _read(self, data: bytes | None) -> SessionBook | None:
        if data is None:
            return None
        try:
            return decode_book(data)
        except StateError as error:
            self._refuse_state(error)
            return None

    def _thaw(self, book: SessionBook) -> SessionState | None:
        try:
            return self._engine.thaw(book.engine)
        except StateError as error:
            self._refuse_state(error)
            return None

    def _refuse_state(self, error: StateError) -> None:
        self._counts["states_refused"] += 1
        _logger.warning("session %s cannot go on: %s", self._session, error)

    def _open(self, tombstone: SessionBook | None, chunk: Chunk) -> SessionBook | None:
        """Opens a session with a chunk; gives the tombstone back where the chunk opens none."""
        if not chunk.payload and not (chunk.end_of_stream and tombstone is None):
            self._counts["chunks_without_audio"] += 1
            return tombstone
        order: Order | None = Order()
        if tombstone is not None and not _begins_anew(tombstone, chunk):
            order = self._order_after(tombstone, chunk)
        if order is None:
            return tombstone
        try:
            state = self._engine.start(chunk.sample_rate_hz)
        except AudioError as error:
            self._refuse(chunk, "audio", error)
            return tombstone
        self._counts["sessions_opened"] += 1
        book = new_book(chunk, order)
        self._take(book, state, chunk)
        return book

    def _order_after(self, tombstone: SessionBook, chunk: Chunk) -> Order | None:
        """Gives the order of a session that goes on where an ended one stopped; None if the chunk belongs to that."""
        verdict = tombstone.order.take(chunk.sequence, chunk.offset)
        if verdict is Verdict.DUPLICATE:
            self._counts["chunks_duplicate"] += 1
            return None
        over = tombstone.ended == "end_of_stream" and chunk.sequence != NO_SEQUENCE
        if verdict is Verdict.LATE or over:
            self._counts["chunks_late"] += 1
            self._refuse(chunk, "order", AudioError("the chunk came after its session had ended"))
            return None
        # The sender goes on after a pause, or after the longest session: what was before is not missing.
        return Order(next_sequence=max(0, chunk.sequence), last_offset=chunk.offset - 1)

    def _take(self, book: SessionBook, state: SessionState, chunk: Chunk) -> None:
        """Takes a chunk into its open session, whose engine state is `state`."""
        joined = chunk.sequence in (NO_SEQUENCE, book.order.next_sequence)
        gaps = book.order.gaps
        verdict = book.order.take(chunk.sequence, chunk.offset)
        self._counts["chunks_missing"] += book.order.gaps - gaps
        if verdict is Verdict.DUPLICATE:
            self._counts["chunks_duplicate"] += 1
            return
        if verdict is Verdict.LATE:
            self._counts["chunks_late"] += 1
            self._refuse(chunk, "order", AudioError(f"chunk {chunk.sequence} came after chunks that follow it"))
            return
        state = self._hear(book, state, chunk, joined)
        book.last_event_ms = max(book.last_event_ms, chunk.event_ms)
        heard_ms = max(0, book.captured_ms - chunk.event_ms)
        book.deadline_ms = max(book.deadline_ms, chunk.stream_ms + heard_ms + self._config.idle_timeout_ms)
        if chunk.end_of_stream:
            self._close(book, state, "end_of_stream")
        elif samples_to_ms(book.samples, book.sample_rate_hz) >= self._config.max_session_ms:
            self._close(book, state, "length")
        else:
            book.engine = self._engine.freeze(state)

    def _hear(self, book: SessionBook, state: SessionState, chunk: Chunk, joined: bool) -> SessionState:
        """Lets the engine hear a chunk; gives its new state, or the one before where the chunk cannot be used."""
        try:
            samples, split_frame = decode_chunk(chunk, book, joined, self._config.max_chunk_bytes)
            if len(samples):
                state, events = self._engine.step(state, samples)
        except AudioError as error:
            book.split_frame = b""
            self._refuse(chunk, "audio", error)
            return state
        book.split_frame = split_frame
        book.encoding = chunk.encoding
        if not len(samples):
            self._counts["chunks_without_audio"] += 1
            return state
        self._counts["chunks"] += 1
        book.samples += len(samples)
        book.captured_ms = chunk.event_ms + samples_to_ms(len(samples), book.sample_rate_hz)
        self._say(book, events)
        return state

    def _close(self, book: SessionBook, state: SessionState, reason: str) -> None:
        """Ends a session: what the engine still holds is said."""
        _, events = self._engine.finish(state)
        self._say(book, events)
        self._entomb(book, reason)

    def _entomb(self, book: SessionBook, reason: str) -> None:
        """Says that a session has ended, and turns its book into a tombstone."""
        if book.split_frame:
            self._counts["frames_cut_off"] += 1
        self._results.append(session_end(book.heard(self._session), self._engine.made_by(), reason))
        if self._output.enhanced:
            self._send_enhanced(book, book.samples, b"", end_of_stream=True)
        self._counts["sessions_ended"] += 1
        book.ended = reason
        book.engine = b""
        book.split_frame = b""
        book.deadline_ms += self._config.tombstone_ms

    def _say(self, book: SessionBook, events: list[Event]) -> None:
        if not events:
            return
        heard, made_by = book.heard(self._session), self._engine.made_by()
        self._enhance(book, [event for event in events if isinstance(event, Enhanced)])
        for event in events:
            match event:
                case Partial() if not self._output.partials:
                    continue
                case SpeechBegin() | SpeechEnd() if not self._output.segments:
                    continue
            result = event_to_result(event, heard, made_by)
            if result is not None:
                self._results.append(result)

    def _enhance(self, book: SessionBook, events: list[Enhanced]) -> None:
        """Sends what a turn has cleaned (it follows on, event by event) as one record: each record has its cost."""
        if not self._output.enhanced or not events:
            return
        samples = np.frombuffer(b"".join([event.pcm for event in events]), "<f4")
        for start in range(0, len(samples), _ENHANCED_SAMPLES):
            piece = samples[start : start + _ENHANCED_SAMPLES]
            self._send_enhanced(book, events[0].start_samples + start, encode_linear16(piece))

    def _send_enhanced(self, book: SessionBook, start: int, payload: bytes, end_of_stream: bool = False) -> None:
        event_ms = book.first_event_ms + samples_to_ms(start, book.sample_rate_hz)
        self._enhanced.append(
            EnhancedChunk(self._session, book.enhanced_chunks, book.sample_rate_hz, end_of_stream, payload, event_ms)
        )
        book.enhanced_chunks += 1

    def _refuse(self, chunk: Chunk, stage: str, error: SpeechError) -> None:
        self._counts["chunks_refused"] += 1
        self._dead_letters.append(refused_chunk(chunk, stage, error))

    def _turn(self, book: SessionBook | None) -> Turn:
        data = None if book is None else encode_book(book)
        deadline_ms = 0 if book is None else book.deadline_ms
        return Turn(data, deadline_ms, self._results, self._enhanced, self._dead_letters, self._counts)


def _begins_anew(book: SessionBook, chunk: Chunk) -> bool:
    """Says whether the chunk is the first of another session of its key; a first chunk that comes twice is not."""
    fresh = bool(book.ended) or book.order.next_sequence > 0
    return chunk.sequence == 0 and fresh and chunk.event_ms > book.last_event_ms
