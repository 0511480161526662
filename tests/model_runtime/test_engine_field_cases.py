"""Faults that people met in streaming engines (field cases S04, S05, S06, S08, A06, A08), and the right answers."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from model_runtime import Audio, AudioError, Enhanced, Event, Final, Recipe, SpeechBegin, SpeechEnd, SpeechEngine
from model_runtime.decode import decode_file
from model_runtime.recipe import VadConfig

Engine = Callable[..., SpeechEngine]


@pytest.fixture(scope="module")
def wav(shared: Path) -> Path:
    return shared / "field-cases" / "wav"


def text(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Final)]


def test_interleaved_sessions_do_not_colour_each_other(engine: Engine, wav: Path) -> None:
    loud = decode_file(wav / "ref_pcm16.wav").samples
    quiet = np.zeros_like(loud)
    loaded = engine()
    states = [loaded.start(), loaded.start()]
    heard: list[list[Event]] = [[], []]
    for at in range(0, len(loud), 1600):
        for i, audio in enumerate((loud, quiet)):
            states[i], events = loaded.step(states[i], audio[at : at + 1600])
            heard[i] += events
    for i, audio in enumerate((loud, quiet)):
        events = heard[i] + loaded.finish(states[i])[1]
        assert events == loaded.run([audio])[0]
    assert text(heard[1]) == []
    assert not any(isinstance(event, SpeechBegin) for event in heard[1])


def test_a_clip_between_two_equal_ones_leaves_no_trace_in_the_second(engine: Engine, wav: Path) -> None:
    reference = decode_file(wav / "ref_pcm16.wav")
    silence = Audio(np.zeros_like(reference.samples), 16_000)
    first, middle, last = engine().run([reference, silence, reference], batch_size=1)
    assert first == last
    assert text(middle) == []


def test_a_session_that_begins_after_another_starts_with_a_fresh_memory(engine: Engine, wav: Path) -> None:
    loaded = engine()
    audio = decode_file(wav / "ref_pcm16.wav").samples
    outcomes = []
    for _ in range(2):
        state, events = loaded.step(loaded.start(), audio)
        outcomes.append(events + loaded.finish(state)[1])
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("rate_hz", [16_000, 48_000])
def test_times_do_not_drift_over_ten_minutes(engine: Engine, wav: Path, rate_hz: int) -> None:
    recipe = Recipe("no-padding", vad=VadConfig("unison-vad", pad_before_ms=0, pad_after_ms=0))
    speech = decode_file(wav / "sil_speech_sil.wav").samples
    period = np.zeros(97_600, np.float32)
    period[: len(speech)] = speech
    if rate_hz == 48_000:
        period = np.repeat(period, 3)
    loaded = engine(recipe)
    state, starts = loaded.start(rate_hz), {}
    for _ in range(100):
        state, events = loaded.step(state, period)
        for event in events:
            if isinstance(event, SpeechBegin):
                starts.setdefault(event.start_samples // len(period), event.start_samples / rate_hz)
    errors = [starts[k] - (1.0 + 6.1 * k) for k in range(100)]
    assert max(map(abs, errors)) <= 0.1
    assert abs(errors[99] - errors[1]) <= 0.032


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_a_sample_that_is_no_sound_is_refused_and_the_session_goes_on_from_before_it(
    engine: Engine, digits: np.ndarray, value: float
) -> None:
    loaded = engine()
    bad = digits[4000:8000].copy()
    bad[1000] = value
    state, events = loaded.step(loaded.start(), digits[:4000])
    before = loaded.freeze(state)
    with pytest.raises(AudioError, match=r"sample 1000 of 4000 is (nan|-?inf|1e\+30)"):
        loaded.step(state, bad)
    assert loaded.freeze(state) == before
    state, more = loaded.step(state, digits[4000:])
    assert events + more + loaded.finish(state)[1] == loaded.run([digits])[0]


def test_a_file_with_samples_that_are_no_sound_is_refused_with_its_path(wav: Path) -> None:
    with pytest.raises(AudioError, match=r"nonfinite_float32.wav.*sample 1000 "):
        decode_file(wav / "nonfinite_float32.wav")


@pytest.mark.parametrize("level", [0.0, 0.25, -0.5])
def test_a_constant_is_no_speech_and_stays_finite(engine: Engine, level: float) -> None:
    (events,) = engine().run([np.full(48_000, level, np.float32)])
    assert [event for event in events if not isinstance(event, Enhanced)] == []
    clean = np.concatenate([event.samples() for event in events if isinstance(event, Enhanced)])
    assert np.isfinite(clean).all()


@pytest.mark.parametrize(
    "name", ["no_samples", "one_sample", "short_160", "short_300", "short_368", "short_511", "short_512"]
)
@pytest.mark.parametrize("recipe", ["streaming", "batch"])
def test_a_clip_shorter_than_any_window_gives_nothing_and_disturbs_nobody(
    engine: Engine, wav: Path, name: str, recipe: str
) -> None:
    loaded = engine(recipe)
    short, reference = decode_file(wav / f"{name}.wav"), decode_file(wav / "ref_pcm16.wav")
    first, middle, last = loaded.run([reference, short, reference], batch_size=3)
    assert text(middle) == []
    assert sum(len(e.samples()) for e in middle if isinstance(e, Enhanced)) == len(short.samples)
    assert text(first) == text(last) == text(loaded.run([reference])[0])


@pytest.mark.parametrize("name", ["mono_48k", "mono_8k", "stereo_left_only"])
def test_other_rates_and_channels_give_the_segments_of_the_reference(engine: Engine, wav: Path, name: str) -> None:
    reference, other = decode_file(wav / "ref_pcm16.wav"), decode_file(wav / f"{name}.wav")
    assert abs(other.duration_s - 2.889) <= 0.01
    ends = []
    for audio in (reference, other):
        (events,) = engine("segment").run([audio])
        (end,) = [event for event in events if isinstance(event, SpeechEnd)]
        ends.append((end.start_samples / audio.sample_rate_hz, end.end_samples / audio.sample_rate_hz))
    assert ends[1] == pytest.approx(ends[0], abs=0.1)


def test_a_long_silence_costs_no_memory(engine: Engine) -> None:
    loaded = engine()
    state, sizes = loaded.start(), []
    for _ in range(20):
        state, _ = loaded.step(state, np.zeros(80_000, np.float32))
        sizes.append(len(loaded.freeze(state)))
    # What does not fill a block yet comes and goes; only the counts may grow by a byte or two.
    assert max(sizes[10:]) <= max(sizes[:10]) + 16
