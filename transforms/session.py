"""A session: what its chunks, and its end, do to its memory and say to the world. Knows no Beam.

A session opens with its first chunk that holds audio, has the number 0 or ends a stream. It closes for one of these
reasons:

    end_of_stream   a chunk said so
    idle            nothing came for SessionConfig.idle_timeout_ms of stream time
    length          SessionConfig.max_session_ms of audio or of stream time; what follows is a new session
    restart         the sender began again at sequence 0
    lost            records were deleted unread before a chunk without a number; what follows is a new session
    state           its memory cannot be read any more (other models, another version); the newest partial is made its
                    utterance's final, and the next chunk opens it anew, with what waits behind it
"""

import logging
from collections.abc import Sequence

import numpy as np

from model_runtime.errors import AudioError, StateError
from transforms.lag import Lag, measure_lag
from transforms.session_audio import check_size, decode_chunk
from transforms.session_book import NO_TIMER, SessionBook, decode_book, encode_book, new_book
from transforms.session_ear import SessionEar
from transforms.session_means import SessionMeans
from transforms.session_notes import SessionNotes
from transforms.session_order import Order, Verdict
from transforms.session_return import order_after
from transforms.session_settings import Wishes
from transforms.session_turn import Turn
from transforms.session_voice import Voice
from transforms.stream_records import Chunk

_logger = logging.getLogger(__name__)


