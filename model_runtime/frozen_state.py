"""Session state as bytes: small, versioned, checksummed, and bound to the models that wrote it.

Layout: magic (4 bytes), layout version (u16), fingerprint of recipe and models (16 bytes), CRC-32 of the payload
(u32), all little-endian; then the payload, MessagePack of the state's fields in order.
"""

import struct
import zlib
from typing import Any

import msgspec
import numpy as np

from model_runtime.errors import StateError

_MAGIC = b"USST"
_VERSION = 1
_HEADER = struct.Struct("<4sH16sI")

FINGERPRINT_BYTES = 16


class StateCodec:
    """Freezes and thaws states of one type, for one engine.

    Args:
        kind: the msgspec Struct that holds a session's state; its arrays are annotated np.ndarray.
        fingerprint: 16 bytes that differ whenever a state of one engine means nothing to another.
    """

    def __init__(self, kind: type, fingerprint: bytes) -> None:
        self._fingerprint = fingerprint
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_array_to_parts)
        self._decoder: msgspec.msgpack.Decoder = msgspec.msgpack.Decoder(kind, dec_hook=_array_from_parts)

    def freeze(self, state: object) -> bytes:
        """Gives the state as bytes."""
        payload = self._encoder.encode(state)
        return _HEADER.pack(_MAGIC, _VERSION, self._fingerprint, zlib.crc32(payload)) + payload

    def thaw(self, blob: bytes) -> Any:
        """Gives back what was frozen.

        Raises:
            StateError: the bytes are no frozen state, damaged, of another layout, or of other models.
        """
        if len(blob) < _HEADER.size or not blob.startswith(_MAGIC):
            raise StateError(f"not a frozen state: {len(blob)} bytes that begin with {blob[:4]!r}, not {_MAGIC!r}")
        _, version, fingerprint, checksum = _HEADER.unpack_from(blob)
        payload = memoryview(blob)[_HEADER.size :]
        if version != _VERSION:
            raise StateError(f"the state's layout is version {version}, this engine reads version {_VERSION}")
        if zlib.crc32(payload) != checksum:
            raise StateError(
                f"the state is damaged: CRC-32 of its {len(payload)} payload bytes is not {checksum:#010x}"
            )
        if fingerprint != self._fingerprint:
            raise StateError(
                f"the state was written by other models or another recipe: fingerprint {fingerprint.hex()}, "
                f"this engine's is {self._fingerprint.hex()}"
            )
        try:
            return self._decoder.decode(payload)
        except (msgspec.DecodeError, ValueError, TypeError) as error:
            raise StateError(f"the state does not have this engine's fields: {error}") from error


def _array_to_parts(array: object) -> tuple[str, tuple[int, ...], bytes]:
    if isinstance(array, np.ndarray):
        return array.dtype.str, array.shape, array.tobytes()
    raise TypeError(f"no way to freeze a {type(array).__name__}")


def _array_from_parts(kind: type, parts: Any) -> np.ndarray:
    dtype, shape, data = parts
    return np.frombuffer(data, dtype).reshape(shape)
