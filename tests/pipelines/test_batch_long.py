"""Long recordings through the job with its real models: both answers, memory, and a monologue without a pause."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from msgspec.structs import replace

from model_runtime import Audio, Enhanced, Event, Final, SpeechEnd, SpeechEngine, Utterance, UtteranceAudio
from model_runtime.calls import CallTally
from model_runtime.decode import decode_file, encode_linear16
from model_runtime.devices import RouteConfig
from model_runtime.recipe import load_recipe
from pipelines.batch import main
from pipelines.run_record import read_record
from transforms.cut_points import cut_points
from transforms.records import Segment
from transforms.scout import Scout, piece_length

# Minutes of audio through real models, on a machine that may be busy.
pytestmark = pytest.mark.timeout(1200)

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
RATE_HZ = 16_000
NAMES = ["countdown", "crane", "door_code", "lift", "lights", "phone_number"]
# Between two clips there is more silence than ends an utterance.
PAUSE = np.zeros(RATE_HZ, np.float32)
ROUNDS = 4

Timed = tuple[str, int, int]


@pytest.fixture(scope="module")
def clips() -> list[np.ndarray]:
    return [decode_file(SAMPLES / f"{name}.wav").samples for name in NAMES]


@pytest.fixture(scope="module")
def batch() -> SpeechEngine:
    return SpeechEngine.load("batch")


@pytest.fixture(scope="module")
def talk(clips: list[np.ndarray]) -> np.ndarray:
    """Nearly three minutes with pauses."""
    return np.concatenate([part for clip in clips * ROUNDS for part in (clip, PAUSE)])


@pytest.fixture(scope="module")
def monologue(batch: SpeechEngine, clips: list[np.ndarray]) -> np.ndarray:
    """Forty seconds of words without any pause: each is cut out of its clip, and they stand close together."""
    ramp = np.linspace(0, 1, 160, dtype=np.float32)
    words = []
    for clip in clips * 2:
        for word in (word for event in batch.run([clip])[0] if isinstance(event, Final) for word in event.words):
            sound = clip[16 * max(0, word.start_ms - 40) : 16 * (word.end_ms + 40)].copy()
            sound[:160] *= ramp
            sound[-160:] *= ramp[::-1]
            words.append(sound)
    return np.concatenate(words * 2)


def _run(path: Path, output: Path, *settings: str) -> list[dict[str, Any]]:
    every = (f"input={path}", f"output={output}", "results.formats=[jsonl]", "report.write=false", *settings)
    assert main([part for setting in every for part in ("--set", setting)]) == 0
    return [json.loads(line) for line in (output / "results.jsonl").read_text().splitlines()]


def _write(path: Path, samples: np.ndarray) -> Path:
    soundfile.write(path, np.frombuffer(encode_linear16(samples), "<i2"), RATE_HZ, subtype="PCM_16")
    return path


def _stepped(engine: SpeechEngine, samples: np.ndarray) -> list[Event]:
    """What a live session says: chunks of 100 ms, frozen and thawed now and then."""
    state, events = engine.start(RATE_HZ), []
    for at in range(0, len(samples), 1600):
        state, more = engine.step(state, samples[at : at + 1600])
        if at % 160_000 == 0:
            state = engine.thaw(engine.freeze(state))
        events += more
    return events + engine.finish(state)[1]


def _words(row: dict[str, Any]) -> list[Timed]:
    return [(word["text"], word["start_ms"], word["end_ms"]) for word in row["words"]]


def test_streaming_answer_is_what_a_live_session_says(tmp_path: Path, batch: SpeechEngine, talk: np.ndarray) -> None:
    """Every word, time and confidence, every segment, and every sample of the clean audio."""
    samples = decode_file(_write(tmp_path / "talk.wav", talk)).samples
    (row,) = _run(tmp_path / "talk.wav", tmp_path / "out", "enhanced.write=true")
    events = _stepped(batch, samples)
    finals = [event for event in events if isinstance(event, Final)]
    assert row["answer"] == "streaming"
    assert row["duration"] == round(len(samples) / RATE_HZ, 6)
    assert row["pred_text"] == " ".join(final.text for final in finals)
    assert row["words"] == [word._asdict() for final in finals for word in final.words]
    ends = [event for event in events if isinstance(event, SpeechEnd)]
    assert row["segments"] == [{"start_ms": end.start_samples // 16, "end_ms": end.end_samples // 16} for end in ends]
    clean = soundfile.read(tmp_path / "out" / row["enhanced_filepath"], dtype="int16")[0]
    heard = b"".join(event.pcm for event in events if isinstance(event, Enhanced))
    assert clean.tobytes() == encode_linear16(np.frombuffer(heard, "<f4"))


def test_accurate_answer_has_every_word_once_in_order_and_in_its_time(
    tmp_path: Path, batch: SpeechEngine, clips: list[np.ndarray], talk: np.ndarray
) -> None:
    """A recording beside a clip: its words are those of each piece, near those of the clips in it."""
    folder = tmp_path / "in"
    folder.mkdir()
    _write(folder / "talk.wav", talk)
    _write(folder / "clip.wav", clips[0])
    clip, row = _run(folder, tmp_path / "out", "answer=accurate", "enhanced.write=true")
    assert (clip["answer"], row["answer"], row["error"]) == ("accurate", "accurate", "")
    assert _words(clip) == _heard(batch, clips[0])
    samples = decode_file(folder / "talk.wav").samples
    pieces = _pieces(samples)
    assert len(pieces) >= 9 and all(10_000 <= end - start <= 20_000 for start, end in pieces)
    assert _words(row) == [word for start, end in pieces for word in _heard(batch, samples, start, end)]
    starts = np.cumsum([0] + [(len(each) + len(PAUSE)) // 16 for each in clips * ROUNDS])
    expected = [
        (text, (start + end) // 2 + shift)
        for shift, said in zip(starts, [_heard(batch, each) for each in clips] * ROUNDS, strict=False)
        for text, start, end in said
    ]
    assert row["pred_text"] == " ".join(text for text, _ in expected)
    middles = np.array([(start + end) // 2 for _, start, end in _words(row)])
    assert np.abs(middles - np.array([middle for _, middle in expected])).max() <= 500
    assert row["duration"] == round(len(talk) / RATE_HZ, 6)
    assert soundfile.info(tmp_path / "out" / row["enhanced_filepath"]).frames == len(talk)
    record = read_record(tmp_path / "out")
    assert record is not None and (record.rows, record.results) == (2, 2)


def _pieces(samples: np.ndarray) -> list[tuple[int, int]]:
    """Where the recipe `batch` with clean audio cuts, in ms."""
    found = Scout(load_recipe("batch"), RouteConfig(), clean=True).run([Audio(samples, RATE_HZ)], 1, CallTally())[0]
    ends = [event for event in found if isinstance(event, SpeechEnd)]
    speech = [Segment(round(end.start_samples / 16), round(end.end_samples / 16)) for end in ends]
    return list(cut_points(speech, round(len(samples) / 16), piece_length(load_recipe("batch"))))


def _heard(engine: SpeechEngine, samples: np.ndarray, start_ms: int = 0, end_ms: int = 10**9) -> list[Timed]:
    """The words of a part of a recording that is heard by itself, in the recording's time."""
    (events,) = engine.run([Audio(samples[16 * start_ms : 16 * end_ms], RATE_HZ)])
    words = [word for event in events if isinstance(event, Final) for word in event.words]
    return [(word.text, start_ms + word.start_ms, start_ms + word.end_ms) for word in words]


