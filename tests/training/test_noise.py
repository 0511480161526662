"""Noises have the level and the spectrum that they are named for."""

import numpy as np
import pytest

pytest.importorskip("scipy", reason="noises are filtered by scipy")

from training import noise

LENGTH = 32000
KINDS = (noise.white, noise.pink, noise.coloured, noise.hum, noise.clicks, noise.band)


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_every_noise_has_unit_power(make: noise.Maker) -> None:
    background = make(np.random.default_rng(1), LENGTH)
    assert background.dtype == np.float32
    assert np.mean(np.square(background)) == pytest.approx(1.0, rel=0.05)


def test_pink_noise_falls_by_three_decibels_an_octave() -> None:
    power = np.abs(np.fft.rfft(noise.pink(np.random.default_rng(2), 1 << 18))) ** 2
    low, high = power[1000:2000].mean(), power[8000:16000].mean()
    assert 10 * np.log10(low / high) == pytest.approx(9.0, abs=0.5)


def test_noise_lies_the_wanted_decibels_below_the_speech() -> None:
    rng = np.random.default_rng(3)
    speech = np.zeros(LENGTH, np.float32)
    speech[8000:16000] = 0.2 * np.sin(np.arange(8000) / 5)
    scaled = noise.at_snr(speech, noise.white(rng, LENGTH), 10.0)
    loud = np.mean(np.square(speech[8000:16000]))
    assert 10 * np.log10(loud / np.mean(np.square(scaled))) == pytest.approx(10.0, abs=0.2)


def test_babble_is_made_of_the_speech_given() -> None:
    speech = [np.full(500, 1000, np.int16)]
    babble = noise.babble(np.random.default_rng(4), 4000, speech)
    assert babble.min() >= 0.0
    assert np.mean(np.square(babble)) == pytest.approx(1.0, rel=1e-3)


def test_the_same_seed_gives_the_same_noise() -> None:
    first, second = (noise.any_noise(np.random.default_rng(5), LENGTH) for _ in range(2))
    np.testing.assert_array_equal(first, second)
