"""Spectrograms as small PNG pictures, for pages that must hold all of themselves."""

import struct
import zlib

import numpy as np

HEIGHT = 128
"""Rows of a picture; they are mel-spaced, low frequencies below."""

_MAX_COLUMNS = 700
_WINDOW_S = 0.032
_TOP_HZ = 8_000.0
_RANGE_DB = 70.0
# Dark blue over red to light yellow, evenly brighter.
_ANCHORS = [(3, 5, 26), (38, 24, 84), (98, 30, 115), (158, 45, 105), (212, 72, 78), (246, 124, 58), (252, 188, 84), (252, 252, 190)]  # fmt: skip  # noqa: E501


def spectrogram_db(samples: np.ndarray, sample_rate_hz: int) -> np.ndarray:
    """Gives the power in dB, float32 [HEIGHT, up to 700 columns], highest frequency first, from float32 [n]."""
    size = round(_WINDOW_S * sample_rate_hz)
    hop = max(size // 4, -(-len(samples) // _MAX_COLUMNS))
    padded = np.concatenate([np.zeros(size // 2, np.float32), samples, np.zeros(size, np.float32)])
    starts = np.arange(0, max(len(samples), 1), hop)
    frames = padded[starts[:, None] + np.arange(size)] * np.hanning(size).astype(np.float32)
    power = np.abs(np.fft.rfft(frames)).T ** 2
    bins = np.arange(len(power)) * sample_rate_hz / size
    top = 2595 * np.log10(1 + min(_TOP_HZ, sample_rate_hz / 2) / 700)
    wanted = 700 * (10 ** (np.linspace(top, 0, HEIGHT) / 2595) - 1)
    at = np.searchsorted(bins, wanted).clip(1, len(bins) - 1)
    share = ((wanted - bins[at - 1]) / (bins[at] - bins[at - 1]))[:, None]
    return np.asarray(10 * np.log10(power[at - 1] * (1 - share) + power[at] * share + 1e-10), np.float32)


def to_png(levels_db: np.ndarray, loudest_db: float) -> bytes:
    """Gives float [height, width] as a PNG; the colours go from 70 dB below `loudest_db` up to it."""
    colours = ((levels_db - loudest_db) / _RANGE_DB + 1).clip(0, 1) * 255
    rows = np.rint(colours).astype(np.uint8)
    raw = np.concatenate([np.zeros((len(rows), 1), np.uint8), rows], axis=1).tobytes()
    header = struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], 8, 3, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"PLTE", _palette()), (b"IDAT", zlib.compress(raw, 4)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def _palette() -> bytes:
    anchors = np.array(_ANCHORS, float)
    at = np.linspace(0, len(anchors) - 1, 256)
    channels = [np.interp(at, np.arange(len(anchors)), anchors[:, channel]) for channel in range(3)]
    return bytes(np.rint(np.stack(channels, axis=1)).astype(np.uint8).tobytes())
