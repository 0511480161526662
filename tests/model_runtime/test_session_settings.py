"""A session's own settings: they do what the same values in the recipe do, and are bounded alike."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from model_runtime import (
    Audio,
    ConfigError,
    Event,
    Final,
    Partial,
    Recipe,
    SessionSettings,
    SpeechEngine,
    TentativeEnd,
)
from model_runtime.recipe import AsrConfig, EndpointConfig, VadConfig

VAD = VadConfig("unison-vad")
WHISPER = str(Path(__file__).parent / "whisper_toy")
OWN = SessionSettings(
    silence_after_speech_ms=400, max_utterance_ms=1_500, tentative_end_ms=150, partial_interval_ms=320
)
ENDPOINT = EndpointConfig(silence_after_speech_ms=400, max_utterance_ms=1_500, tentative_end_ms=150)


def stepped(engine: SpeechEngine, audio: Audio, settings: SessionSettings) -> list[Event]:
    """Events of audio in chunks, the state frozen and thawed between them."""
    state, events = engine.start(audio.sample_rate_hz, settings), []
    for part in np.array_split(audio.samples, 20):
        state, more = engine.step(engine.thaw(engine.freeze(state)), part)
        events += more
    return events + engine.finish(engine.thaw(engine.freeze(state)))[1]


@pytest.mark.parametrize("vad", [VAD, None])
def test_settings_of_a_session_do_what_they_do_in_a_recipe(
    engine: Callable[..., SpeechEngine], samples: list[Audio], vad: VadConfig | None
) -> None:
    asr = AsrConfig("unison-asr-stream", hears="original")
    usual = engine(Recipe("own", None, vad, asr))
    tuned = engine(
        Recipe("own", None, vad, AsrConfig("unison-asr-stream", hears="original", partial_interval_ms=320), ENDPOINT)
    )
    for audio in samples:
        assert stepped(usual, audio, OWN) == stepped(tuned, audio, SessionSettings())
    kinds = {type(event) for event in stepped(usual, samples[0], OWN)}
    assert {Partial, TentativeEnd, Final} <= kinds


def test_a_session_leaves_the_settings_of_its_neighbours_alone(
    engine: Callable[..., SpeechEngine], samples: list[Audio]
) -> None:
    loaded = engine("streaming")
    before = stepped(loaded, samples[0], SessionSettings())
    assert stepped(loaded, samples[0], OWN) != before
    assert stepped(loaded, samples[0], SessionSettings()) == before


def test_an_interval_of_0_leaves_partials_out(engine: Callable[..., SpeechEngine], samples: list[Audio]) -> None:
    silent = stepped(engine("streaming"), samples[0], SessionSettings(partial_interval_ms=0))
    assert not any(isinstance(event, Partial) for event in silent)
    assert any(isinstance(event, Final) for event in silent)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (SessionSettings(silence_after_speech_ms=99), "silence_after_speech_ms must be 100..60000, got 99"),
        (SessionSettings(max_utterance_ms=60_001), "max_utterance_ms must be 1000..60000, got 60001"),
        (SessionSettings(tentative_end_ms=60_001), "tentative_end_ms must be 0..60000, got 60001"),
        (SessionSettings(partial_interval_ms=-1), "partial_interval_ms must be 0..60000, got -1"),
    ],
)
def test_a_setting_out_of_bounds_is_refused_with_name_bound_and_value(
    engine: Callable[..., SpeechEngine], settings: SessionSettings, message: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{message}$"):
        engine("streaming").start(16_000, settings)


def test_an_utterance_may_not_be_longer_than_the_window_of_whisper(engine: Callable[..., SpeechEngine]) -> None:
    loaded = engine(Recipe("whisper", None, VAD, AsrConfig(WHISPER), EndpointConfig(5000, 300, 5000)))
    loaded.start(16_000, SessionSettings(max_utterance_ms=29_000))
    with pytest.raises(ConfigError, match=r"^max_utterance_ms must be 1000..29000, got 29001$"):
        loaded.start(16_000, SessionSettings(max_utterance_ms=29_001))
