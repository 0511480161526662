"""What the door lets in: checks of samples and rates, and the mix of channels."""

import numpy as np
import pytest

from model_runtime.audio import check_sample_rate, check_samples, downmix
from model_runtime.errors import AudioError


def test_good_samples_come_back_without_a_copy() -> None:
    samples = np.array([0.5, -1.0, 1.0], np.float32)
    assert check_samples(samples) is samples


def test_values_between_one_and_eight_are_clipped_and_keep_their_sign() -> None:
    assert check_samples(np.array([2.4, -8.0, 0.25], np.float32)).tolist() == [1.0, -1.0, 0.25]


def test_no_samples_are_samples() -> None:
    assert check_samples(np.zeros(0, np.float32)).shape == (0,)


@pytest.mark.parametrize(("value", "text"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf"), (8.5, "8.5")])
def test_bad_sample_is_named_by_index_and_value(value: float, text: str) -> None:
    samples = np.zeros(10, np.float32)
    samples[[3, 7]] = value
    with pytest.raises(AudioError, match=rf"sample 3 of 10 is {text} \(2 such samples\)"):
        check_samples(samples)


def test_float64_beyond_float32_is_refused() -> None:
    with pytest.raises(AudioError, match="sample 1 of 2 is inf"):
        check_samples(np.array([0.0, 1e300]))


def test_integers_are_refused_since_their_scale_is_unknown() -> None:
    with pytest.raises(AudioError, match="got int16"):
        check_samples(np.zeros(4, np.int16))


def test_two_dimensions_are_refused() -> None:
    with pytest.raises(AudioError, match=r"got shape \[4, 2\]"):
        check_samples(np.zeros((4, 2), np.float32))


@pytest.mark.parametrize("rate_hz", [8000, 8001, 44100, 192000])
def test_rates_within_the_bounds_are_accepted(rate_hz: int) -> None:
    assert check_sample_rate(rate_hz) == rate_hz


@pytest.mark.parametrize("rate_hz", [0, -16000, 7999, 192001])
def test_rates_outside_the_bounds_are_named(rate_hz: int) -> None:
    with pytest.raises(AudioError, match=rf"sample_rate_hz must be 8000..192000, got {rate_hz}$"):
        check_sample_rate(rate_hz)


def test_half_a_hertz_is_refused() -> None:
    with pytest.raises(AudioError, match="whole number"):
        check_sample_rate(16000.5)  # type: ignore[arg-type]


def test_mix_is_the_mean_of_the_channels() -> None:
    assert downmix(np.array([[0.5, 0.25], [-1.0, 0.0]], np.float32)).tolist() == [0.375, -0.5]


def test_one_silent_channel_halves_the_other() -> None:
    left = np.sin(np.arange(800, dtype=np.float32))
    np.testing.assert_array_equal(downmix(np.stack([left, 0 * left], axis=1)), left / 2)


def test_antiphase_channels_are_refused_by_name() -> None:
    left = np.sin(np.arange(800, dtype=np.float32))
    with pytest.raises(AudioError, match=r"2 channels cancel each other \(antiphase\): the mix has RMS 0.0000"):
        downmix(np.stack([left, -left], axis=1))


def test_nearly_cancelling_channels_are_refused_below_five_percent_only() -> None:
    left = np.sin(np.arange(800, dtype=np.float32))
    with pytest.raises(AudioError):
        downmix(np.stack([left, -0.91 * left], axis=1))
    np.testing.assert_allclose(downmix(np.stack([left, -0.89 * left], axis=1)), 0.055 * left, atol=1e-7)


def test_silent_channels_are_silence_and_no_antiphase() -> None:
    assert not downmix(np.zeros((800, 2), np.float32)).any()
