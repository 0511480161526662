"""Whisper's log-mel spectrogram of a window, and the positions that its encoder adds."""

from functools import cache

import numpy as np

SAMPLE_RATE_HZ = 16_000
HOP_SAMPLES = 160
_FRAME_SAMPLES = 400
# Samples per frame of the encoder, which takes every second one.
FRAME_SAMPLES = 2 * HOP_SAMPLES
# How far below the loudest value of a window its spectrogram reaches: 8 decades of power, 80 dB.
_RANGE = 8.0
# Decades of power below which nothing is told apart.
_FLOOR = -10.0


def log_mel(clip: np.ndarray, window_samples: int, mel_bins: int) -> np.ndarray:
    """Gives float32 [mel_bins, window_samples / 160] of a clip padded with silence to the window.

    The samples are padded, not the features: values are limited relative to the loudest of the whole window, so the
    floor of the silent part depends on the speech.

    Args:
        clip: float32 [n], 16 kHz, n at most window_samples.
        window_samples: a multiple of 160.
        mel_bins: 80, or 128 for large-v3.
    """
    padded = np.zeros(window_samples, np.float32)
    padded[: len(clip)] = clip
    # Frames are centred on their hop, with the signal mirrored at both ends; the last one is left out.
    around = np.pad(padded, _FRAME_SAMPLES // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(around, _FRAME_SAMPLES)[::HOP_SAMPLES][:-1]
    # Nothing is to be computed for frames of silence alone.
    heard = min(len(frames), -(-(len(clip) + _FRAME_SAMPLES // 2) // HOP_SAMPLES))
    spectrum = np.fft.rfft(frames[:heard] * _hann(), axis=1)
    power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
    mel = np.full((mel_bins, len(frames)), _FLOOR, np.float32)
    mel[:, :heard] = np.log10(np.maximum(mel_filters(mel_bins) @ power.T, 10.0**_FLOOR))
    limited: np.ndarray = (np.maximum(mel, mel.max() - _RANGE) + 4.0) / 4.0
    return limited.astype(np.float32)


@cache
def mel_filters(mel_bins: int) -> np.ndarray:
    """Gives float32 [mel_bins, 201]: triangles on Slaney's mel scale up to 8 kHz, each of unit area."""
    bins = np.linspace(0.0, SAMPLE_RATE_HZ / 2, _FRAME_SAMPLES // 2 + 1)
    corners = _hz(np.linspace(0.0, float(_mel(np.array(SAMPLE_RATE_HZ / 2))), mel_bins + 2))
    widths = np.diff(corners)
    slopes = corners[:, None] - bins
    triangles = np.maximum(0.0, np.minimum(-slopes[:-2] / widths[:-1, None], slopes[2:] / widths[1:, None]))
    filters: np.ndarray = (triangles * (2.0 / (corners[2:] - corners[:-2]))[:, None]).astype(np.float32)
    filters.setflags(write=False)
    return filters


@cache
@cache
def sinusoids(frames: int, width: int) -> np.ndarray:
    """Gives the encoder's positions: float32 [frames, width], sines before cosines; read-only."""
    rates = np.exp(-np.log(10_000.0) / (width // 2 - 1) * np.arange(width // 2))
    angles = np.arange(frames)[:, None] * rates
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
    table.setflags(write=False)
    return table


@cache
def _hann() -> np.ndarray:
    return np.hanning(_FRAME_SAMPLES + 1)[:-1].astype(np.float32)


# Slaney's scale: linear, 3 mel per 200 Hz, up to 1 kHz = 15 mel; above, 27 mel for each factor of 6.4.
def _mel(hz: np.ndarray) -> np.ndarray:
    return np.where(hz < 1000, hz * 3 / 200, 15 + 27 * np.log(np.maximum(hz, 1.0) / 1000) / np.log(6.4))


def _hz(mel: np.ndarray) -> np.ndarray:
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))
