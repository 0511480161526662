"""Parts on the disk: whole or not at all, and found again by the keys of their rows."""

import json
from pathlib import Path

import pytest

from transforms.finished_rows import FinishedRows, FoundRow
from transforms.part_file import (
    FinishedRow,
    keep_parts,
    part_names,
    read_header,
    read_part,
    read_rows,
    remove_unfinished,
    write_part,
)
from transforms.tally import Tally

KEYS = ["00" * 16, "ff" * 16, "0123456789abcdef" * 2, "0123456789abcdef" + "f" * 16]


def _line(text: str, error: str = "", retriable: bool = False) -> bytes:
    error_class = "AudioError" if error else ""
    fields = {"pred_text": text, "error": error, "error_class": error_class, "error_retriable": retriable}
    return json.dumps({**fields, "duration": 1.5, "device": "cpu", "model": "m"}).encode()


def _rows(*lines: bytes) -> list[FinishedRow]:
    return [FinishedRow(key, line) for key, line in zip(KEYS, lines, strict=False)]


def test_part_gives_its_lines_in_their_order_and_counts_them(tmp_path: Path) -> None:
    lines = [_line("b"), _line("a"), _line("", "gone")]
    tally = write_part(tmp_path, "p", _rows(*lines))
    assert list(read_part(tmp_path, "p")) == lines
    assert tally == Tally(3, 1, 0, 3000, {"AudioError: gone": 1}, {"cpu": 2}, {"m": 2})
    assert read_header(tmp_path, "p")[0].tally == tally


def test_every_finished_row_is_found_by_its_key(tmp_path: Path) -> None:
    """Two keys share their first half."""
    lines = [_line("ü" * size) for size in range(4)]
    write_part(tmp_path, "p", _rows(*lines)[:1])
    write_part(tmp_path, "q", _rows(*lines)[1:])
    finished = FinishedRows(tmp_path)
    assert [finished.find(key) for key in KEYS] == [FoundRow(*found) for found in zip("pqqq", lines, strict=True)]
    assert finished.find("0123456789abcdef" + "0" * 16) is None
    assert len(finished) == 4


def test_error_that_may_pass_is_not_finished_and_one_that_stays_is(tmp_path: Path) -> None:
    write_part(tmp_path, "p", _rows(_line("", "disk", True), _line("", "html"), _line("a")))
    finished = FinishedRows(tmp_path)
    assert [finished.find(key) is not None for key in KEYS[:3]] == [False, True, True]


def test_rows_are_read_by_their_keys_in_the_order_of_the_part(tmp_path: Path) -> None:
    rows = _rows(_line("a"), _line("longer"), _line("c"))
    write_part(tmp_path, "p", rows)
    assert list(read_rows(tmp_path, "p", [KEYS[2], KEYS[1], KEYS[3]])) == rows[1:]


def test_without_a_folder_nothing_is_finished(tmp_path: Path) -> None:
    for folder in (None, tmp_path / "none"):
        assert (len(FinishedRows(folder)), FinishedRows(folder).find(KEYS[0])) == (0, None)


def test_killed_writers_leave_nothing_that_counts(tmp_path: Path) -> None:
    write_part(tmp_path, "p", _rows(_line("a")))
    (tmp_path / ".q.part.0123.tmp").write_bytes(b"half")
    assert part_names(tmp_path) == ["p"]
    remove_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["p.part"]


def test_failed_write_leaves_no_part(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        write_part(tmp_path, "p", [FinishedRow(KEYS[0], b"no json")])
    assert list(tmp_path.iterdir()) == []


def test_only_parts_that_are_named_are_kept(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_part(tmp_path, name, [])
    keep_parts(tmp_path, ["b"])
    assert part_names(tmp_path) == ["b"]
