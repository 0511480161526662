"""The promise: streaming gives what batch gives, whatever the chunking, byte for byte."""

from collections.abc import Callable, Iterable
from itertools import pairwise, takewhile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model_runtime import (
    Audio,
    ConfigError,
    Enhanced,
    Event,
    Final,
    Partial,
    Recipe,
    RouteConfig,
    SpeechBegin,
    SpeechEngine,
    SpeechError,
    Utterance,
    UtteranceAudio,
)
from model_runtime.recipe import AsrConfig, DenoiseConfig, EndpointConfig, VadConfig, load_recipe
from model_runtime.resample import Resampler

DENOISE = DenoiseConfig("unison-denoise")
VAD = VadConfig("unison-vad")
TOY_WHISPER = Path(__file__).parent / "whisper_toy"
RECIPES: dict[str, str | Recipe] = {
    "streaming": "streaming",
    "batch": "batch",
    "enhance": "enhance",
    "segment": "segment",
    "asr alone": Recipe("asr-alone", asr=AsrConfig("unison-asr-stream", decoder="greedy")),
    "batch asr alone": Recipe(
        "batch-alone", asr=AsrConfig("unison-asr-batch"), endpoint=EndpointConfig(5000, 800, 2000)
    ),
    "all enhanced": Recipe("enhanced", DENOISE, VAD, AsrConfig("unison-asr-stream")),
    "transducer": Recipe("transducer", None, VAD, AsrConfig("unison-asr-transducer")),
    "greedy transducer": Recipe("greedy", None, VAD, AsrConfig("unison-asr-transducer", decoder="greedy")),
    "whisper": Recipe("whisper", None, VAD, AsrConfig(str(TOY_WHISPER)), EndpointConfig(5000, 300, 5000)),
    "batch that agrees": Recipe(
        "agreeing", None, VAD, AsrConfig("unison-asr-batch", agreement_interval_ms=400), EndpointConfig(5000, 400, 9000)
    ),
    "whisper that agrees": Recipe(
        "agreeing-whisper",
        None,
        VAD,
        AsrConfig(str(TOY_WHISPER), agreement_interval_ms=200),
        EndpointConfig(5000, 300, 5000),
    ),
    "cut by length": Recipe("cut", None, VAD, AsrConfig("unison-asr-stream"), EndpointConfig(5000, 400, 1000)),
    "tentative": Recipe("tentative", None, VAD, AsrConfig("unison-asr-stream"), EndpointConfig(tentative_end_ms=150)),
    "tentative segment": Recipe("segment", None, VAD, None, EndpointConfig(tentative_end_ms=150)),
    "tentative asr alone": Recipe(
        "alone", asr=AsrConfig("unison-asr-stream"), endpoint=EndpointConfig(tentative_end_ms=300)
    ),
}
LOADS = [(name, variant, threads) for name in RECIPES for variant, threads in (("float32", 1), ("int8", 1))]
LOADS += [("streaming", "float32", 2), ("streaming", "int8", 2), ("batch", "float32", 2), ("batch", "int8", 2)]

# Sizes that have broken such systems: empty, single samples, odd, primes, a hop more or less, and large.
CHUNKS = st.lists(st.sampled_from([0, 1, 2, 3, 127, 255, 256, 257, 1279, 1280, 1600, 1607, 4801, 20_000]), max_size=14)


def streamed(
    engine: SpeechEngine,
    audio: np.ndarray,
    sizes: Iterable[int],
    rate_hz: int | None = None,
    freeze: bool = True,
) -> list[Event]:
    """Events of audio in chunks of these sizes (the rest at once), frozen and thawed between chunks."""
    state, events, at = engine.start(rate_hz), [], 0
    for size in [*sizes, len(audio)]:
        state, more = engine.step(state, audio[at : at + size])
        if freeze:
            state = engine.thaw(engine.freeze(state))
        events += more
        at += size
    return events + engine.finish(state)[1]


@pytest.mark.parametrize(("name", "variant", "threads"), LOADS, ids=lambda value: str(value))
def test_any_chunking_gives_the_events_of_the_whole_clip(
    engine: Callable[..., SpeechEngine], digits: np.ndarray, name: str, variant: str, threads: int
) -> None:
    loaded = engine(RECIPES[name], variant, threads)
    audio = digits[:48_000]
    (whole,) = loaded.run([audio])
    assert whole

    @given(sizes=CHUNKS)
    @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
    def check(sizes: list[int]) -> None:
        assert streamed(loaded, audio, sizes) == whole

    check()


@pytest.mark.parametrize("name", RECIPES)
def test_single_samples_give_the_events_of_the_whole_clip(
    engine: Callable[..., SpeechEngine], digits: np.ndarray, name: str
) -> None:
    loaded = engine(RECIPES[name])
    audio = digits[:24_000]
    assert streamed(loaded, audio, [1] * 3000) == loaded.run([audio])[0]


