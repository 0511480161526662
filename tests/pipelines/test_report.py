"""The report of a run: one page that holds all of itself, with the right figures in the right places."""

import base64
import json
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from pipelines.report import ReportConfig, main, write_report
from pipelines.report_recordings import pick_rows
from pipelines.run_record import new_record, write_record
from pipelines.spectrogram import HEIGHT, spectrogram_db, to_png
from transforms.part_file import FOLDER, FinishedRow, write_part
from transforms.reading_config import ReadingConfig

RATE_HZ = 16_000


def _line(number: int, text: str = "", error: str = "", **fields: Any) -> bytes:
    words = [{"text": text, "start_ms": 500, "end_ms": 1000, "confidence": 0.75}] if text else []
    row = {"source_file": "/calls/m.jsonl", "source_row": number, "audio_filepath": f"{number}.wav", "pred_text": text}
    answer = {"words": words, "segments": [{"start_ms": 250, "end_ms": 2000}] if text else [], "duration": 2.0}
    error_class = "AudioError" if error else ""
    bad = {"error": error, "error_class": error_class, "error_retriable": False, "device": "cpu", "model": "m"}
    return json.dumps({**row, **answer, **bad, **fields}).encode()


def _png(data: bytes) -> tuple[int, int, np.ndarray]:
    """Width, height and colour numbers [height, width] of a PNG with a palette and no filters."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        at += 12 + size
    width, height, depth, colours, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, colours, len(chunks[b"PLTE"])) == (8, 3, 768)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any()
    return width, height, rows[:, 1:]


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """A job's output with one recording, that has clean audio, and three bad rows for two reasons."""
    time = np.arange(2 * RATE_HZ) / RATE_HZ
    for name in ("1.wav", "clean.wav"):
        soundfile.write(tmp_path / name, 0.5 * np.sin(2 * np.pi * 1000 * time), RATE_HZ)
    good = _line(1, "a<b>&", source_file=str(tmp_path / "m.jsonl"), enhanced_filepath="clean.wav")
    lines = [good, _line(2, error="/calls/2.wav: <html>"), _line(3, error="gone"), _line(4, error="/x/4.wav: <html>")]
    rows = [FinishedRow(f"{number:032x}", line) for number, line in enumerate(lines)]
    record = new_record("r", ReadingConfig())
    record.rows_in = record.rows = 4
    record.results, record.errors, record.reasons = 1, 3, write_part(tmp_path / FOLDER, "p", rows).reasons
    write_record(record, tmp_path)
    return tmp_path


def test_page_holds_all_of_itself_and_no_markup_of_others(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(output)]) == 0
    assert capsys.readouterr().out == f"{output / 'report.html'}\n"
    text = (output / "report.html").read_text(encoding="utf-8")
    assert "a&lt;b&gt;&amp;" in text and "a<b>" not in text and "<html>" not in text
    sources = re.findall(r'(?:src|data-audio)="([^"]{11})', text)
    assert sources == ["data:image/", "data:audio/"] * 2
    assert "http" not in re.sub(r"base64,[^\"]*", "", text)


def test_words_and_segments_stand_at_their_time(output: Path) -> None:
    main([str(output)])
    text = (output / "report.html").read_text(encoding="utf-8")
    assert 'class="word" style="left:25.000%;width:25.000%;--c:0.75"' in text
    assert 'class="segment" style="left:12.500%;width:87.500%"' in text
    assert 'data-ms="2000"' in text


def test_reasons_have_their_counts_and_link_to_their_rows(output: Path) -> None:
    main([str(output)])
    text = (output / "report.html").read_text(encoding="utf-8")
    found = re.findall(r'class="count">(\d+)</span>.*?<ul>(.*?)</ul>', text, re.DOTALL)
    links = [(count, re.findall(r'<a href="([^"]*)">([^<]*)</a>', rows)) for count, rows in found]
    name = "/calls/m.jsonl · row"
    assert links == [
        ("2", [("file:///calls/2.wav", f"{name} 2"), ("file:///calls/4.wav", f"{name} 4")]),
        ("1", [("file:///calls/3.wav", f"{name} 3")]),
    ]


def test_sound_is_there_before_and_after_as_picture_and_to_listen_to(output: Path) -> None:
    main([str(output)])
    text = (output / "report.html").read_text(encoding="utf-8")
    pictures = [base64.b64decode(data) for data in re.findall(r'src="data:image/png;base64,([^"]*)"', text)]
    assert [_png(picture)[1] for picture in pictures] == [HEIGHT, HEIGHT]
    (first, _) = re.findall(r'data-audio="data:audio/flac;base64,([^"]*)"', text)
    (output / "first.flac").write_bytes(base64.b64decode(first))
    samples, rate_hz = soundfile.read(output / "first.flac")
    assert rate_hz == RATE_HZ
    np.testing.assert_array_equal(samples, soundfile.read(output / "1.wav")[0])


def test_row_whose_audio_has_gone_is_left_out(output: Path) -> None:
    (output / "1.wav").unlink()
    assert main([str(output)]) == 0
    assert "What was heard" not in (output / "report.html").read_text(encoding="utf-8")


def test_page_of_a_run_without_rows_has_no_recordings_and_no_reasons(tmp_path: Path) -> None:
    write_report(tmp_path, new_record("r", ReadingConfig()), [], ReportConfig())
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not any(title in text for title in ("What was heard", "Errors by reason", "Length of recordings"))


def test_folder_without_a_run_ends_with_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path}: no run has left its run.json there\n"


@pytest.mark.parametrize(("hz", "rate_hz"), [(500, 8_000), (1000, 16_000), (3000, 44_100), (6000, 48_000)])
def test_tone_is_brightest_at_its_mel_height(hz: int, rate_hz: int) -> None:
    tone = np.sin(2 * np.pi * hz * np.arange(rate_hz) / rate_hz).astype(np.float32)
    levels = spectrogram_db(tone, rate_hz)
    top_mel = 2595 * np.log10(1 + min(8000, rate_hz / 2) / 700)
    row = (HEIGHT - 1) * (1 - 2595 * np.log10(1 + hz / 700) / top_mel)
    assert abs(int(levels[:, levels.shape[1] // 2].argmax()) - row) <= 2


def test_picture_has_the_colours_of_its_levels() -> None:
    levels = np.array([[0.0, -35.0, -70.0, -200.0, 10.0]])
    assert _png(to_png(levels, 0.0))[2].tolist() == [[255, 128, 0, 0, 255]]


def test_long_recording_has_a_picture_of_bounded_width() -> None:
    assert spectrogram_db(np.zeros(60 * RATE_HZ, np.float32), RATE_HZ).shape[1] <= 700


def test_recordings_are_spread_over_the_good_rows_and_those_with_speech_come_first() -> None:
    lines = [_line(n, "a" if n % 2 else "", "bad" if n % 5 == 0 else "") for n in range(100)]
    assert [row["source_row"] for row in pick_rows(lines, 4, 80)] == [1, 27, 51, 77]
    lines = [_line(0), _line(1, "a"), _line(2)]
    assert [row["source_row"] for row in pick_rows(lines, 2, 3)] == [1, 0]
    assert pick_rows(lines, 0, 3) == []
