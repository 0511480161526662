"""Long recordings through the job with its real models: both answers, memory, and a monologue without a pause."""

import json
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

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
# Where the sound of each word lies in its clip, from ms to ms: read off the spectrogram, no recogniser's times.
SOUNDS = {
    "countdown": "three 600 880, two 880 1150, one 1150 1470, zero 1470 2020, stop 3080 3600",
    "crane": "left 570 925, left 925 1340, right 2490 2970, stop 4070 4580",
    "door_code": "four 600 890, seven 890 1400, one 1400 1700, nine 2870 3280, two 3280 3700, yes 4850 5360",
    "lift": "up 570 880, stop 2070 2520, down 3710 4200, stop 5350 5810",
    "lights": "on 570 1110, off 2380 2880, on 4030 4650, no 5840 6430",
    "phone_number": "five 600 980, five 980 1375, five 1375 1900, oh 3100 3345, one 3345 3660, two 3660 3910, "
    "three 3910 4350",
}


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
def sounds(clips: list[np.ndarray]) -> list[tuple[str, np.ndarray]]:
    """Words by themselves, 120 of them: each is cut out of its clip where its sound begins and ends."""
    ramp = np.linspace(0, 1, 160, dtype=np.float32)
    words = []
    for name, clip in zip(NAMES, clips, strict=True):
        words.append(list[tuple[str, np.ndarray]]())
        for text, start_ms, end_ms in map(str.split, SOUNDS[name].split(", ")):
            sound = clip[16 * int(start_ms) : 16 * int(end_ms)].copy()
            sound[:160] *= ramp
            sound[-160:] *= ramp[::-1]
            words[-1].append((text, sound))
    # One word of each clip in turn, the last clip first: no word comes twice running. Where one does, a recogniser that
    # hears it twice may still be wrong about where it begins again.
    return [word for turn in zip_longest(*reversed(words)) for word in turn if word is not None] * 4


@pytest.fixture(scope="module")
def monologue(sounds: list[tuple[str, np.ndarray]]) -> np.ndarray:
    """Fifty seconds of words without any pause."""
    return np.concatenate([sound for _, sound in sounds])


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
    tmp_path: Path, batch: SpeechEngine, sounds: list[tuple[str, np.ndarray]], monologue: np.ndarray
) -> None:
    """It has each word that was put into it, once and in its place, just as one of the pieces that overlap has it."""
    path = _write(tmp_path / "m.wav", monologue)
    # Clean audio: its vad hears no pause even before an "f", so every cut is one with an overlap.
    (row,) = _run(path, tmp_path / "out", "answer=accurate", "enhanced.write=true")
    samples = decode_file(path).samples
    pieces = _pieces(samples)
    assert pieces == [(0, 20_000), (16_000, 36_000), (32_000, len(samples) // 16)]
    assert row["segments"] == [{"start_ms": 0, "end_ms": len(samples) // 16}]
    words = _words(row)
    assert [text for text, _, _ in words] == [text for text, _ in sounds]
    assert set(words) <= {word for start, end in pieces for word in _heard(batch, samples, start, end)}
    ends_ms = np.cumsum([len(sound) // 16 for _, sound in sounds])
    middles_ms = [(start + end) / 2 for _, start, end in words]
    # In which sound each word's middle lies: the first in the first, and so on.
    assert np.searchsorted(ends_ms, middles_ms, side="right").tolist() == list(range(len(sounds)))


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
