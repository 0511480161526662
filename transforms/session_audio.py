"""From a chunk's bytes to samples: checks that it fits its session and joins frames that the sender has cut apart."""

import numpy as np

from model_runtime.decode import decode_pcm
from model_runtime.errors import AudioError
from transforms.session_book import SessionBook
from transforms.stream_records import Chunk

_SAMPLE_BYTES = {"LINEAR16": 2, "FLOAT32": 4}


def check_size(chunk: Chunk, max_bytes: int) -> None:
    """Raises AudioError if a chunk has more bytes than `max_bytes`."""
    size = len(chunk.payload or b"")
    if size > max_bytes:
        raise AudioError(f"a chunk must have at most {max_bytes} bytes, got {size}")


def decode_chunk(chunk: Chunk, book: SessionBook, max_bytes: int) -> tuple[np.ndarray, bytes]:
    """Gives a chunk's samples (float32 [n], mono, -1..1) and the bytes of a last frame that is not whole yet.

    A sender may cut its bytes anywhere: what is left over (SessionBook.split_frame) is put before the next chunk's.

    Raises:
        AudioError: the chunk is too large, cannot be decoded, or has another rate or channel count than its session.
    """
    check_size(chunk, max_bytes)
    _check_same("sample_rate_hertz", book.sample_rate_hz, chunk.sample_rate_hz)
    _check_same("channels", book.channels, chunk.channels)
    payload = chunk.payload or b""
    if chunk.encoding == book.encoding:
        payload = book.split_frame + payload
    frame_bytes = _SAMPLE_BYTES.get(chunk.encoding, 1) * max(1, chunk.channels)
    whole_bytes = len(payload) - len(payload) % frame_bytes
    samples = decode_pcm(payload[:whole_bytes], chunk.encoding, chunk.channels, chunk.sample_rate_hz)
    return samples, payload[whole_bytes:]


def _check_same(header: str, session: int, chunk: int) -> None:
    if session != chunk:
        raise AudioError(f"{header} must not change within a session, was {session}, got {chunk}")
