"""Result files: order, atomic replacement, and the Parquet schema."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from model_runtime import Word
from transforms.atomic_file import atomic_path
from transforms.part_file import FinishedRow, write_part
from transforms.records import ClipResult, PartDone, Segment
from transforms.result_lines import to_line
from transforms.result_table import ANSWER, write_table
from transforms.write_results import ResultsConfig, plan_shards, write_shard


def _result(row: int = 1, columns: object = None, **fields: object) -> ClipResult:
    encoded = json.dumps(columns or {}).encode()
    good = ClipResult(
        0, row, "/m.jsonl", encoded, "hi", [Word("hi", 1, 2, 0.5)], [Segment(0, 3)], 1.5, "m", "cpu", "", ""
    )
    return good._replace(**fields)


def _table(tmp_path: Path, *columns: dict[str, object]) -> pa.Table:
    lines = [to_line(_result(row, each), False) for row, each in enumerate(columns, 1)]
    write_table(lines, tmp_path / "t.parquet", False)
    return pq.read_table(tmp_path / "t.parquet")


def _own(table: pa.Table) -> pa.Schema:
    return pa.schema([field for field in table.schema if field.name not in ANSWER])


def test_answer_replaces_columns_of_the_same_name() -> None:
    old = {"pred_text": "old", "words": "old", "text": "kept", "duration": 3}
    line = json.loads(to_line(_result(columns=old), False))
    assert (line["pred_text"], line["text"], line["duration"]) == ("hi", "kept", 1.5)
    assert line["words"] == [{"text": "hi", "start_ms": 1, "end_ms": 2, "confidence": 0.5}]


@pytest.mark.parametrize(("duration", "expected"), [(3, 3.0), ("3", None), (True, None), (None, None)])
def test_bad_row_keeps_the_duration_that_its_manifest_says(duration: object, expected: float | None) -> None:
    result = _result(columns={"duration": duration}, duration_s=None, error="bad", error_class="AudioError")
    assert json.loads(to_line(result, False))["duration"] == expected


def test_enhanced_filepath_is_there_only_when_clean_audio_is_written() -> None:
    result = _result(enhanced_path="enhanced/a.wav")
    assert "enhanced_filepath" not in json.loads(to_line(result, False))
    assert json.loads(to_line(result, True))["enhanced_filepath"] == "enhanced/a.wav"


@pytest.mark.parametrize(
    ("shards", "files"),
    [
        (1, [["a0", "a1", "a2", "b0", "b1"]]),
        (2, [["a0", "a1"], ["a2", "b0", "b1"]]),
        (3, [["a0"], ["a1", "a2"], ["b0", "b1"]]),
        (6, [[], ["a0"], ["a1"], ["a2"], ["b0"], ["b1"]]),
    ],
)
def test_shards_are_runs_of_the_parts_in_their_order(tmp_path: Path, shards: int, files: list[list[str]]) -> None:
    done = []
    for number, (name, rows) in enumerate([("a", 3), ("none", 0), ("b", 2)]):
        lines = [to_line(_result(row, {"id": f"{name}{row}"}), False) for row in range(rows)]
        write_part(tmp_path / ".parts", name, [FinishedRow(f"{row:032x}", line) for row, line in enumerate(lines)])
        done.append(PartDone(number, name, rows))
    config = ResultsConfig(formats=("jsonl",), shards=shards)
    paths = [write_shard(shard, str(tmp_path), config, False) for shard in plan_shards(reversed(done), shards, 3)]
    found = [[json.loads(line)["id"] for line in Path(path).read_text().splitlines()] for (path,) in paths]
    assert found == files


def test_nothing_is_written_while_a_part_is_missing() -> None:
    assert plan_shards([PartDone(0, "a", 3)], 1, 2) == []


def test_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_path(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("results.jsonl", "old")]


def test_answer_has_the_same_schema_for_good_bad_and_no_rows(tmp_path: Path) -> None:
    bad = _result(words=[], segments=[], duration_s=None, error="bad", error_class="AudioError")
    schemas = []
    for results in ([_result()], [bad], []):
        write_table([to_line(result, False) for result in results], tmp_path / "t.parquet", False)
        schemas.append(pq.read_schema(tmp_path / "t.parquet"))
    assert schemas == [pa.schema(list(ANSWER.items()))] * 3


def test_columns_of_the_input_keep_their_types_also_nested(tmp_path: Path) -> None:
    table = _table(tmp_path, {"n": 1, "f": 0.5, "s": "x", "deep": {"a": [1, 2]}}, {"n": None, "deep": {"b": "y"}})
    assert table.column("deep").to_pylist() == [{"a": [1, 2], "b": None}, {"a": None, "b": "y"}]
    assert [field.type for field in _own(table)][:3] == [pa.int64(), pa.float64(), pa.string()]


def test_whole_numbers_and_fractions_in_one_column_are_fractions(tmp_path: Path) -> None:
    assert _table(tmp_path, {"n": 1}, {"n": 0.5}).column("n").to_pylist() == [1.0, 0.5]


@pytest.mark.parametrize(
    ("first", "second", "texts"),
    [
        (1, "x", ["1", '"x"']),
        ({}, {}, ["{}", "{}"]),
        (2**70, 1, [str(2**70), "1"]),
        ([1], "x", ["[1]", '"x"']),
    ],
)
def test_values_without_a_common_type_become_json_text(
    tmp_path: Path, first: object, second: object, texts: list[str]
) -> None:
    assert _table(tmp_path, {"v": first}, {"v": second}).column("v").to_pylist() == texts


def test_column_of_nulls_is_text(tmp_path: Path) -> None:
    table = _table(tmp_path, {"v": None, "w": []}, {"v": None, "w": []})
    assert _own(table) == pa.schema([("v", pa.string()), ("w", pa.list_(pa.string()))])


def test_types_are_those_of_all_rows_and_not_of_the_first_ones(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"v": None}] * 2000 + [{"v": 1}] * 2000 + [{"v": 0.5, "late": "x"}]
    table = _table(tmp_path, *rows)
    assert _own(table) == pa.schema([("v", pa.float64()), ("late", pa.string())])
    assert table.column("v").to_pylist() == [None] * 2000 + [1.0] * 2000 + [0.5]
    assert table.column("source_row").to_pylist() == list(range(1, 4002))
