"""Rows that are cut into pieces: which, where, under which keys; and what is done already. The scout is a stand-in."""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile

from transforms import file_access
from transforms.batch_work import row_key_of
from transforms.clip_workers import Effort
from transforms.cut_rows import CutWork
from transforms.finished_rows import FinishedRows
from transforms.part_file import FinishedRow, read_part, write_part
from transforms.records import ClipResult, ClipRow, KeyedRow, PartRows, Piece, RowKey, Segment
from transforms.run_journal import RunJournal
from transforms.work_order import WorkOrder

# The recipe `batch`: pieces of 10 to 20 s.
PAUSE_AT_12_S = [Segment(0, 11_900), Segment(12_100, 30_000)]


class _Scout:
    """Says of every row that it lasts so long and where speech is; a row called bad is bad."""

    def __init__(self, duration_s: float, speech: list[Segment], rate_hz: int = 16_000) -> None:
        self._heard = duration_s, speech, rate_hz

    def run(self, rows: Sequence[ClipRow], effort: Effort) -> Iterator[ClipResult]:
        duration_s, speech, rate_hz = self._heard
        for row in rows:
            error = ("no audio", "AudioError") if row.name == "bad" else ("", "")
            names = row.source, row.row, row.source_path, row.columns
            yield ClipResult(*names, "", [], speech, duration_s, "m", "cpu", *error, rate_hz)


def _row(name: str = "a.wav", **fields: object) -> KeyedRow:
    return KeyedRow(3, f"{7:032x}", ClipRow(0, 1, name, "s", b"{}", path="a.wav")._replace(**fields))


def _done(order: WorkOrder, scout: _Scout, *rows: KeyedRow) -> list[KeyedRow | PartRows]:
    return list(CutWork(order, scout, FinishedRows(order.parts_folder)).do(rows))


@pytest.mark.parametrize("duration_s", [0.0, 19.999, 20.0])
def test_row_that_is_one_piece_passes_as_it_is(order: WorkOrder, duration_s: float) -> None:
    assert _done(order, _Scout(duration_s, []), _row()) == [_row()]


def test_long_row_becomes_a_row_for_each_piece(order: WorkOrder) -> None:
    first, second = _done(order, _Scout(30.0, PAUSE_AT_12_S), _row(start_s=100.5))
    assert isinstance(first, KeyedRow) and isinstance(second, KeyedRow)
    assert first.row.piece == Piece(_row().key, 0, 2, 0.0, 12.0)
    assert second.row.piece == Piece(_row().key, 1, 2, 12.0, 30.0)
    assert (first.row.name, first.row.start_s, first.row.duration_s) == ("a.wav (0.0 to 12.0 s)", 100.5, 12.0)
    assert (second.row.name, second.row.start_s, second.row.duration_s) == ("a.wav (12.0 to 30.0 s)", 112.5, 18.0)
    assert {first.part, second.part} == {3} and len({first.key, second.key, _row().key}) == 3


def test_pieces_where_nobody_pauses_overlap(order: WorkOrder) -> None:
    rows = _done(order, _Scout(30.0, [Segment(0, 30_000)]), _row())
    assert [each.row.piece[3:] for each in rows if isinstance(each, KeyedRow) and each.row.piece] == [(0, 20), (16, 30)]


@pytest.mark.parametrize(("rate_hz", "samples"), [(11_025, 400_001), (44_100, 1_500_003), (8_000, 240_007)])
def test_pieces_that_meet_share_no_sample_and_leave_none_out(order: WorkOrder, rate_hz: int, samples: int) -> None:
    """At rates whose milliseconds are no whole samples, and lengths that are no whole milliseconds."""
    speech = [Segment(0, 11_111), Segment(11_334, 22_000), Segment(22_111, 29_999)]
    duration_s = round(samples / rate_hz, 6)
    rows = _done(order, _Scout(duration_s, speech, rate_hz), _row())
    at = 0
    for each in rows:
        assert isinstance(each, KeyedRow)
        assert round((each.row.start_s or 0.0) * rate_hz) == at
        at += round((each.row.duration_s or 0.0) * rate_hz)
    assert at == samples


def test_bad_row_is_finished_here(order: WorkOrder) -> None:
    (done,) = _done(order, _Scout(30.0, []), _row("bad"))
    assert isinstance(done, PartRows) and done.rows == [RowKey(0, 1, _row().key)]
    (line,) = read_part(order.parts_folder, done.name)
    assert b'"error":"no audio"' in line and b'"answer":"accurate"' in line
    journal = RunJournal(order.journal).follow().read()
    assert (journal.rows, journal.errors) == (1, 1)


def test_piece_that_a_killed_run_has_finished_is_not_done_again(order: WorkOrder) -> None:
    scout = _Scout(30.0, PAUSE_AT_12_S)
    first, second = _done(order, scout, _row())
    assert isinstance(first, KeyedRow) and isinstance(second, KeyedRow)
    line = b'{"error": "", "error_class": "", "error_retriable": false, "duration": 1.0, "device": "", "model": ""}'
    write_part(order.parts_folder, "before", [FinishedRow(second.key, line)])
    assert _done(order, scout, _row()) == [first, PartRows(3, "before", [row_key_of(second)])]


def test_audio_of_a_url_is_fetched_once(order: WorkOrder, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def open_file(path: str) -> io.BytesIO:
        opened.append(path)
        return io.BytesIO(b"audio")

    monkeypatch.setattr(file_access, "open_file", open_file)
    rows = _done(order, _Scout(30.0, PAUSE_AT_12_S), _row(path="bucket://a.wav"))
    paths = [Path(each.row.path) for each in rows if isinstance(each, KeyedRow)]
    assert opened == ["bucket://a.wav"]
    assert [path.read_bytes() for path in paths] == [b"audio"] * 2


def test_url_that_does_not_answer_is_a_bad_row_that_may_be_tried_again(
    order: WorkOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> io.BytesIO:
        raise OSError("no answer")

    monkeypatch.setattr(file_access, "open_file", refuse)
    (done,) = _done(order, _Scout(30.0, PAUSE_AT_12_S), _row(path="bucket://a.wav"))
    assert isinstance(done, PartRows)
    (line,) = read_part(order.parts_folder, done.name)
    assert b'"error":"bucket://a.wav: cannot be read: no answer"' in line and b'"error_retriable":true' in line
    assert [path.suffix for path in order.parts_folder.iterdir()] == [".part"]


@pytest.mark.parametrize("rate_hz", [0, 8000])
def test_audio_of_a_table_is_read_from_a_file_by_all_pieces(order: WorkOrder, rate_hz: int) -> None:
    samples = (np.arange(16_000) / 32768).astype("<f4")
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, 8000, format="WAV")
    data = samples.tobytes() if rate_hz else buffer.getvalue()
    row = _row(path="", data=data, sample_rate_hz=rate_hz)
    rows = _done(order, _Scout(30.0, PAUSE_AT_12_S), row)
    places = {(each.row.path, each.row.data, each.row.sample_rate_hz) for each in rows if isinstance(each, KeyedRow)}
    ((path, none, no_rate),) = places
    assert (Path(path).parent, none, no_rate) == (order.parts_folder, None, 0)
    np.testing.assert_array_equal(soundfile.read(path, dtype="float32")[0], samples)