class Play:
    """One call of SessionLogic (session_logic.py): the session at hand, and what there is to say about it.

    Its book is None where nothing is known of its key.
    """

    def __init__(self, means: SessionMeans, session: str, data: bytes | None) -> None:
        self._config = means.session
        self._session = session
        self._clock = means.clock
        self._began_ms = means.clock()
        self._lag: Lag | None = None
        self._notes = SessionNotes()
        self._voice = Voice(means, session, self._began_ms)
        self._ear = SessionEar(means, self._voice, self._notes)
        self._book = None if data is None else self._read(data)

    def advance(self, chunks: Sequence[Chunk]) -> Turn:
        self._lag = measure_lag(chunks, self._began_ms)
        self._ear.mind(self._lag)
        for chunk in chunks:
            book = self._open_book()
            if book is not None and book.begins_anew(chunk):
                self._close(book, "restart")
            elif book is not None and book.order.lies_behind_loss(chunk):
                self._close(book, "lost")
            elif book is not None:
                # What is due at the very time of the chunk is not yet due: it came in time.
                self._pass_time(book, chunk.stream_ms - 1)
            book = self._open_book()
            if book is None:
                self._open(chunk)
            else:
                self._take(book, chunk)
        return self._turn()

    def expire(self, now_ms: int) -> Turn:
        if self._book is not None:
            self._book.timer_ms = NO_TIMER
            if self._book.wake_ms(self._config) <= now_ms:
                book = self._open_book()
                if book is not None:
                    self._pass_time(book, now_ms)
                elif self._book.deadline_ms <= now_ms:
                    self._book = None
        return self._turn()

    def _read(self, data: bytes) -> SessionBook | None:
        try:
            return decode_book(data)
        except StateError as error:
            self._refuse_state(error)
            return None

    def _open_book(self) -> SessionBook | None:
        """Gives the book of the session if it is open; thaws its engine state if that has not been done."""
        book = self._book
        if book is None or book.ended:
            return None
        try:
            self._ear.thaw(book)
        except StateError as error:
            self._refuse_state(error)
            self._voice.end_unread(book)
            self._entomb(book, "state")
            return None
        return book

    def _refuse_state(self, error: StateError) -> None:
        self._notes.count("states_refused")
        _logger.warning("session %s cannot go on: %s", self._session, error)

    def _pass_time(self, book: SessionBook, now_ms: int) -> None:
        """Does what is due at `now_ms` in an open session."""
        gap_ms = book.order.deadline_ms(self._config)
        while gap_ms is not None and gap_ms <= now_ms and not book.ended:
            self._give_up(book)
            gap_ms = book.order.deadline_ms(self._config)
        if book.ended:
            return
        if book.deadline_ms <= now_ms:
            self._close(book, "idle")
        elif book.opened_ms + self._config.max_session_ms <= now_ms:
            self._close(book, "length")

    def _open(self, chunk: Chunk) -> None:
        """Opens a session with a chunk, unless the chunk belongs to one that has ended or holds nothing."""
        tombstone = self._book
        begins = chunk.sequence == 0 or (chunk.end_of_stream and tombstone is None)
        if not chunk.payload and not begins:
            self._notes.count("chunks_without_audio")
            return
        order: Order | None = Order()
        wishes = Wishes()
        goes_on = tombstone is not None and not tombstone.begins_anew(chunk)
        if tombstone is not None and goes_on:
            order, wishes = order_after(tombstone, chunk, self._notes), tombstone.wishes
        if order is None:
            return
        try:
            wishes = self._ear.start(chunk.sample_rate_hz, wishes)
        except AudioError as error:
            self._notes.refuse(chunk, "audio", error)
            return
        self._notes.count("sessions_opened")
        self._book = new_book(chunk, order)
        self._book.wishes = wishes
        if tombstone is not None:
            self._book.timer_ms = tombstone.timer_ms
            self._book.split_frame = tombstone.split_frame if goes_on else b""
        self._take(self._book, chunk)

    def _take(self, book: SessionBook, chunk: Chunk) -> None:
        """Takes a chunk into its open session, and after it those that have waited for it."""
        if chunk.sequence > book.order.next_sequence:
            chunk = self._without_excess(chunk)._replace(taken_ms=self._began_ms)
        verdict = book.order.take(chunk)
        if verdict is Verdict.DUPLICATE:
            self._notes.count("chunks_duplicate")
            return
        if verdict is Verdict.LATE:
            self._notes.count("chunks_late")
            self._notes.refuse(chunk, "order", AudioError(f"chunk {chunk.sequence} came after chunks that follow it"))
            return
        book.last_event_ms = max(book.last_event_ms, chunk.event_ms)
        book.deadline_ms = max(book.deadline_ms, chunk.stream_ms + self._config.idle_timeout_ms)
        if verdict is Verdict.NEXT:
            self._hear(book, chunk)
            self._release(book)
        else:
            self._notes.count("chunks_early")
        while not book.ended and book.order.is_full(self._config):
            self._give_up(book)

    def _without_excess(self, chunk: Chunk) -> Chunk:
        """Refuses a chunk that is too large to wait; gives one without audio in its place."""
        try:
            check_size(chunk, self._config.max_chunk_bytes)
        except AudioError as error:
            self._notes.refuse(chunk, "audio", error)
            return chunk._replace(payload=None)
        return chunk

    def _give_up(self, book: SessionBook) -> None:
        """Closes the first gap with silence, and hears what has waited behind it."""
        count = book.order.give_up()
        self._notes.count("chunks_missing", count)
        self._notes.cut_off(book)
        # What was before a session's first sample is not known, and not waited out.
        fill = min(count * book.chunk_samples, self._config.max_fill_ms * book.sample_rate_hz // 1000)
        book.note_gap(count, fill)
        if fill:
            self._ear.keep(np.zeros(fill, np.float32))
        self._release(book)

    def _release(self, book: SessionBook) -> None:
        while not book.ended and (chunk := book.order.release()) is not None:
            self._hear(book, chunk)

    def _hear(self, book: SessionBook, chunk: Chunk) -> None:
        """Takes the samples of a chunk whose turn it is; what cannot be used is refused and leaves no trace."""
        if not book.samples:
            self._ear.start_anew(book, chunk)
        try:
            samples, split_frame = decode_chunk(chunk, book, self._config.max_chunk_bytes)
        except AudioError as error:
            book.split_frame = b""
            self._notes.refuse(chunk, "audio", error)
        else:
            book.split_frame = split_frame
            book.encoding = chunk.encoding
            self._keep(book, chunk, samples)
        if chunk.end_of_stream:
            self._close(book, "end_of_stream")
        elif book.audio_ms() >= self._config.max_session_ms:
            self._close(book, "length")

    def _keep(self, book: SessionBook, chunk: Chunk, samples: np.ndarray) -> None:
        """Keeps samples for the next call of the engine."""
        if not len(samples):
            self._notes.count("chunks_without_audio")
            return
        self._notes.count("chunks")
        self._notes.count("audio_us", len(samples) * 1_000_000 // book.sample_rate_hz)
        self._ear.keep(samples)
        book.note_audio(chunk, len(samples), self._began_ms, self._config)

    def _close(self, book: SessionBook, reason: str) -> None:
        """Ends a session: what waits is heard, gaps and all, and what the engine still holds is said."""
        while book.order.waiting and not book.ended:
            self._give_up(book)
        if book.ended:
            return
        self._ear.finish(book)
        self._entomb(book, reason)

    def _entomb(self, book: SessionBook, reason: str) -> None:
        """Says that a session has ended, and turns its book into a tombstone."""
        if reason not in ("length", "state"):
            self._notes.cut_off(book)
        self._voice.end(book, reason)
        self._notes.count("sessions_ended")
        book.ended = reason
        book.forget_audio()
        if reason != "state":
            book.order.waiting = []
        book.deadline_ms += self._config.tombstone_ms
        self._ear.close()

    def _turn(self) -> Turn:
        book, data, timer_ms = self._book, None, None
        if book is not None:
            self._ear.freeze(book)
            wake_ms = book.wake_ms(self._config)
            # A timer that fires before anything is due costs less than one that is set anew with every chunk.
            if book.timer_ms == NO_TIMER or wake_ms < book.timer_ms:
                book.timer_ms = timer_ms = wake_ms
            data = encode_book(book)
        self._voice.finish(self._clock())
        return self._voice.turn(data, timer_ms, self._notes.dead_letters, self._notes.counts, self._lag)
