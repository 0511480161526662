"""A session's audio in blocks, and as one file."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from transforms import session_recording
from transforms.session_recording import cut_blocks, drop_spool, spool_blocks, write_recording
from transforms.stream_records import SessionAudio

EVENT_MS = 1_700_000_040_000
SAMPLES = np.random.default_rng(3).integers(-30_000, 30_000, 1_050).astype("<i2")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_recording, "BLOCK_SAMPLES", 100)


def pieces(first: int, *borders: int) -> list[SessionAudio]:
    ends = [*borders, len(SAMPLES)]
    return [
        SessionAudio("s/../5", 8_000, begin, SAMPLES[begin:end].tobytes())
        for begin, end in zip([first, *borders], ends, strict=True)
    ]


@pytest.mark.parametrize("form", ["flac", "wav"])
def test_a_recording_holds_every_sample_whatever_the_turns(form: str, tmp_path: Path) -> None:
    blocks, rest = cut_blocks(pieces(0, 30, 31, 500)[::-1], 0)
    assert [len(block) for block in blocks] == [200] * 10
    spool_blocks(tmp_path, "s/../5", 0, blocks)
    name = write_recording(tmp_path, form, EVENT_MS, 10, rest)
    assert name.startswith("audio/2023-11-14/s_.._5-") and name.endswith(f".{form}")
    samples, rate_hz = soundfile.read(tmp_path / name, dtype="int16")
    assert rate_hz == 8_000
    np.testing.assert_array_equal(samples, SAMPLES)
    assert [path.name for path in (tmp_path / ".spool").iterdir()] == []


def test_blocks_of_another_attempt_with_other_turns_have_the_same_bytes(tmp_path: Path) -> None:
    first, rest = cut_blocks(pieces(0, 250), 0)
    later, _ = cut_blocks([rest], 10)
    again = cut_blocks(pieces(200, 777), 2)[0]
    assert (later, again) == ([], first[2:])


def test_a_replay_of_the_end_leaves_the_recording_of_the_first_time(tmp_path: Path) -> None:
    blocks, rest = cut_blocks(pieces(0), 0)
    spool_blocks(tmp_path, "s/../5", 0, blocks)
    name = write_recording(tmp_path, "wav", EVENT_MS, 10, rest)
    before = (tmp_path / name).read_bytes()
    assert write_recording(tmp_path, "wav", EVENT_MS, 10, rest) == name
    assert (tmp_path / name).read_bytes() == before


def test_what_never_ended_leaves_nothing(tmp_path: Path) -> None:
    spool_blocks(tmp_path, "s/../5", 0, cut_blocks(pieces(0), 0)[0])
    drop_spool(tmp_path, "s/../5")
    assert list((tmp_path / ".spool").iterdir()) == []


def test_what_is_too_long_for_a_wav_is_an_rf64_of_the_same_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_recording, "_WAV_BYTES", 2_000)
    blocks, rest = cut_blocks(pieces(0), 0)
    spool_blocks(tmp_path, "s/../5", 0, blocks)
    path = tmp_path / write_recording(tmp_path, "wav", EVENT_MS, 10, rest)
    assert path.read_bytes().startswith(b"RF64")
    np.testing.assert_array_equal(soundfile.read(path, dtype="int16")[0], SAMPLES)
