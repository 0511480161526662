"""Whisper's log-mel spectrogram against its definition, written out once more."""

import numpy as np
import pytest

from model_runtime.whisper_features import log_mel, mel_filters, sinusoids

WINDOW = 8_000


def defined_filters(mel_bins: int) -> np.ndarray:
    """Slaney's filters by their corners: every triangle drawn by interpolation, then scaled to unit area."""
    top = 15 + 27 * np.log(8000 / 1000) / np.log(6.4)
    mels = np.linspace(0, top, mel_bins + 2)
    corners = [200 * mel / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27) for mel in mels]
    hz = np.arange(201) * 40.0
    triangles = [np.interp(hz, corners[i : i + 3], [0, 1, 0], 0, 0) for i in range(mel_bins)]
    return np.array([t * 2 / (corners[i + 2] - corners[i]) for i, t in enumerate(triangles)])


def defined_log_mel(samples: np.ndarray) -> np.ndarray:
    mirrored = np.concatenate([samples[200:0:-1], samples, samples[-2:-202:-1]]).astype(np.float64)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    turns = np.exp(-2j * np.pi * np.outer(np.arange(201), np.arange(400)) / 400)
    frames = np.array([mirrored[160 * i : 160 * i + 400] for i in range(len(samples) // 160)])
    power = np.abs((frames * hann) @ turns.T) ** 2
    mel = np.log10(np.maximum(power @ defined_filters(80).T, 1e-10)).T
    return (np.maximum(mel, mel.max() - 8) + 4) / 4


@pytest.mark.parametrize("samples", [1, 159, 3_000, WINDOW - 100, WINDOW])
def test_log_mel_is_as_defined_whatever_the_length_of_the_clip(samples: int) -> None:
    clip = (0.1 * np.random.default_rng(1).standard_normal(samples)).astype(np.float32)
    padded = np.pad(clip, (0, WINDOW - samples))
    features = log_mel(clip, WINDOW, 80)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, defined_log_mel(padded), atol=2e-5)


def test_silence_alone_is_the_floor() -> None:
    # Vectors of some processors have a logarithm that is off by the last bit.
    np.testing.assert_allclose(log_mel(np.zeros(500, np.float32), WINDOW, 80), np.full((80, 50), -1.5), rtol=1e-6)


@pytest.mark.parametrize("mel_bins", [80, 128])
def test_filters_are_triangles_of_unit_area(mel_bins: int) -> None:
    np.testing.assert_allclose(mel_filters(mel_bins), defined_filters(mel_bins), atol=1e-8)


def test_positions_are_sines_then_cosines_of_falling_rates() -> None:
    table = sinusoids(3, 4)
    wanted = [[np.sin(i), np.sin(i / 1e4), np.cos(i), np.cos(i / 1e4)] for i in range(3)]
    np.testing.assert_allclose(table, wanted, atol=1e-7)
