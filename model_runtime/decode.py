"""Audio out of files and bytes (WAV, FLAC, Ogg, MP3 through libsndfile) and raw PCM to and from float32."""

import io
from collections.abc import Iterator
from math import inf, isfinite
from pathlib import Path
from typing import BinaryIO

import numpy as np
import soundfile

from model_runtime.audio import Audio, Downmix, check_sample_rate, check_samples, downmix
from model_runtime.audio_sniff import describe_bytes
from model_runtime.errors import AudioError

ENCODINGS = ("LINEAR16", "FLOAT32", "MULAW", "ALAW")

# Read in pieces: a header may claim any number of frames (streamed FLAC claims 2^63), memory follows the data.
_FRAMES_PER_READ = 1 << 20
_SNIFFED_BYTES = 4096
_MAX_CHANNELS = 64


def decode_file(path: str | Path, start_s: float = 0.0, duration_s: float | None = None) -> Audio:
    """Reads a file, or `duration_s` seconds of it from `start_s` on, as mono at the file's own rate.

    The file's bytes say what it is; its name does not matter. Sample bounds are those of check_samples.

    Raises:
        AudioError: names the path and what the file really is.
    """
    return next(decode_blocks(path, start_s, duration_s))


def decode_bytes(data: bytes, name: str, start_s: float = 0.0, duration_s: float | None = None) -> Audio:
    """Reads the bytes of a file; `name` is what errors call it. Otherwise as decode_file."""
    return next(decode_open(io.BytesIO(data), name, start_s, duration_s))


def decode_blocks(
    path: str | Path, start_s: float = 0.0, duration_s: float | None = None, block_s: float = inf
) -> Iterator[Audio]:
    """Reads what decode_file reads in blocks of `block_s` seconds (the last one has the rest), at least one.

    No more than a block is held, and audio before `start_s` is not decoded.

    Raises:
        AudioError: as decode_file, when the block is reached; channels that cancel each other at the end.
    """
    try:
        with open(path, "rb") as file:
            # The descriptor, not the object: libsndfile then reads by itself, in half the time.
            yield from _decode(file.fileno(), file, str(path), start_s, duration_s, block_s)
    except OSError as error:
        raise AudioError(f"{path}: cannot be read: {error.strerror or error}") from error


def decode_open(
    file: BinaryIO, name: str, start_s: float = 0.0, duration_s: float | None = None, block_s: float = inf
) -> Iterator[Audio]:
    """Reads a file that is open, and can be read from any position; `name` is what errors call it."""
    return _decode(file, file, name, start_s, duration_s, block_s)


def decode_pcm(data: bytes, encoding: str, channels: int, sample_rate_hz: int) -> np.ndarray:
    """Turns raw interleaved little-endian samples into mono float32 [n], -1..1.

    Args:
        encoding: LINEAR16 (scaled by 1/32768), FLOAT32, MULAW or ALAW (G.711).
        sample_rate_hz: only checked; the samples stay at this rate.

    Raises:
        AudioError: unknown encoding, bad channels or rate, bytes that are no whole frames, bad samples.
    """
    check_sample_rate(sample_rate_hz)
    if not 1 <= channels <= _MAX_CHANNELS:
        raise AudioError(f"channels must be 1..{_MAX_CHANNELS}, got {channels}")
    sample_bytes = {"LINEAR16": 2, "FLOAT32": 4, "MULAW": 1, "ALAW": 1}.get(encoding)
    if sample_bytes is None:
        raise AudioError(f"encoding must be one of {', '.join(ENCODINGS)}, got {encoding!r}")
    if len(data) % (sample_bytes * channels):
        raise AudioError(
            f"{encoding} audio with {channels} channels comes in frames of {sample_bytes * channels} bytes, "
            f"got {len(data)} bytes"
        )
    if encoding == "LINEAR16":
        # A power of two, so a product is as exact as a quotient, and float32 at once.
        samples = np.frombuffer(data, "<i2") * np.float32(1 / 32768)
    elif encoding == "FLOAT32":
        samples = np.frombuffer(data, "<f4").astype(np.float32)
    else:
        table = _MULAW if encoding == "MULAW" else _ALAW
        samples = table[np.frombuffer(data, np.uint8)]
    if channels == 1:
        # Only floats can be out of bounds.
        return check_samples(samples) if encoding == "FLOAT32" else samples
    check_samples(samples)
    return check_samples(downmix(samples.reshape(-1, channels)))


