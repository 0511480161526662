"""Field case A09: manifests as people write them, read from another working directory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transforms.manifest import read_manifest, split_manifest
from transforms.records import MANIFEST, ClipRow, Source

Row = dict[str, Any]
SETTINGS = ("recipe=segment", "reading.rows_per_slice=3")


@pytest.fixture(scope="module")
def mixed(cases: Path, run_job: Callable[..., list[Row]]) -> dict[int, Row]:
    """The rows of mixed.jsonl by their index in expected.json (line number less one)."""
    rows = run_job(cases / "manifest" / "mixed.jsonl", settings=SETTINGS)
    return {row["source_row"] - 1: row for row in rows}


def test_good_rows_have_results_and_bad_rows_are_reported(mixed: dict[int, Row], oracle: dict[str, Row]) -> None:
    right = oracle["manifest/mixed.jsonl"]
    good = {index for index, row in mixed.items() if not row["error"]}
    # The oracle leaves row 10 open (audio_filename): the alias is accepted.
    assert good == {*right["good"], 10}
    assert set(mixed) == {*right["good"], *right["bad"]}


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (4, "mixed.jsonl line 5: {folder}/audio/gone.wav: cannot be read: No such file or directory"),
        (5, "mixed.jsonl line 6: has no audio_filepath"),
        (7, "mixed.jsonl line 8: is not JSON: "),
        (8, "mixed.jsonl line 9: audio_filepath must be a path, got None"),
    ],
)
def test_bad_row_names_its_line(mixed: dict[int, Row], cases: Path, index: int, message: str) -> None:
    assert message.format(folder=cases / "manifest") in mixed[index]["error"]


def test_glob_characters_and_other_alphabets_are_file_names(mixed: dict[int, Row]) -> None:
    assert [mixed[index]["duration"] for index in (0, 1, 2, 3)] == [2.888625] * 4


@pytest.mark.parametrize("name", ["bom_crlf_nonl.jsonl", "ascii_escaped.jsonl", "array_not_lines.json"])
def test_every_row_of_an_unusual_file_is_good(
    cases: Path, oracle: dict[str, Row], run_job: Callable[..., list[Row]], name: str
) -> None:
    rows = run_job(cases / "manifest" / name, settings=SETTINGS)
    assert [(row["source_row"] - 1, row["error"]) for row in rows] == [
        (index, "") for index in oracle[f"manifest/{name}"]["good"]
    ]


def test_latin1_bytes_are_a_bad_row(cases: Path) -> None:
    source = Source(0, str(cases / "manifest" / "latin1.jsonl"), MANIFEST)
    rows: list[ClipRow] = [row for part in split_manifest(source, 64) for row in read_manifest(part)]
    assert [row.error for row in rows] == [f"{source.path} line 1: is not UTF-8 (byte 0xfc at 26)"]
