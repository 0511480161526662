"""Labels of the voice detector follow the energy of clean speech."""

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="the module trains with TensorFlow")

from training.vad_training import speech_frames


def tone(*stretches_ms: tuple[int, int], length_ms: int = 1000, floor: float = 0.0) -> np.ndarray:
    pcm = floor * np.random.default_rng(1).standard_normal(16 * length_ms)
    for first, last in stretches_ms:
        time = np.arange(16 * (last - first))
        pcm[16 * first : 16 * last] += 0.3 * np.sin(time / 3)
    return pcm.astype(np.float32)


def test_silence_has_no_speech() -> None:
    assert not speech_frames(np.zeros(16000, np.float32)).any()


def test_speech_is_where_the_energy_is() -> None:
    np.testing.assert_array_equal(np.flatnonzero(speech_frames(tone((300, 600)))), np.arange(30, 60))


def test_a_pause_of_80_ms_is_filled_and_one_of_200_ms_is_not() -> None:
    speech = speech_frames(tone((100, 300), (380, 500), (700, 900)))
    assert speech[10:50].all()
    assert not speech[50:70].any()


def test_a_blip_of_20_ms_is_dropped() -> None:
    assert not speech_frames(tone((100, 120), (500, 800)))[:40].any()


def test_a_floor_40_decibels_down_is_not_speech() -> None:
    assert not speech_frames(tone((300, 600), floor=0.002))[:25].any()