def encode_linear16(samples: np.ndarray) -> bytes:
    """Turns float [n], -1..1, into 16-bit little-endian samples; what lies outside is clipped, never wrapped.

    It undoes decode_pcm exactly.
    """
    scaled = np.multiply(samples, np.float32(32768), dtype=np.float32)
    # In place, and without np.clip: that costs more than all the rest for the few samples of a block.
    np.rint(scaled, out=scaled)
    np.minimum(scaled, 32767, out=scaled)
    np.maximum(scaled, -32768, out=scaled)
    return bytes(scaled.astype("<i2").tobytes())


def _decode(
    source: int | BinaryIO, file: BinaryIO, name: str, start_s: float, duration_s: float | None, block_s: float
) -> Iterator[Audio]:
    """source: the file's descriptor or the file itself, as soundfile takes it."""
    _check_slice(name, start_s, duration_s)
    try:
        with _Sound(source, closefd=False) as sound:
            rate_hz = check_sample_rate(sound.samplerate)
            start = round(start_s * rate_hz)
            if start > 0:
                if start >= sound.frames:
                    raise AudioError(
                        f"offset must lie within the audio, got {start_s} s in {sound.frames / rate_hz:.3f} s"
                    )
                sound.seek(start)
            wanted = None if duration_s is None else round(duration_s * rate_hz)
            for samples in _blocks(sound, wanted, None if block_s == inf else round(block_s * rate_hz)):
                yield Audio(samples, rate_hz)
    except soundfile.LibsndfileError as error:
        file.seek(0)
        what = describe_bytes(file.read(_SNIFFED_BYTES))
        raise AudioError(f"{name}: not decodable ({error.error_string}): it is {what}") from error
    except AudioError as error:
        raise AudioError(f"{name}: {error}") from error


class _Sound(soundfile.SoundFile):
    """A file that is read on and on. soundfile seeks behind every read, for which MP3 loses samples at each border."""

    def seekable(self) -> bool:
        return False


def _blocks(sound: _Sound, wanted: int | None, size: int | None) -> Iterator[np.ndarray]:
    """Gives up to `wanted` frames, mixed, in blocks of `size`, where these are no None; at least one block."""
    if sound.channels > _MAX_CHANNELS:
        raise AudioError(f"channels must be 1..{_MAX_CHANNELS}, got {sound.channels}")
    downmix, at = Downmix(), 0
    while True:
        sizes = [most for most in (size, None if wanted is None else wanted - at) if most is not None]
        most = min(sizes, default=None)
        frames = _read_frames(sound, most)
        try:
            # Every channel is checked before the mix, which would hide what the others outweigh.
            if frames.shape[1] > 1:
                check_samples(frames.reshape(-1))
            samples = check_samples(downmix.mix(frames))
        except AudioError as error:
            raise AudioError(f"from {at / sound.samplerate:.3f} s on: {error}" if at else str(error)) from error
        is_last = most is None or len(frames) < most or at + len(frames) == wanted
        if is_last:
            downmix.check()
        if len(samples) or not at:
            yield samples
        if is_last:
            return
        at += len(samples)


def _read_frames(sound: _Sound, wanted: int | None) -> np.ndarray:
    """Reads up to `wanted` frames: float32 [n, channels]. A file that ends early gives what there is."""
    parts: list[np.ndarray] = []
    left = wanted
    while left is None or left > 0:
        size = min(_FRAMES_PER_READ, max(1, sound.frames - sound.tell()))
        size = size if left is None else min(left, size)
        part = sound.read(size, dtype="float32", always_2d=True)
        if len(part):
            parts.append(part)
        if len(part) < size:
            break
        if left is not None:
            left -= len(part)
    if not parts:
        return np.zeros((0, sound.channels), np.float32)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _check_slice(name: str, start_s: float, duration_s: float | None) -> None:
    if not (isfinite(start_s) and start_s >= 0):
        raise AudioError(f"{name}: offset must be >= 0 s, got {start_s}")
    if duration_s is not None and not (isfinite(duration_s) and duration_s >= 0):
        raise AudioError(f"{name}: duration must be >= 0 s, got {duration_s}")


def _mulaw_table() -> np.ndarray:
    code = ~np.arange(256, dtype=np.int32) & 0xFF
    size = ((((code & 0x0F) << 3) + 0x84) << ((code & 0x70) >> 4)) - 0x84
    return (np.where(code & 0x80, -size, size) / 32768).astype(np.float32)


def _alaw_table() -> np.ndarray:
    code = np.arange(256, dtype=np.int32) ^ 0x55
    exponent = (code & 0x70) >> 4
    mantissa = ((code & 0x0F) << 4) + 8
    size = np.where(exponent == 0, mantissa, (mantissa + 0x100) << np.maximum(exponent - 1, 0))
    return (np.where(code & 0x80, size, -size) / 32768).astype(np.float32)


_MULAW = _mulaw_table()
_ALAW = _alaw_table()
