"""What is kept of a session between two chunks: the frozen engine state and the book-keeping, as versioned bytes."""

import msgspec

from model_runtime.errors import StateError
from transforms.milliseconds import samples_to_ms
from transforms.open_utterance import OpenUtterance
from transforms.result import Gap, Heard
from transforms.session_anchors import Anchor, place_chunk
from transforms.session_config import SessionConfig
from transforms.session_order import Order
from transforms.session_settings import Wishes
from transforms.stream_records import Chunk
from transforms.timing import Moments, begin_timing

_VERSION = 3
_MOST_GAPS = 32
# More than any offset: a key that has moved to another partition must not meet a number that it had before.
_PARTITION = 2**42

NO_TIMER = 0
"""The timer of a session that has none."""


class SessionBook(msgspec.Struct, array_like=True, kw_only=True):
    """One session's memory; as a tombstone (`ended` says why) it holds no engine state.

    incarnation: tells sessions of one key apart, the place of the first record; encoding: of the newest chunk;
    samples: taken in so far; chunk_samples: of the newest chunk; first_event_ms, last_event_ms: capture time of the
    first and of the newest chunk; captured_ms: that of the last sample; moments: the clock when that came by;
    anchors: capture times of samples; clocked: they are the sender's, not times of reading; opened_ms: the stream time
    of the first chunk; deadline_ms: the stream time from which it is idle, or, as a tombstone, forgotten; timer_ms:
    that of the timer that is set; enhanced_chunks: sent so far; gaps: the newest 32; split_frame: the first bytes of a
    frame whose others are yet to come; wishes: what its sender has asked for and was granted; open_utterance:
    what the engine's state would say next, should that not be readable then; shedding: what is left out at present;
    shed: what was left out at any time since the turn of the last final. New fields go to the end: older books are read
    without them.
    """

    version: int = _VERSION
    ended: str = ""
    incarnation: int
    encoding: str
    sample_rate_hz: int
    channels: int
    samples: int = 0
    chunk_samples: int = 0
    first_event_ms: int
    last_event_ms: int
    captured_ms: int
    clocked: bool = True
    moments: Moments = Moments()
    opened_ms: int
    deadline_ms: int
    timer_ms: int = NO_TIMER
    enhanced_chunks: int = 0
    order: Order
    gaps: list[Gap] = []
    split_frame: bytes = b""
    wishes: Wishes = Wishes()
    engine: bytes = b""
    open_utterance: OpenUtterance | None = None
    anchors: list[Anchor] = []
    shedding: list[str] = []
    shed: list[str] = []

    def heard(self, session: str, now_ms: int = 0) -> Heard:
        """Gives what this session's results say about it; now_ms: the clock when work on them began."""
        captured_ms = self.captured_ms if self.clocked else None
        return Heard(
            session=session,
            incarnation=self.incarnation,
            sample_rate_hz=self.sample_rate_hz,
            audio_ms=self.audio_ms(),
            gaps=self.gaps,
            duplicates=self.order.duplicates,
            captured_ms=captured_ms,
            timing=begin_timing(captured_ms, self.moments, now_ms),
            anchors=self.anchors,
            shed=self.shed,
        )

    def audio_ms(self) -> int:
        """Gives how much audio has been taken in."""
        return samples_to_ms(self.samples, self.sample_rate_hz)

    def begins_anew(self, chunk: Chunk) -> bool:
        """Says whether the chunk is the first of another session of this key; a first chunk that comes twice is not."""
        fresh = bool(self.ended) or self.order.next_sequence > 0
        return chunk.sequence == 0 and fresh and chunk.event_ms > self.last_event_ms

    def note_audio(self, chunk: Chunk, count: int, now_ms: int, config: SessionConfig) -> None:
        """Takes note of so many samples of a chunk that is heard; now_ms: the clock when work on it began."""
        if not self.samples:
            self.first_event_ms = chunk.event_ms
        self.anchors = place_chunk(self.anchors, self.samples, chunk.event_ms, self.sample_rate_hz)
        self.samples += count
        self.chunk_samples = count
        length_ms = samples_to_ms(count, self.sample_rate_hz)
        self.captured_ms = chunk.event_ms + length_ms
        self.clocked = not chunk.substituted
        self.moments = Moments(chunk.read_ms, chunk.taken_ms or now_ms, now_ms)
        self.deadline_ms = max(self.deadline_ms, chunk.stream_ms + length_ms + config.idle_timeout_ms)

    def forget_audio(self) -> None:
        """Leaves what a tombstone needs."""
        self.engine, self.anchors, self.moments = b"", [], Moments()
        self.shedding, self.shed = [], []

    def note_gap(self, chunks: int, fill_samples: int) -> None:
        """Takes note of a gap and of the silence that fills it."""
        start_ms = self.audio_ms()
        self.samples += fill_samples
        self.gaps = [*self.gaps, Gap(start_ms, self.audio_ms(), chunks)][-_MOST_GAPS:]

    def wake_ms(self, config: SessionConfig) -> int:
        """Gives the stream time at which something is to be done for this session."""
        if self.ended:
            return self.deadline_ms
        gap_ms = self.order.deadline_ms(config)
        end_ms = min(self.deadline_ms, self.opened_ms + config.max_session_ms)
        return end_ms if gap_ms is None else min(gap_ms, end_ms)


def incarnation_at(partition: int, offset: int) -> int:
    """Gives the number of a session whose first record stands there."""
    return max(0, partition) * _PARTITION + offset


def place_of_incarnation(incarnation: int) -> tuple[int, int]:
    """Undoes incarnation_at: gives partition and offset."""
    return divmod(incarnation, _PARTITION)


def new_book(chunk: Chunk, order: Order) -> SessionBook:
    """Gives the book of the session that begins with this chunk."""
    return SessionBook(
        incarnation=incarnation_at(chunk.partition, chunk.offset if chunk.offset >= 0 else chunk.event_ms),
        encoding=chunk.encoding,
        sample_rate_hz=chunk.sample_rate_hz,
        channels=chunk.channels,
        first_event_ms=chunk.event_ms,
        last_event_ms=chunk.event_ms,
        captured_ms=chunk.event_ms,
        opened_ms=chunk.stream_ms,
        deadline_ms=chunk.stream_ms,
        order=order,
    )


def encode_book(book: SessionBook) -> bytes:
    """Gives the bytes of a book."""
    return _encoder.encode(book)


def decode_book(data: bytes) -> SessionBook:
    """Gives the book from its bytes.

    Raises:
        StateError: the bytes are damaged or of another version of this program.
    """
    try:
        book = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise StateError(f"the state of a session cannot be read ({len(data)} bytes): {error}") from error
    if book.version != _VERSION:
        raise StateError(f"the state of a session must be of version {_VERSION}, got {book.version}")
    return book


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(SessionBook)