@pytest.mark.parametrize("rate_hz", [8_000, 44_100, 48_000])
def test_any_chunking_gives_the_same_at_other_rates(engine: Callable[..., SpeechEngine], rate_hz: int) -> None:
    loaded = engine()
    time_s = np.arange(rate_hz * 2) / rate_hz
    audio = (0.3 * np.sin(2 * np.pi * 220 * time_s) * (np.sin(2 * np.pi * 3 * time_s) > 0)).astype(np.float32)
    (whole,) = loaded.run([Audio(audio, rate_hz)])
    assert streamed(loaded, audio, [rate_hz // 10 + 1] * 12, rate_hz) == whole


@pytest.mark.parametrize("variant", ["float32", "int8"])
@pytest.mark.parametrize("name", RECIPES)
def test_batches_give_the_text_and_times_of_single_clips(
    engine: Callable[..., SpeechEngine], samples: list[Audio], name: str, variant: str
) -> None:
    loaded = engine(RECIPES[name], variant)
    clips = [
        *samples,
        Audio(samples[0].samples[:9000], samples[0].sample_rate_hz),
        Audio(np.zeros(0, np.float32), 16_000),
    ]
    together = loaded.run(clips, batch_size=5)
    for events, clip in zip(together, clips, strict=True):
        (alone,) = loaded.run([clip])
        assert [_rounded(e) for e in events if not isinstance(e, Enhanced)] == [
            _rounded(e) for e in alone if not isinstance(e, Enhanced)
        ]
        np.testing.assert_allclose(enhanced(events), enhanced(alone), atol=1e-5 if variant == "float32" else 1e-3)


def _rounded(event: Event) -> Event:
    """Confidences of batches differ in the last bits; text and times do not."""
    if not isinstance(event, Final):
        return event
    words = tuple(word._replace(confidence=round(word.confidence, 2)) for word in event.words)
    return event._replace(confidence=round(event.confidence, 2), words=words)


def enhanced(events: list[Event]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.float32), *(e.samples() for e in events if isinstance(e, Enhanced))])


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("samples", [0, 1, 100, 12_345])
def test_enhanced_audio_has_exactly_the_samples_that_came_in(
    engine: Callable[..., SpeechEngine], rate_hz: int, samples: int
) -> None:
    audio = np.random.default_rng(1).uniform(-0.1, 0.1, samples).astype(np.float32)
    events = streamed(engine("enhance"), audio, [50, 7000], rate_hz)
    positions = [(e.start_samples, len(e.samples())) for e in events if isinstance(e, Enhanced)]
    assert sum(length for _, length in positions) == samples
    assert all(a + n == b for (a, n), (b, _) in pairwise(positions))


def test_partials_grow_by_revision_and_the_final_comes_after_them(
    engine: Callable[..., SpeechEngine], digits: np.ndarray
) -> None:
    (events,) = engine().run([digits])
    for begin in [e for e in events if isinstance(e, SpeechBegin)]:
        partials = [e for e in events if isinstance(e, Partial) and e.utterance == begin.utterance]
        (final,) = [e for e in events if isinstance(e, Final) and e.utterance == begin.utterance]
        assert [p.revision for p in partials] == list(range(len(partials)))
        assert final.revision == len(partials)
        assert events.index(final) > max(events.index(p) for p in [*partials, begin])
        assert all((p.end_samples - p.start_samples) % 1280 == 0 for p in partials)


@pytest.mark.parametrize("asr", ["unison-asr-stream", "unison-asr-transducer"])
def test_what_two_looks_agree_on_stands_to_the_end(
    engine: Callable[..., SpeechEngine], samples: list[Audio], asr: str
) -> None:
    recipe = Recipe("looks", None, VAD, AsrConfig(asr, hears="original"))
    standing = 0
    for events in engine(recipe).run(samples):
        finals = {event.utterance: event.text for event in events if isinstance(event, Final)}
        for partial in [event for event in events if isinstance(event, Partial)]:
            assert partial.stability is not None
            stands = partial.text[: round(partial.stability * len(partial.text))]
            assert stands.split() == partial.text.split()[: len(stands.split())]
            assert finals[partial.utterance].startswith(stands)
            standing += len(stands.split())
    assert standing > 10


@pytest.mark.parametrize("quantised", ["float32", "dynamic_range"])
def test_third_party_models_run_from_their_cards_with_the_same_promise(
    engine: Callable[..., SpeechEngine], third_party: Path, shared: Path, quantised: str
) -> None:
    import soundfile

    audio, _ = soundfile.read(shared / "data/speech/jfk_16k.wav", dtype="float32")
    recipe = Recipe("other", DenoiseConfig(str(third_party / "dtln")), VadConfig(str(third_party / "silero-vad")))
    loaded = engine(recipe, quantised)
    audio = audio[:60_000]
    (whole,) = loaded.run([audio])
    assert streamed(loaded, audio, [1, 0, 777, 1600, 33, 20_000]) == whole
    begins = [e.start_samples for e in whole if isinstance(e, SpeechBegin)]
    assert begins == [832, 47_936]
    together = loaded.run([audio, audio[:20_000], audio], batch_size=3)
    assert together[0] == together[2] == whole


