"""Parts with recordings in pieces: one row comes out, wherever its pieces lie; and batches that take long."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from model_runtime import Word
from transforms import batch_work
from transforms.batch_work import BatchWork
from transforms.clip_workers import Effort
from transforms.cut_rows import audio_path
from transforms.part_file import read_header, read_part
from transforms.part_work import commit_part
from transforms.records import ClipResult, ClipRow, KeyedRow, PartRows, Piece, place_of
from transforms.run_journal import RunJournal
from transforms.work_order import WorkOrder
from transforms.write_audio import EnhancedConfig


class _Saying:
    """Says the name of each row, and two seconds of it."""

    def run(self, rows: Sequence[ClipRow], effort: Effort) -> Iterator[ClipResult]:
        for row in rows:
            names = row.source, row.row, row.source_path, row.columns
            said = row.name, [Word(row.name, 100, 900, 0.5)], [], 2.0, "m", "cpu", "", ""
            if row.name == "bad":
                said = "", [], [], None, "m", "cpu", "no audio", "AudioError"
            yield ClipResult(*names, *said, 8000, piece=row.piece)  # type: ignore[arg-type]


def _key(number: int) -> str:
    return f"{number:032x}"


def _row(number: int, name: str, piece: int = -1, pieces: int = 3) -> KeyedRow:
    """A row, or a piece of it: they follow each other every two seconds."""
    row = ClipRow(0, number, name, "s.jsonl", msgspec.json.encode({"audio_filepath": f"{number}.wav"}))
    if piece < 0:
        return KeyedRow(5, _key(number), row)
    place = Piece(_key(number), piece, pieces, 2.0 * piece, 2.0 * piece + 2.0)
    return KeyedRow(5, _key(1000 * number + piece), row._replace(piece=place))


def _committed(order: WorkOrder, *batches: list[KeyedRow]) -> tuple[list[str], list[dict[str, Any]]]:
    """The keys and the rows of the part after these batches."""
    work = BatchWork(order, _Saying())
    kept = [each for batch in batches for each in work.do(batch) if isinstance(each, PartRows)]
    done = commit_part(order, 5, kept)
    lines = [json.loads(line) for line in read_part(order.parts_folder, done.name)]
    assert done.rows == len(lines)
    return read_header(order.parts_folder, done.name)[0].keys, lines


def test_pieces_in_several_files_are_one_row_in_its_place(order: WorkOrder) -> None:
    batches = [_row(3, "z"), _row(2, "c", 2)], [_row(2, "a", 0), _row(1, "x")], [_row(2, "b", 1)]
    keys, rows = _committed(order, *batches)
    assert keys == [_key(1), _key(2), _key(3)]
    assert [(row["audio_filepath"], row["pred_text"], row["answer"]) for row in rows] == [
        ("1.wav", "x", "accurate"),
        ("2.wav", "a b c", "accurate"),
        ("3.wav", "z", "accurate"),
    ]
    assert [word["start_ms"] for word in rows[1]["words"]] == [100, 2100, 4100]
    assert rows[1]["duration"] == 6.0
    assert set(rows[1]) == set(rows[0])
    journal = RunJournal(order.journal).follow()
    done = journal.read()
    assert (done.rows, done.errors, done.audio_ms, list(journal.parts)) == (3, 0, 10_000, [5])


def test_part_of_one_recording_alone_is_one_row(order: WorkOrder) -> None:
    keys, rows = _committed(order, [_row(1, "b", 1, 2), _row(1, "a", 0, 2)])
    assert (keys, [row["pred_text"] for row in rows]) == ([_key(1)], ["a b"])


def test_recording_with_a_bad_piece_is_one_bad_row(order: WorkOrder) -> None:
    _, (row,) = _committed(order, [_row(1, "a", 0, 2), _row(1, "bad", 1, 2)])
    assert row["error"] == "1 of 2 pieces are bad, the first from 2.0 to 4.0 s: no audio"
    assert (row["pred_text"], row["words"], row["error_class"]) == ("", [], "AudioError")
    assert RunJournal(order.journal).follow().read().errors == 1


def test_row_of_pieces_has_its_subtitles_and_names_its_clean_audio(order: WorkOrder) -> None:
    order = msgspec.structs.replace(order, enhanced=EnhancedConfig(True))
    _, (row,) = _committed(order, [_row(1, "a", 0, 2), _row(1, "b", 1, 2)])
    (subtitles,) = Path(order.output, "subtitles").iterdir()
    assert subtitles.read_text().startswith("1\n00:00:00,100 --> 00:00:02,900\na b\n")
    assert row["enhanced_filepath"] == f"enhanced/{subtitles.stem}.wav"


def test_audio_that_pieces_were_read_from_goes_when_they_are_together(order: WorkOrder) -> None:
    path = audio_path(order.parts_folder, _key(1))
    path.write_bytes(b"x")
    _committed(order, [_row(1, "a", 0, 2), _row(1, "b", 1, 2)])
    assert not path.exists()


def test_batch_that_takes_long_is_kept_in_steps(order: WorkOrder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_work, "_KEEP_AFTER_S", -1.0)
    work = BatchWork(order, _Saying())
    steps = list(work.do([_row(number, "x") for number in range(8)]))
    said = [place_of(each)[1] if isinstance(each, ClipResult) else [row.row for row in each.rows] for each in steps]
    assert said == [0, 1, 2, 3, [0, 1, 2, 3], 4, 5, [4, 5], 6, [6], 7, [7]]
    monkeypatch.setattr(batch_work, "_KEEP_AFTER_S", 3600.0)
    assert (
        len([each for each in work.do([_row(number, "x") for number in range(8)]) if isinstance(each, PartRows)]) == 1
    )
