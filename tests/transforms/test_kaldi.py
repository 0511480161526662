"""Kaldi's data folders: lines of wav.scp or of segments, good and bad."""

import json
from pathlib import Path

import pytest

from transforms.kaldi import read_kaldi, split_kaldi
from transforms.records import KALDI, ClipRow, Source
from transforms.sources import find_sources


def _read(folder: Path, rows_per_slice: int = 2) -> list[ClipRow]:
    (source,) = find_sources(str(folder / "wav.scp"))
    assert source.kind == KALDI
    return [row for part in split_kaldi(source, rows_per_slice) for row in read_kaldi(part)]


def test_lines_of_wav_scp_are_whole_recordings(tmp_path: Path) -> None:
    (tmp_path / "wav.scp").write_text("a audio/a b.wav\n\nb /abs/b.flac\r\nc ../c.wav")
    (tmp_path / "text").write_text("a one two\nc\tthree\n")
    rows = _read(tmp_path)
    assert [(row.row, row.path, row.start_s, row.error) for row in rows] == [
        (1, f"{tmp_path}/audio/a b.wav", None, ""),
        (3, "/abs/b.flac", None, ""),
        (4, f"{tmp_path.parent}/c.wav", None, ""),
    ]
    columns = [json.loads(row.columns) for row in rows]
    assert columns[0] == {"utterance": "a", "audio_filepath": "audio/a b.wav", "text": "one two"}
    assert [column["text"] for column in columns] == ["one two", "", "three"]


def test_lines_of_segments_are_parts_of_recordings(tmp_path: Path) -> None:
    (tmp_path / "wav.scp").write_text("r1 r1.wav\nr2 x/r2.wav\n")
    (tmp_path / "segments").write_text("u1 r1 0.5 2.25\nu2 r2 3 -1\nu3 r1 2.25 4\n")
    rows = _read(tmp_path)
    assert [(row.source_path, row.row, row.path, row.start_s, row.duration_s) for row in rows] == [
        (f"{tmp_path}/segments", 1, f"{tmp_path}/r1.wav", 0.5, 1.75),
        (f"{tmp_path}/segments", 2, f"{tmp_path}/x/r2.wav", 3.0, None),
        (f"{tmp_path}/segments", 3, f"{tmp_path}/r1.wav", 2.25, 1.75),
    ]
    assert json.loads(rows[0].columns) == {
        "utterance": "u1",
        "audio_filepath": "r1.wav",
        "recording": "r1",
        "offset": 0.5,
        "duration": 1.75,
    }


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("u r1 1 2 3", "must be utterance, recording, start, end; got 'u r1 1 2 3'"),
        ("u r9 1 2", "{scp} has no recording 'r9'"),
        ("u r1 2 1", "start and end must be seconds, 0 <= start < end, got 2 1"),
        ("u r1 x 1", "start and end must be seconds, 0 <= start < end, got x 1"),
        ("u r1 nan 1", "start and end must be seconds, 0 <= start < end, got nan 1"),
    ],
)
def test_bad_segment_says_what_is_wrong(tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "wav.scp").write_text("r1 r1.wav\n")
    (tmp_path / "segments").write_text(f"good r1 0 1\n{line}\n")
    errors = [row.error for row in _read(tmp_path)]
    assert errors == ["", f"{tmp_path}/segments line 2: " + reason.format(scp=tmp_path / "wav.scp")]


def test_commands_are_never_run(tmp_path: Path) -> None:
    (tmp_path / "wav.scp").write_text(f"a touch {tmp_path}/ran |\nalone\n")
    first, second = (row.error for row in _read(tmp_path))
    assert first.startswith(f"{tmp_path}/wav.scp line 1: is a command, which is never run: 'touch ")
    assert second == f"{tmp_path}/wav.scp line 2: must be an utterance and a path, got 'alone'"
    assert not (tmp_path / "ran").exists()


def test_missing_wav_scp_is_one_bad_row(tmp_path: Path) -> None:
    (part,) = split_kaldi(Source(0, str(tmp_path / "wav.scp"), KALDI), 2)
    assert (part.rows, part.error) == (1, f"{tmp_path}/wav.scp: cannot be read: No such file or directory")