def test_accurate_answer_loses_and_doubles_no_word_of_a_monologue(
    tmp_path: Path, batch: SpeechEngine, monologue: np.ndarray
) -> None:
    """It is what the recogniser says of all of it at once, though no piece is longer than 20 s."""
    (row,) = _run(_write(tmp_path / "m.wav", monologue), tmp_path / "out", "answer=accurate")
    recipe = load_recipe("batch")
    whole = SpeechEngine.load(replace(recipe, endpoint=replace(recipe.endpoint, max_utterance_ms=60_000)))
    right = _heard(whole, monologue)
    assert len(monologue) > 35 * RATE_HZ and len(right) > 80
    assert row["segments"] == [{"start_ms": 0, "end_ms": len(monologue) // 16}]
    assert [text for text, _, _ in _words(row)] == [text for text, _, _ in right]
    apart_ms = np.abs(np.array([times for _, *times in _words(row)]) - np.array([times for _, *times in right]))
    # A recogniser that hears other neighbours may move an edge of a word that it hardly hears.
    assert np.quantile(apart_ms, 0.95) <= 40
    assert apart_ms.max() <= 500


WHISPER = f"""
name: whisper
vad: {{model: unison-vad}}
asr: {{model: {Path(__file__).resolve().parents[1] / "model_runtime" / "whisper_toy"}}}
endpoint: {{silence_after_speech_ms: 300, max_utterance_ms: 5000}}
"""


@pytest.mark.parametrize("name", ["batch", "whisper"])
def test_monologue_is_cut_by_length_as_a_live_session_cuts_it(tmp_path: Path, monologue: np.ndarray, name: str) -> None:
    """The same utterances with the same words, in the job and in a session that leaves its finals to another place."""
    (tmp_path / "whisper.yaml").write_text(WHISPER)
    recipe = name if name == "batch" else str(tmp_path / "whisper.yaml")
    path = _write(tmp_path / "m.wav", np.concatenate((monologue, monologue)))
    variants = ("float32", "float16")
    (row,) = _run(path, tmp_path / "out", f"recipe={recipe}", f"route.variants={json.dumps(variants)}")
    live = SpeechEngine.load(recipe, RouteConfig(variants=variants), defer=True)
    events = _stepped(live, decode_file(path).samples)
    spoken = [event for event in events if isinstance(event, Utterance)]
    audio = [
        b"".join(e.pcm for e in events if isinstance(e, UtteranceAudio) and e.utterance == each.utterance)
        for each in spoken
    ]
    finals = live.transcribe(list(zip(spoken, audio, strict=True)), batch_size=1)
    reasons = [event.reason for event in events if isinstance(event, SpeechEnd)]
    assert reasons[:-1] == ["length"] * (len(reasons) - 1) and len(reasons) >= 4
    assert row["segments"] == [
        {"start_ms": each.start_samples // 16, "end_ms": each.end_samples // 16} for each in spoken
    ]
    assert row["words"] == [word._asdict() for final in finals for word in final.words]
    assert row["pred_text"] == " ".join(final.text for final in finals if final.text)
