"""Real speech through the real tiny.en, which `python -m training.import_whisper tiny.en` puts into the cache."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from model_runtime.card import USER_MODELS, load_card
from model_runtime.decode import decode_file
from model_runtime.devices import RouteConfig
from model_runtime.errors import AudioError
from model_runtime.graph import Graph
from model_runtime.whisper_config import WhisperConfig
from model_runtime.whisper_transcriber import Transcript, WhisperTranscriber

FOLDER = USER_MODELS / "whisper-tiny.en"
JFK = "And so my fellow Americans ask not what your country can do for you ask what you can do for your country."

if not (FOLDER / "card.yaml").is_file():
    pytest.skip(f"no model: {FOLDER} is made by python -m training.import_whisper tiny.en", allow_module_level=True)


@cache
def graphs(variant: str) -> tuple[Graph, ...]:
    card, route = load_card(str(FOLDER)), RouteConfig(variants=(variant,), threads=2)
    return tuple(Graph.load(card.paths(graph.role), graph, card.signature, route) for graph in card.graphs)


def transcriber(variant: str = "float32", **config: object) -> WhisperTranscriber:
    return WhisperTranscriber(load_card(str(FOLDER)), graphs(variant), WhisperConfig(**config))


@pytest.fixture(scope="module")
def clip(shared: Path) -> Callable[[str], np.ndarray]:
    return lambda name: decode_file(shared / "data" / "speech" / f"{name}.wav").samples


def spoken(text: str) -> list[str]:
    return ["".join(c for c in word if c.isalnum()) for word in text.lower().replace("-", " ").split()]


@pytest.fixture(scope="module")
def jfk(clip: Callable[[str], np.ndarray]) -> Transcript:
    return transcriber().transcribe([clip("jfk_16k")])[0]


def test_real_speech_becomes_its_text(jfk: Transcript) -> None:
    assert spoken(jfk.text) == spoken(JFK)
    assert (jfk.language, jfk.temperature) == ("en", 0.0)


def test_words_make_the_text_and_lie_in_order_within_the_clip(jfk: Transcript) -> None:
    assert " ".join(word.text for word in jfk.words) == jfk.text
    times = [time for word in jfk.words for time in (word.start_ms, word.end_ms)]
    assert times == sorted(times)
    assert times[0] >= 0 and times[-1] <= 11_000
    assert all(0 < word.confidence <= 1 for word in jfk.words)


def test_words_lie_where_they_are_said(jfk: Transcript) -> None:
    """The pauses of the recording: heard by ear and seen in its energy, to a quarter of a second."""
    starts = {word.text.strip(","): word.start_ms for word in jfk.words}
    for text, start_ms in (("ask", 8_100), ("not", 4_000), ("country.", 9_900)):
        assert starts[text] == pytest.approx(start_ms, abs=400)


@pytest.mark.parametrize("variant", ["float32", "dynamic"])
def test_a_clip_does_not_depend_on_its_neighbours(clip: Callable[[str], np.ndarray], variant: str) -> None:
    model = transcriber(variant)
    names = ("jfk_16k", "goforward", "cards/005")
    clips = [clip(name) for name in names]
    together = model.transcribe([*clips, np.zeros(0, np.float32), clips[0][:9_000]])
    assert [model.transcribe([one])[0] for one in clips] == together[:3]


def test_a_beam_does_not_depend_on_neighbours_either(clip: Callable[[str], np.ndarray]) -> None:
    model = transcriber("dynamic", beam_size=3)
    clips = [clip("goforward"), clip("cards/001")]
    assert [model.transcribe([one])[0] for one in clips] == model.transcribe(clips)


def test_drawn_transcripts_are_the_same_each_time(clip: Callable[[str], np.ndarray]) -> None:
    model = transcriber("dynamic", temperatures=(0.8,), best_of=2)
    clips = [clip("goforward"), clip("cards/001")]
    first = model.transcribe(clips)
    assert first == model.transcribe(clips)
    assert first[::-1] == model.transcribe(clips[::-1])
    assert [one.temperature for one in first] == [0.8, 0.8]


def test_no_samples_are_no_text() -> None:
    assert transcriber("dynamic").transcribe([np.zeros(0, np.float32)]) == [Transcript("", (), "en", 1.0, 0.0, 0.0)]


@pytest.mark.parametrize("samples", [1, 200, 16_000])
def test_silence_is_never_a_loop(samples: int) -> None:
    (found,) = transcriber("dynamic").transcribe([np.zeros(samples, np.float32)])
    assert len(found.text.split()) <= 3


def test_a_clip_longer_than_the_window_is_refused() -> None:
    with pytest.raises(AudioError, match=r"at most 480000 samples \(30 s\), clip 0 has 480001"):
        transcriber("dynamic").transcribe([np.zeros(480_001, np.float32)])


def test_text_alone_costs_no_words(clip: Callable[[str], np.ndarray]) -> None:
    (found,) = transcriber("dynamic", word_times=False).transcribe([clip("goforward")])
    assert spoken(found.text) == ["go", "forward", "10", "meters"]
    assert found.words == ()
