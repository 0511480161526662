"""Rows of Parquet files: slices by row group, other columns, paths, damage."""

import datetime
import decimal
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transforms.parquet_rows import read_parquet, split_parquet
from transforms.reading_config import ReadingConfig
from transforms.records import PARQUET, ClipRow, Slice, Source


def _write(tmp_path: Path, columns: dict[str, object], row_group_size: int | None = None) -> Source:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=row_group_size)
    return Source(3, str(path), PARQUET)


def _read(slices: list[Slice], config: ReadingConfig | None = None) -> list[ClipRow]:
    return [row for part in slices for row in read_parquet(part, config or ReadingConfig())]


@pytest.mark.parametrize(
    ("rows", "row_group_size", "rows_per_slice", "expected"),
    [
        (7, 1, 3, [(1, 3), (4, 3), (7, 1)]),
        (7, 2, 3, [(1, 2), (3, 2), (5, 3)]),
        (7, 100, 3, [(1, 3), (4, 3), (7, 1)]),
        (100, 100, 3, [(first, min(13, 101 - first)) for first in range(1, 101, 13)]),
    ],
)
def test_slices_are_row_groups_or_at_most_eight_parts_of_one(
    tmp_path: Path, rows: int, row_group_size: int, rows_per_slice: int, expected: list[tuple[int, int]]
) -> None:
    source = _write(tmp_path, {"audio": [b"x"] * rows}, row_group_size)
    assert [(part.first_row, part.rows) for part in split_parquet(source, rows_per_slice)] == expected


@pytest.mark.parametrize("row_group_size", [1, 2, 5, 100])
@pytest.mark.parametrize("rows_per_slice", [1, 3, 100])
def test_every_row_is_read_once_whatever_the_slices(tmp_path: Path, row_group_size: int, rows_per_slice: int) -> None:
    data = [str(number).encode() for number in range(1, 24)]
    rows = _read(split_parquet(_write(tmp_path, {"audio": data}, row_group_size), rows_per_slice))
    assert [(row.source, row.row, row.data) for row in rows] == [(3, n, str(n).encode()) for n in range(1, 24)]


def test_other_columns_are_kept_as_json(tmp_path: Path) -> None:
    columns = {
        "id": [2**60],
        "when": pa.array([datetime.datetime(2026, 1, 2, 3, 4, 5)], pa.timestamp("ns")),
        "price": pa.array([decimal.Decimal("1.50")]),
        "deep": [{"a": [1, None], "b": {"c": "ü"}}],
        "audio": [b"RIFF"],
    }
    (row,) = _read(split_parquet(_write(tmp_path, columns), 10))
    assert json.loads(row.columns) == {
        "id": 2**60,
        "when": "2026-01-02T03:04:05",
        "price": "1.50",
        "deep": {"a": [1, None], "b": {"c": "ü"}},
    }


def test_path_is_relative_to_the_file_and_kept_as_audio_filepath(tmp_path: Path) -> None:
    (row,) = _read(split_parquet(_write(tmp_path, {"audio": [{"bytes": None, "path": "x/a.wav"}]}), 10))
    assert (row.path, json.loads(row.columns)) == (str(tmp_path / "x/a.wav"), {"audio_filepath": "x/a.wav"})


def test_offset_column_selects_a_part(tmp_path: Path) -> None:
    columns = {"audio_filepath": ["a", "b"], "offset": [1.5, None], "duration": [2.0, 3.0]}
    rows = _read(split_parquet(_write(tmp_path, columns), 10))
    assert [(row.start_s, row.duration_s) for row in rows] == [(1.5, 2.0), (None, None)]


def test_rate_column_is_the_rate_of_lists(tmp_path: Path) -> None:
    columns = {"audio": [[0.5], [0.5]], "sample_rate": [44100, None]}
    rows = _read(split_parquet(_write(tmp_path, columns), 10), ReadingConfig(sample_rate_hz=8000))
    assert [row.sample_rate_hz for row in rows] == [44100, 8000]


def test_named_audio_column_is_taken(tmp_path: Path) -> None:
    columns = {"audio": ["wrong"], "speech": ["right"]}
    (row,) = _read(split_parquet(_write(tmp_path, columns), 10), ReadingConfig(audio_column="speech"))
    assert row.path == str(tmp_path / "right")


def test_table_without_audio_has_only_bad_rows(tmp_path: Path) -> None:
    rows = _read(split_parquet(_write(tmp_path, {"id": [1, 2]}), 10))
    assert [row.error for row in rows] == [
        f"{tmp_path}/t.parquet row {n}: no audio column 'audio or audio_filepath or audio_filename or file or path or "
        "bytes' among ['id']"
        for n in (1, 2)
    ]


def test_file_that_is_no_parquet_is_one_bad_row(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_text("<!DOCTYPE html>")
    (part,) = split_parquet(Source(0, str(tmp_path / "t.parquet"), PARQUET), 10)
    assert part.rows == 1
    assert part.error.startswith(f"{tmp_path}/t.parquet: is no readable Parquet file: it is an HTML page")


def test_rows_behind_a_damaged_page_are_all_reported(tmp_path: Path) -> None:
    data = [bytes([65 + n]) * 50_000 for n in range(6)]
    source = _write(tmp_path, {"audio": data}, row_group_size=2)
    slices = split_parquet(source, 100)
    whole = bytearray(Path(source.path).read_bytes())
    begin = pq.read_metadata(source.path).row_group(1).column(0).data_page_offset
    whole[begin : begin + 200] = b"\xff" * 200
    Path(source.path).write_bytes(whole)
    rows = _read(slices)
    assert [row.row for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [bool(row.error) for row in rows] == [False, False, True, True, True, True]
