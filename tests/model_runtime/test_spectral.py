"""The denoise stage around its graphs: framing, overlap-add, delay and chunks, with graphs that do nothing."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from model_runtime.calls import States, drive
from model_runtime.card import SpectralFraming
from model_runtime.spectral import Denoiser, SpectralKernel


class ConstantMask:
    """Stands in for a mask graph: the same gain for every bin; counts its calls in its state."""

    def __init__(self, gain: float) -> None:
        self.gain = gain

    def initial_states(self, n: int) -> States:
        return (np.zeros((n, 1), np.float32),)

    def run(self, inputs: Mapping[str, np.ndarray], states: States) -> tuple[dict[str, np.ndarray], States]:
        return {"mask": np.full_like(inputs["features"], self.gain)}, (states[0] + 1,)


class PassFrames(ConstantMask):
    """Stands in for a second graph, which works on frames."""

    def run(self, inputs: Mapping[str, np.ndarray], states: States) -> tuple[dict[str, np.ndarray], States]:
        return {"frames": inputs["frames"] * np.float32(self.gain)}, states


FRAMINGS = {
    "hann": SpectralFraming(512, 256, frames_per_call=4, window="sqrt_hann", feature="log_magnitude"),
    "hann 75 %": SpectralFraming(512, 128, frames_per_call=3, window="sqrt_hann"),
    "rectangular": SpectralFraming(512, 128),
    "no overlap": SpectralFraming(64, 64),
}


def denoised(framing: SpectralFraming, audio: np.ndarray, sizes: list[int], graphs: tuple = (ConstantMask(1.0),)):
    stage = Denoiser(SpectralKernel(framing, graphs))
    state, pairs, at = stage.start(), [], 0
    for size in [*sizes, len(audio)]:
        state, more = drive(stage.push(state, audio[at : at + size]))
        pairs += more
        at += size
    state, more = drive(stage.finish(state))
    empty = np.zeros(0, np.float32)
    clean, original = zip(*pairs, *more, (empty, empty), strict=True)
    return np.concatenate(clean), np.concatenate(original)


def noise(samples: int) -> np.ndarray:
    return np.random.default_rng(samples).uniform(-0.5, 0.5, samples).astype(np.float32)


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
@pytest.mark.parametrize("samples", [0, 1, 63, 255, 512, 513, 5000])
def test_a_gain_of_one_gives_back_every_sample_in_its_place(framing: SpectralFraming, samples: int) -> None:
    audio = noise(samples)
    clean, original = denoised(framing, audio, [])
    assert original.tobytes() == audio.tobytes()
    np.testing.assert_allclose(clean, audio, atol=2e-6)


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
@given(sizes=st.lists(st.integers(0, 900), max_size=8))
@settings(max_examples=20, deadline=None)
def test_chunk_borders_leave_no_trace(framing: SpectralFraming, sizes: list[int]) -> None:
    audio = noise(3000)
    assert denoised(framing, audio, sizes)[0].tobytes() == denoised(framing, audio, [])[0].tobytes()


def test_a_second_graph_works_on_the_frames() -> None:
    audio = noise(2000)
    clean, _ = denoised(FRAMINGS["rectangular"], audio, [], (ConstantMask(0.5), PassFrames(0.5)))
    np.testing.assert_allclose(clean, audio / 4, atol=2e-6)


def test_the_log_magnitude_is_floored_scaled_and_shifted() -> None:
    seen = []

    class Spy(ConstantMask):
        def run(self, inputs: Mapping[str, np.ndarray], states: States) -> tuple[dict[str, np.ndarray], States]:
            seen.append(inputs["features"])
            return super().run(inputs, states)

    framing = SpectralFraming(8, 4, feature="log_magnitude", feature_floor=0.01, feature_scale=2.0, feature_offset=3.0)
    audio = np.array([0, 0, 0, 0, 1, 0, 0, 0], np.float32)
    denoised(framing, audio, [], (Spy(1.0),))
    np.testing.assert_allclose(seen[0], 2 * np.log(0.01) + 3, rtol=1e-6)
    np.testing.assert_allclose(seen[1], 3.0, atol=1e-6)


def switched(framing: SpectralFraming, audio: np.ndarray, switches: dict[int, bool], sizes: list[int]) -> np.ndarray:
    """The clean audio with a gain of one half, bypassed or not from these positions on; `sizes` are of other chunks."""
    stage = Denoiser(SpectralKernel(framing, (ConstantMask(0.5),)))
    borders = sorted({0, *np.cumsum(sizes).clip(0, len(audio)).tolist(), *switches, len(audio)})
    state, clean = stage.start(), [np.zeros(0, np.float32)]
    for begin, end in pairwise(borders):
        state = replace(state, bypassed=switches.get(begin, state.bypassed))
        state, pairs = drive(stage.push(state, audio[begin:end]))
        clean += [pair[0] for pair in pairs]
    return np.concatenate(clean + [pair[0] for pair in drive(stage.finish(state))[1]])


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
def test_what_is_bypassed_comes_out_as_it_went_in(framing: SpectralFraming) -> None:
    audio = noise(5_000)
    np.testing.assert_allclose(switched(framing, audio, {0: True}, []), audio, atol=2e-6)


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
def test_around_a_switch_audio_keeps_its_place_and_cross_fades_within_a_window(framing: SpectralFraming) -> None:
    audio = noise(9_000)
    clean = switched(framing, audio, {3_000: True, 6_000: False}, [])
    assert len(clean) == len(audio)
    reach = framing.window_samples + framing.hop_samples * framing.frames_per_call
    gains = np.full(len(audio), 0.5, np.float32)
    gains[3_000:6_000] = 1.0
    near = [slice(position - reach, position + reach) for position in (3_000, 6_000)]
    for place in near:
        assert (np.abs(clean[place]) <= np.abs(audio[place]) + 2e-6).all()
        gains[place] = 0.0
    np.testing.assert_allclose(clean[gains > 0], (audio * gains)[gains > 0], atol=2e-6)


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
@given(sizes=st.lists(st.integers(0, 900), max_size=8))
@settings(max_examples=20, deadline=None)
def test_audio_with_switches_is_a_function_of_samples_and_their_positions(
    framing: SpectralFraming, sizes: list[int]
) -> None:
    audio, switches = noise(3_000), {700: True, 1_100: False, 1_101: True, 2_500: False}
    assert switched(framing, audio, switches, sizes).tobytes() == switched(framing, audio, switches, []).tobytes()


def test_what_is_bypassed_costs_no_call_of_the_graphs() -> None:
    stage = Denoiser(SpectralKernel(FRAMINGS["hann"], (ConstantMask(0.5),)))
    state, _ = drive(stage.push(replace(stage.start(), bypassed=True), noise(5_000)))
    assert state.states[0][0].item() == 0
    state, _ = drive(stage.push(replace(state, bypassed=False), noise(1_024)))
    assert state.states[0][0].item() == 1
