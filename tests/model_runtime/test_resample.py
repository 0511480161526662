"""The resampler: the same bytes for every chunking, the exact length, and soxr as the reference."""

import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from model_runtime.audio import AudioError
from model_runtime.resample import Resampler, ResamplerState

RATES = [(8000, 16000), (16000, 8000), (44100, 16000), (48000, 16000), (16000, 44100), (16000, 48000)]
MORE_RATES = [(11025, 16000), (22050, 16000), (96000, 16000), (192000, 8000), (8000, 192000), (16001, 16000)]


def _chunked(resampler: Resampler, samples: np.ndarray, sizes: list[int]) -> np.ndarray:
    state, outputs, at = resampler.initial_state(), [], 0
    for size in [*sizes, len(samples)]:
        state, out = resampler.push(state, samples[at : at + size])
        outputs.append(out)
        at += size
    return np.concatenate([*outputs, resampler.flush(state)[1]])


def _band_limited(samples: int, rate_hz: int, highest_hz: float) -> np.ndarray:
    spectrum = np.fft.rfft(np.random.default_rng(5).standard_normal(samples))
    spectrum[np.fft.rfftfreq(samples, 1 / rate_hz) > highest_hz] = 0
    sound = np.fft.irfft(spectrum, samples)
    return (0.5 * sound / np.abs(sound).max()).astype(np.float32)


@pytest.mark.parametrize(("from_hz", "to_hz"), RATES + MORE_RATES)
@given(sizes=st.lists(st.integers(0, 3000), max_size=12), samples=st.integers(0, 5000))
@settings(max_examples=15, deadline=None)
def test_output_is_bit_equal_for_every_chunking(from_hz: int, to_hz: int, sizes: list[int], samples: int) -> None:
    sound = np.random.default_rng(samples).standard_normal(samples).astype(np.float32)
    resampler = Resampler(from_hz, to_hz)
    assert _chunked(resampler, sound, sizes).tobytes() == resampler.run(sound).tobytes()


@pytest.mark.parametrize(("from_hz", "to_hz"), RATES + MORE_RATES)
@pytest.mark.parametrize("samples", [0, 1, 79, 441, 4410, 12345])
def test_output_has_the_ceiling_of_the_exact_length(from_hz: int, to_hz: int, samples: int) -> None:
    out = Resampler(from_hz, to_hz).run(np.zeros(samples, np.float32))
    assert len(out) == -(-samples * to_hz // from_hz)


@pytest.mark.parametrize(("from_hz", "to_hz"), RATES + [(22050, 16000), (96000, 16000), (192000, 8000)])
def test_output_is_that_of_soxr_below_the_transition_band(from_hz: int, to_hz: int) -> None:
    sound = _band_limited(from_hz, from_hz, 0.45 * min(from_hz, to_hz) * 0.95)
    mine, reference = Resampler(from_hz, to_hz).run(sound), soxr.resample(sound, from_hz, to_hz)
    edge = to_hz // 50
    assert len(mine) == len(reference)
    assert np.abs(mine - reference)[edge:-edge].max() < 1e-4


@pytest.mark.parametrize(("from_hz", "to_hz"), [(44100, 16000), (48000, 16000), (16000, 8000)])
def test_tones_above_the_new_nyquist_frequency_are_gone(from_hz: int, to_hz: int) -> None:
    tone = np.sin(2 * np.pi * 0.51 * to_hz / from_hz * np.arange(from_hz)).astype(np.float32)
    assert np.abs(Resampler(from_hz, to_hz).run(tone))[500:-500].max() < 1e-4


@pytest.mark.parametrize(("from_hz", "to_hz"), RATES)
def test_an_impulse_stays_at_its_time(from_hz: int, to_hz: int) -> None:
    sound = np.zeros(from_hz, np.float32)
    sound[from_hz // 2] = 1.0
    assert int(np.argmax(Resampler(from_hz, to_hz).run(sound))) == to_hz // 2


def test_a_constant_keeps_its_value() -> None:
    out = Resampler(44100, 16000).run(np.full(44100, 0.5, np.float32))
    np.testing.assert_allclose(out[200:-200], 0.5, atol=1e-6)


def test_equal_rates_pass_the_samples_through() -> None:
    resampler = Resampler(16000, 16000)
    sound = np.arange(5, dtype=np.float32)
    state, out = resampler.push(resampler.initial_state(), sound)
    assert out.tolist() == [0, 1, 2, 3, 4]
    assert resampler.flush(state)[1].tolist() == []


def test_push_leaves_the_old_state_as_it_was() -> None:
    resampler = Resampler(8000, 16000)
    state, _ = resampler.push(resampler.initial_state(), np.ones(100, np.float32))
    before = ResamplerState(state.pending.copy(), state.received_samples, state.emitted_samples)
    first = resampler.push(state, np.ones(500, np.float32))[1]
    assert state.pending.tobytes() == before.pending.tobytes()
    assert resampler.push(state, np.ones(500, np.float32))[1].tobytes() == first.tobytes()


def test_state_stays_small_however_much_goes_through() -> None:
    resampler = Resampler(44100, 16000)
    state = resampler.initial_state()
    for _ in range(50):
        state, _ = resampler.push(state, np.zeros(4410, np.float32))
    assert len(state.pending) == 2646  # less than a block of 1764 and its sides of 882


def test_rate_outside_the_bounds_is_refused() -> None:
    with pytest.raises(AudioError, match="got 4000"):
        Resampler(4000, 16000)
