"""The engine with its denoise stage switched off and on again in the middle of a session."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from model_runtime import Enhanced, Event, Final, SpeechEngine
from model_runtime.decode import decode_file

RECORDING = sorted((Path(__file__).resolve().parents[2] / "samples").glob("*.wav"))[0]


@pytest.fixture(scope="module")
def engine() -> SpeechEngine:
    return SpeechEngine.load("streaming")


@pytest.fixture(scope="module")
def audio() -> np.ndarray:
    return decode_file(RECORDING).samples


def played(
    engine: SpeechEngine, audio: np.ndarray, switches: dict[int, bool], borders: list[int], rate_hz: int = 16_000
) -> list[Event]:
    """The events of audio in chunks with these borders, denoised or not from the positions of the switches on."""
    state, events = engine.start(rate_hz), []
    for begin, end in pairwise(sorted({0, *borders, *switches, len(audio)})):
        if begin in switches:
            state = engine.thaw(engine.freeze(state)).with_denoise(switches[begin])
        state, more = engine.step(state, audio[begin:end])
        events += more
    return events + engine.finish(state)[1]


def clean(events: list[Event]) -> np.ndarray:
    return np.concatenate([event.samples() for event in events if isinstance(event, Enhanced)])


def said(events: list[Event]) -> list[Event]:
    return [event for event in events if not isinstance(event, Enhanced)]


def test_what_is_said_is_a_function_of_the_samples_and_the_positions_of_the_switches(
    engine: SpeechEngine, audio: np.ndarray
) -> None:
    switches = {4_001: False, 20_000: True, 31_337: False}
    once = played(engine, audio, switches, [])
    chunked = played(engine, audio, switches, [*range(0, len(audio), 1_601)])
    assert said(chunked) == said(once)
    assert clean(chunked).tobytes() == clean(once).tobytes()
    assert any(isinstance(event, Final) and event.text for event in once)


@pytest.mark.parametrize("rate_hz", [16_000, 8_000])
def test_clean_audio_stays_as_long_as_what_came_in(engine: SpeechEngine, audio: np.ndarray, rate_hz: int) -> None:
    events = played(engine, audio, {5_000: False, 15_000: True}, [], rate_hz)
    assert len(clean(events)) == len(audio)


def test_a_session_that_is_never_denoised_gives_out_what_came_in(engine: SpeechEngine, audio: np.ndarray) -> None:
    np.testing.assert_allclose(clean(played(engine, audio, {0: False}, [])), audio, atol=2e-6)


def test_until_the_first_switch_nothing_differs(engine: SpeechEngine, audio: np.ndarray) -> None:
    switch = 16_000
    through, switched = clean(played(engine, audio, {}, [])), clean(played(engine, audio, {switch: False}, []))
    before = switch - 2_048
    assert through[:before].tobytes() == switched[:before].tobytes()
    assert through.tobytes() != switched.tobytes()


def test_a_recipe_without_denoise_has_nothing_to_switch() -> None:
    engine = SpeechEngine.load("segment")
    state = engine.start()
    assert engine.freeze(state.with_denoise(False)) == engine.freeze(state)
