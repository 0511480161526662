"""The committed sample recordings are what their manifest says."""

import json
from pathlib import Path

import pytest
import soundfile

from training.words import WORDS

FOLDER = Path(__file__).resolve().parents[2] / "samples"
LINES = [json.loads(line) for line in (FOLDER / "manifest.jsonl").read_text().splitlines()]
SENTENCES = [json.loads(line) for line in (FOLDER / "sentences" / "manifest.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["audio_filepath"])
def test_manifest_gives_duration_and_known_words(line: dict[str, str | float]) -> None:
    info = soundfile.info(FOLDER / str(line["audio_filepath"]))
    assert info.duration == pytest.approx(line["duration"], abs=1e-3)
    assert set(str(line["text"]).split()) <= set(WORDS)


@pytest.mark.parametrize("line", SENTENCES, ids=lambda line: line["audio_filepath"])
def test_sentences_are_listed_with_their_duration(line: dict[str, str | float]) -> None:
    info = soundfile.info(FOLDER / "sentences" / str(line["audio_filepath"]))
    assert (info.samplerate, info.channels) == (16000, 1)
    assert info.duration == pytest.approx(line["duration"], abs=1e-3)


def test_all_recordings_are_listed_and_small() -> None:
    files = [path for path in FOLDER.iterdir() if path.suffix in (".wav", ".flac")]
    assert sorted(path.name for path in files) == sorted(line["audio_filepath"] for line in LINES)
    assert sum(path.stat().st_size for path in files) < 3_000_000


def test_there_are_recordings_of_8_and_48_khz_in_stereo() -> None:
    shapes = {(i.samplerate, i.channels) for i in (soundfile.info(FOLDER / x["audio_filepath"]) for x in LINES)}
    assert {(16000, 1), (8000, 1), (48000, 2)} == shapes
