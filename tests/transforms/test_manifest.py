"""NeMo manifests: every line is one row, good or bad, whatever the slices."""

import json
from pathlib import Path

import pytest

from transforms.manifest import read_manifest, split_manifest
from transforms.records import MANIFEST, ClipRow, Source


def _read(path: Path, rows_per_slice: int = 2) -> list[ClipRow]:
    slices = split_manifest(Source(7, str(path), MANIFEST), rows_per_slice)
    return [row for part in slices for row in read_manifest(part)]


def _write(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "m.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _only(tmp_path: Path, content: str | bytes) -> ClipRow:
    (row,) = _read(_write(tmp_path, content))
    return row


@pytest.mark.parametrize("rows_per_slice", [1, 2, 3, 100])
def test_rows_are_the_same_for_every_slicing(tmp_path: Path, rows_per_slice: int) -> None:
    lines = ["", '{"audio_filepath": "a"}', " ", '{"audio_filepath": "b"}', "x", "", '{"audio_filepath": "ü"}', ""]
    rows = _read(_write(tmp_path, "\r\n".join(lines)), rows_per_slice)
    assert [(row.source, row.row, Path(row.path).name) for row in rows] == [
        (7, 2, "a"),
        (7, 4, "b"),
        (7, 5, ""),
        (7, 7, "ü"),
    ]


@pytest.mark.parametrize("rows_per_slice", [1, 2, 100])
def test_slices_hold_as_many_rows_as_they_say(tmp_path: Path, rows_per_slice: int) -> None:
    path = _write(tmp_path, '\n\n{"audio_filepath": "a"}\n' * 5)
    slices = split_manifest(Source(0, str(path), MANIFEST), rows_per_slice)
    assert [part.rows for part in slices] == [len(list(read_manifest(part))) for part in slices]
    assert sum(part.rows for part in slices) == 5


def test_path_is_relative_to_the_manifest(tmp_path: Path) -> None:
    assert _only(tmp_path, '{"audio_filepath": "x/../a.wav"}').path == str(tmp_path / "a.wav")


def test_absolute_path_stays(tmp_path: Path) -> None:
    assert _only(tmp_path, '{"audio_filepath": "/data/a.wav"}').path == "/data/a.wav"


def test_offset_and_duration_select_a_part(tmp_path: Path) -> None:
    row = _only(tmp_path, '{"audio_filepath": "a", "offset": 1, "duration": 2.5}')
    assert (row.start_s, row.duration_s) == (1.0, 2.5)


@pytest.mark.parametrize("duration", ["null", "0", "0.0"])
def test_duration_of_nothing_means_the_whole_file(tmp_path: Path, duration: str) -> None:
    row = _only(tmp_path, f'{{"audio_filepath": "a", "duration": {duration}}}')
    assert (row.start_s, row.duration_s, row.error) == (None, None, "")


def test_all_keys_are_kept(tmp_path: Path) -> None:
    item = {"audio_filepath": "a", "text": "ü", "deep": {"a": [1, {"b": None}]}, "big": 2**60}
    assert json.loads(_only(tmp_path, json.dumps(item)).columns) == item


def test_audio_filename_is_an_alias(tmp_path: Path) -> None:
    assert _only(tmp_path, '{"audio_filename": "a.wav"}').path == str(tmp_path / "a.wav")


def test_byte_order_mark_is_no_part_of_the_first_row(tmp_path: Path) -> None:
    assert _only(tmp_path, b'\xef\xbb\xbf{"audio_filepath": "a"}').error == ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"duration": 1}', "m.jsonl line 1: has no audio_filepath"),
        ('{"audio_filepath": null}', "m.jsonl line 1: audio_filepath must be a path, got None"),
        ('{"audio_filepath": ""}', "m.jsonl line 1: audio_filepath must be a path, got ''"),
        ('{"audio_filepath": "a", "offset": -1}', "offset must be a number of seconds >= 0 or null, got -1"),
        ('{"audio_filepath": "a", "duration": "2"}', "duration must be a number of seconds >= 0 or null, got '2'"),
        ('{"audio_filepath": "a", "offset": true}', "offset must be a number of seconds >= 0 or null, got True"),
        ('{"audio_filepath": "a"', "m.jsonl line 1: is not JSON: "),
        ("hello", "m.jsonl line 1: is not JSON: "),
        ('"a.wav"', "m.jsonl line 1: must be a JSON object, got str"),
        ('{"audio_filepath": "\\ud800"}', "m.jsonl line 1: is not JSON: "),
    ],
)
def test_bad_line_is_one_row_that_names_its_number(tmp_path: Path, line: str, message: str) -> None:
    assert message in _only(tmp_path, line).error


def test_line_that_is_not_utf8_is_one_bad_row(tmp_path: Path) -> None:
    rows = _read(_write(tmp_path, b'{"audio_filepath": "\xfc"}\n{"audio_filepath": "a"}'))
    assert [row.error[-38:] for row in rows] == ["line 1: is not UTF-8 (byte 0xfc at 20)", ""]


def test_array_of_rows_is_read_as_a_manifest(tmp_path: Path) -> None:
    rows = _read(_write(tmp_path, b' [{"audio_filepath": "a"},\n 3, {"audio_filepath": "b"}]'))
    assert [(row.row, Path(row.path).name) for row in rows] == [(1, "a"), (2, ""), (3, "b")]
    assert rows[1].error.endswith("m.jsonl item 2: must be a JSON object, got int")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "it is a Git LFS pointer"),
        (b"<!DOCTYPE html><html>\n</html>\n", "it is an HTML page"),
        (b"[1, 2", "neither JSON lines nor one JSON array"),
    ],
)
def test_file_that_is_no_manifest_is_one_bad_row(tmp_path: Path, content: bytes, message: str) -> None:
    (part,) = split_manifest(Source(0, str(_write(tmp_path, content)), MANIFEST), 10)
    assert (part.rows, message in part.error) == (1, True)


def test_missing_manifest_is_one_bad_row(tmp_path: Path) -> None:
    (part,) = split_manifest(Source(0, str(tmp_path / "gone.jsonl"), MANIFEST), 10)
    assert part.error == f"{tmp_path}/gone.jsonl: cannot be read: No such file or directory"


def test_empty_manifest_has_no_slices(tmp_path: Path) -> None:
    assert split_manifest(Source(0, str(_write(tmp_path, b"")), MANIFEST), 10) == []


def test_lines_that_go_while_the_job_runs_are_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"audio_filepath": "a"}\n' * 3)
    (part,) = split_manifest(Source(0, str(path), MANIFEST), 10)
    path.write_text('{"audio_filepath": "a"}\n')
    rows = list(read_manifest(part))
    assert [(row.row, row.error) for row in rows] == [
        (1, ""),
        (2, f"{path} line 2: has gone while the job ran"),
        (3, f"{path} line 3: has gone while the job ran"),
    ]
