"""What is kept of a session between two chunks: the frozen engine state and the book-keeping, as versioned bytes."""

import msgspec

from model_runtime.errors import StateError
from transforms.result import Heard, samples_to_ms
from transforms.session_order import Order
from transforms.stream_records import Chunk

_VERSION = 1


class SessionBook(msgspec.Struct, array_like=True, kw_only=True):
    """One session's memory; as a tombstone (`ended` says why) it holds no engine state.

    incarnation: tells sessions of one key apart, the offset of the first record; encoding: of the newest chunk;
    samples: taken in so far; first_event_ms, last_event_ms: capture time of the first and of the newest chunk;
    captured_ms: that of the last sample; deadline_ms: the stream time from which it is idle, or, as a tombstone,
    forgotten; enhanced_chunks: sent so far; split_frame: the first bytes of a frame whose others are yet to come.
    """

    version: int = _VERSION
    ended: str = ""
    incarnation: int
    encoding: str
    sample_rate_hz: int
    channels: int
    samples: int = 0
    first_event_ms: int
    last_event_ms: int
    captured_ms: int
    deadline_ms: int
    enhanced_chunks: int = 0
    order: Order
    split_frame: bytes = b""
    engine: bytes = b""

    def heard(self, session: str) -> Heard:
        """Gives what this session's results say about it."""
        return Heard(
            session=session,
            incarnation=self.incarnation,
            sample_rate_hz=self.sample_rate_hz,
            audio_ms=samples_to_ms(self.samples, self.sample_rate_hz),
            gaps=self.order.gaps,
            duplicates=self.order.duplicates,
            captured_ms=self.captured_ms,
        )


def new_book(chunk: Chunk, order: Order) -> SessionBook:
    """Gives the book of the session that begins with this chunk."""
    return SessionBook(
        incarnation=chunk.offset if chunk.offset >= 0 else chunk.event_ms,
        encoding=chunk.encoding,
        sample_rate_hz=chunk.sample_rate_hz,
        channels=chunk.channels,
        first_event_ms=chunk.event_ms,
        last_event_ms=chunk.event_ms,
        captured_ms=chunk.event_ms,
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