@pytest.mark.parametrize("rate_hz", [16_000, 44_100])
@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("batch", "float32"),
        ("batch", "int8"),
        ("whisper", "float16"),
        ("batch that agrees", "float32"),
        ("whisper that agrees", "float16"),
    ],
)
def test_an_engine_that_defers_gives_the_same_events_and_keeps_no_utterance(
    engine: Callable[..., SpeechEngine], samples: list[Audio], name: str, variant: str, rate_hz: int
) -> None:
    loaded, deferring = engine(RECIPES[name], variant), engine(RECIPES[name], variant, defer=True)
    audio = Resampler(samples[0].sample_rate_hz, rate_hz).run(samples[0].samples)
    (whole,) = loaded.run([Audio(audio, rate_hz)])
    deferred = streamed(deferring, audio, [1600] * 40, rate_hz)
    pieces: dict[int, bytes] = {}
    events: list[Event] = []
    for event in deferred:
        if isinstance(event, UtteranceAudio):
            pieces[event.utterance] = pieces.get(event.utterance, b"") + event.pcm
        elif isinstance(event, Utterance) and event.over:
            events += deferring.transcribe([(event, pieces[event.utterance])])
        elif isinstance(event, Utterance):
            # As if none had been asked for before.
            partial, _ = deferring.transcribe_so_far(event, pieces[event.utterance])
            said = [e for e in events if isinstance(e, Partial) and e.utterance == partial.utterance]
            events += [partial] if partial.text != (said[-1].text if said else "") else []
        else:
            events.append(event)
    assert any(isinstance(event, Final) for event in whole)
    assert any(isinstance(event, Partial) for event in whole) == ("agrees" in name)
    assert events == whole


@pytest.mark.parametrize("name", ["batch that agrees", "whisper that agrees"])
def test_finals_are_the_same_where_partials_are_left_out(
    engine: Callable[..., SpeechEngine], samples: list[Audio], name: str
) -> None:
    (events,) = engine(RECIPES[name]).run([samples[0]])
    (without,) = SpeechEngine.load(RECIPES[name], RouteConfig(variants=("float32", "float16")), agree=False).run(
        [samples[0]]
    )
    assert without == [event for event in events if not isinstance(event, Partial)]
    assert without != events


def test_partials_of_utterances_heard_whole_are_what_two_decodings_agree_on(
    engine: Callable[..., SpeechEngine], digits: np.ndarray
) -> None:
    (events,) = engine(RECIPES["batch that agrees"]).run([digits])
    first = next(event for event in events if isinstance(event, SpeechBegin))
    partials = [event for event in events if isinstance(event, Partial) and event.utterance == first.utterance]
    alone = engine(Recipe("alone", asr=AsrConfig("unison-asr-batch"), endpoint=EndpointConfig(9000, 9000, 9000)))
    heard, expected = [""], []
    for end in range(6400, 6400 * (partials[-1].revision + 2), 6400):
        (said,) = alone.run([digits[first.start_samples : first.start_samples + end]])
        heard.append(" ".join(event.text for event in said if isinstance(event, Final)))
        same = takewhile(lambda pair: pair[0] == pair[1], zip(heard[-2].split(), heard[-1].split(), strict=False))
        expected.append(" ".join(word for word, _ in same))
    said_at = [number for number, text in enumerate(expected) if text != (["", *expected][number])]
    assert [(p.revision, p.text) for p in partials] == [(number, expected[number]) for number in said_at]
    assert all(p.end_samples - p.start_samples == 6400 * (p.revision + 1) for p in partials)


def test_a_recipe_without_a_vad_has_no_partials_of_utterances_heard_whole(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text("{name: x, asr: {model: unison-asr-batch, agreement_interval_ms: 500}}")
    with pytest.raises(ConfigError, match="agreement_interval_ms needs a vad, got 500 without one"):
        load_recipe(path)


def test_the_memory_of_an_engine_that_defers_does_not_grow_with_an_utterance(
    engine: Callable[..., SpeechEngine], samples: list[Audio]
) -> None:
    recipe = Recipe("long", None, VAD, AsrConfig("unison-asr-batch"), EndpointConfig(5000, 60_000, 60_000))
    deferring = engine(recipe, defer=True)
    # A whole number of the vad's blocks, so that nothing is left over.
    audio, state, sizes = samples[0].samples[:12_800], deferring.start(), []
    for _ in range(10):
        state, _ = deferring.step(state, audio)
        sizes.append(len(deferring.freeze(state)))
    assert state.vad is not None
    assert state.vad.utterance is not None
    assert max(sizes[2:]) - min(sizes[2:]) <= 16  # wider numbers


def test_an_utterance_must_fit_into_the_window_of_whisper(engine: Callable[..., SpeechEngine]) -> None:
    recipe = Recipe("long", None, VAD, AsrConfig(str(TOY_WHISPER)), EndpointConfig(max_utterance_ms=30_000))
    with pytest.raises(ConfigError, match="max_utterance_ms must be at most 29000 for whisper_toy, got 30000"):
        engine(recipe)


def test_only_a_recogniser_that_hears_utterances_whole_can_be_asked_to_transcribe(
    engine: Callable[..., SpeechEngine],
) -> None:
    with pytest.raises(SpeechError, match="recipe streaming has no recogniser that hears utterances whole"):
        engine().transcribe([])
