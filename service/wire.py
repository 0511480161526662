"""The wire: names and meanings of the headers of audio records, and the JSON of results. See docs/streaming.md."""

from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

import msgspec

from model_runtime.errors import AudioError

ENCODING = "encoding"
SAMPLE_RATE_HERTZ = "sample_rate_hertz"
CHANNELS = "channels"
SEQUENCE = "sequence"
END_OF_STREAM = "end_of_stream"
ENHANCED = "enhanced"
# Of clean audio, besides: which of its key's sessions it belongs to, and where in it its first sample stands.
INCARNATION = "incarnation"
START_SAMPLE = "start_sample"

NO_SEQUENCE = -1
"""The sequence number where the sender gives none: the offset is the order."""


class AudioDefaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a record is taken to be where its headers say nothing."""

    # Sample coding: LINEAR16, FLOAT32 (both little-endian), MULAW or ALAW.
    encoding: str = "LINEAR16"
    # Samples per second and channel.
    sample_rate_hz: Annotated[int, msgspec.Meta(ge=8000, le=192_000)] = 16_000
    # Interleaved channels; they are mixed down to one.
    channels: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1


class ChunkHeaders(NamedTuple):
    """What the headers of one audio record say."""

    encoding: str
    sample_rate_hz: int
    channels: int
    sequence: int = NO_SEQUENCE
    end_of_stream: bool = False


def encode_headers(headers: ChunkHeaders) -> list[tuple[str, bytes]]:
    """Gives the headers as Kafka carries them; sequence and end_of_stream only where they say something."""
    encoded = [
        (ENCODING, headers.encoding.encode()),
        (SAMPLE_RATE_HERTZ, b"%d" % headers.sample_rate_hz),
        (CHANNELS, b"%d" % headers.channels),
    ]
    if headers.sequence != NO_SEQUENCE:
        encoded.append((SEQUENCE, b"%d" % headers.sequence))
    if headers.end_of_stream:
        encoded.append((END_OF_STREAM, b"1"))
    return encoded


def decode_headers(headers: Iterable[tuple[str, bytes | None]], defaults: AudioDefaults) -> ChunkHeaders:
    """Gives what the headers say; missing, null and empty ones take the defaults, the last of a name counts.

    Raises:
        AudioError: a value cannot be read; whether a coding, rate or channel count is possible is the decoder's word.
    """
    given = {name: value for name, value in headers if value}
    return ChunkHeaders(
        encoding=_text(given, ENCODING) or defaults.encoding,
        sample_rate_hz=decode_number(given, SAMPLE_RATE_HERTZ, defaults.sample_rate_hz),
        channels=decode_number(given, CHANNELS, defaults.channels),
        sequence=decode_number(given, SEQUENCE, NO_SEQUENCE),
        end_of_stream=decode_flag(given, END_OF_STREAM, False),
    )


def decode_session(key: bytes | None) -> str:
    """Gives the session's id from a record's key.

    Raises:
        AudioError: there is no key, or it is empty or not UTF-8: such records must not all join into one session.
    """
    if not key:
        raise AudioError(f"key must hold the session's id, got {'null' if key is None else 'an empty one'}")
    try:
        return key.decode("utf-8")
    except UnicodeDecodeError as error:
        raise AudioError(f"key must be UTF-8, got {key[:64]!r}") from error


def decode_result(value: bytes) -> dict[str, object]:
    """Gives the fields of a result from its JSON."""
    return msgspec.json.decode(value, type=dict[str, object])


def decode_number(given: Mapping[str, bytes], name: str, default: int) -> int:
    """Gives a header's number.

    Raises:
        AudioError: it is none, or too long.
    """
    value = given.get(name)
    if value is None:
        return default
    # int() alone would also take signs, underscores and digits of other scripts. 18 digits fit into 64 bits.
    if not (value.isdigit() and len(value) <= 18):
        raise AudioError(f"header {name} must be a whole number in ASCII digits, got {value[:64]!r}")
    return int(value)


def decode_flag(given: Mapping[str, bytes], name: str, default: bool) -> bool:
    """Gives a header's yes or no.

    Raises:
        AudioError: it is neither.
    """
    value = given.get(name)
    if value is None:
        return default
    if value.lower() not in (b"0", b"1", b"false", b"true"):
        raise AudioError(f"header {name} must be 1 or 0, got {value[:64]!r}")
    return value.lower() in (b"1", b"true")


def _text(given: Mapping[str, bytes], name: str) -> str:
    try:
        return given.get(name, b"").decode("ascii").strip().upper()
    except UnicodeDecodeError as error:
        raise AudioError(f"header {name} must be ASCII, got {given[name][:64]!r}") from error
