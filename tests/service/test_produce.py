"""How recordings are cut into records; a real broker is in tests/streaming."""

from pathlib import Path

import numpy as np
import pytest

from model_runtime.audio import Audio
from model_runtime.decode import decode_pcm
from service.produce import Recording, cut, main, session_names
from service.wire import AudioDefaults, decode_headers

RECORDING = Recording("s", Audio(np.linspace(-0.5, 0.5, 2_500, dtype=np.float32), 8_000))


@pytest.mark.parametrize("encoding", ["LINEAR16", "FLOAT32", "MULAW", "ALAW"])
def test_the_records_hold_all_samples_in_every_coding(encoding: str) -> None:
    payload = b"".join(piece.payload for piece in cut(RECORDING, 100, encoding, 1.0))
    samples = decode_pcm(payload, encoding, 1, 8_000)
    assert len(samples) == 2_500
    assert np.abs(samples - RECORDING.audio.samples).max() < (0.02 if "LAW" in encoding else 0.0001)


def test_records_are_numbered_and_the_last_one_ends_the_stream() -> None:
    headers = [decode_headers(piece.headers, AudioDefaults()) for piece in cut(RECORDING, 100, "LINEAR16", 1.0)]
    assert [header.sequence for header in headers] == [0, 1, 2, 3]
    assert [header.end_of_stream for header in headers] == [False, False, False, True]
    assert {(header.encoding, header.sample_rate_hz, header.channels) for header in headers} == {("LINEAR16", 8000, 1)}


def test_further_headers_stand_on_every_record() -> None:
    extra = [("tentative_end_ms", b"300")]
    assert all(piece.headers[-1] == extra[0] for piece in cut(RECORDING, 100, "LINEAR16", 1.0, extra))


def test_a_further_header_without_a_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["a.wav", "--header", "tentative_end_ms"])
    assert ended.value.code == 2
    assert "--header must be NAME=VALUE, got ['tentative_end_ms']" in capsys.readouterr().err


def test_a_record_is_due_when_its_last_sample_has_been_captured() -> None:
    pieces = list(cut(RECORDING, 100, "LINEAR16", 1.0))
    assert [piece.captured_ms for piece in pieces] == [0, 100, 200, 300]
    assert [piece.due_ms for piece in pieces] == [100, 200, 300, 312.5]


def test_twice_as_fast_is_due_in_half_the_time() -> None:
    pieces = list(cut(RECORDING, 100, "LINEAR16", 2.0))
    assert [(piece.captured_ms, piece.due_ms) for piece in pieces[:2]] == [(0, 50), (50, 100)]


def test_at_once_the_recording_has_just_ended() -> None:
    pieces = list(cut(RECORDING, 100, "LINEAR16", 0))
    assert [piece.captured_ms for piece in pieces] == [-312.5, -212.5, -112.5, -12.5]
    assert {piece.due_ms for piece in pieces} == {0}


def test_an_empty_recording_is_one_record_that_ends_the_stream() -> None:
    (piece,) = cut(Recording("s", Audio(np.zeros(0, np.float32), 16_000)), 100, "LINEAR16", 1.0)
    assert piece.payload == b""
    assert decode_headers(piece.headers, AudioDefaults()).end_of_stream


def test_sessions_are_named_after_files_and_numbered_where_they_clash() -> None:
    paths = [Path("a/one.wav"), Path("b/one.flac"), Path("two.wav")]
    assert session_names(paths, None) == ["one", "one-2", "two"]
    assert session_names(paths, "car") == ["car", "car-2", "car-3"]


def test_a_file_that_is_no_audio_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.wav").write_text("<html>")
    assert main([str(tmp_path / "page.wav")]) == 2
    assert "page.wav" in capsys.readouterr().err
