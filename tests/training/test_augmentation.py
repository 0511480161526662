"""Changes to speech keep what they promise to keep."""

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("scipy", reason="rooms and lines are convolved by scipy")

from training import augmentation

TONE_HZ = 400.0
TONE = (0.3 * np.sin(2 * np.pi * TONE_HZ * np.arange(16000) / 16000)).astype(np.float32)


def strongest_hz(pcm: np.ndarray) -> float:
    middle = pcm[len(pcm) // 4 : 3 * len(pcm) // 4]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle)), 1 << 16))
    return float(spectrum.argmax()) * 16000 / (1 << 16)


@pytest.mark.parametrize("tempo", [0.8, 1.3])
def test_stretching_changes_the_length_and_not_the_pitch(tempo: float) -> None:
    stretched = augmentation.stretch(TONE, tempo)
    assert len(stretched) == pytest.approx(len(TONE) / tempo, rel=0.08)
    assert strongest_hz(stretched) == pytest.approx(TONE_HZ, rel=0.02)


@pytest.mark.parametrize("factor", [0.85, 1.2])
def test_shifting_a_voice_changes_the_pitch_and_not_the_length(factor: float) -> None:
    shifted = augmentation.shift_voice(TONE, factor)
    assert len(shifted) == pytest.approx(len(TONE), rel=0.08)
    assert strongest_hz(shifted) == pytest.approx(TONE_HZ * factor, rel=0.03)


def test_cutting_ends_leaves_one_piece_of_at_least_55_percent() -> None:
    word, rng = np.arange(5000), np.random.default_rng(2)
    pieces = [augmentation.cut_ends(rng, word) for _ in range(200)]
    for piece in pieces:
        np.testing.assert_array_equal(piece, word[piece[0] : piece[-1] + 1])
    assert min(len(piece) for piece in pieces) >= 2750
    late, early = (sum(cut) for cut in zip(*((p[0] > 0, p[-1] < 4999) for p in pieces), strict=True))
    assert early < late < 100


@pytest.mark.parametrize("change", [augmentation.room, augmentation.line])
def test_rooms_and_lines_keep_the_length(change: Callable[[np.random.Generator, np.ndarray], np.ndarray]) -> None:
    assert len(change(np.random.default_rng(1), TONE)) == len(TONE)


def test_the_same_seed_gives_the_same_speech() -> None:
    first, second = (augmentation.vary_speech(np.random.default_rng(9), TONE) for _ in range(2))
    np.testing.assert_array_equal(first, second)
