"""Tallies: what is counted, sums, and reasons without places and numbers."""

import json

import pytest

from transforms.tally import Tally, add_up, reason, tally_lines


def _line(error: str = "", retriable: bool = False, device: str = "cpu", duration: float | None = 2.0) -> bytes:
    fields = {"error": error, "error_class": "AudioError" if error else "", "error_retriable": retriable}
    return json.dumps({**fields, "duration": duration, "device": device, "model": "m", "words": []}).encode()


def test_lines_are_counted_by_what_became_of_them() -> None:
    lines = [_line(), _line(device="npu", duration=None), _line("x", True), _line("x", duration=9.0), _line("y")]
    assert tally_lines(lines) == Tally(
        5, 3, 1, 2000, {"AudioError: x": 2, "AudioError: y": 1}, {"cpu": 1, "npu": 1}, {"m": 2}
    )


def test_sum_has_the_most_frequent_reason_first() -> None:
    parts = [tally_lines([_line("x")]), tally_lines([_line("y"), _line("y"), _line()]), Tally()]
    total = add_up(parts)
    assert (total.rows, total.errors, total.results, total.audio_ms) == (4, 3, 1, 2000)
    assert list(total.reasons.items()) == [("AudioError: y", 2), ("AudioError: x", 1)]


def test_reasons_beyond_a_hundred_are_counted_together() -> None:
    total = add_up(tally_lines([_line(chr(0x4E00 + number))]) for number in range(103))
    assert (len(total.reasons), total.reasons["other reasons"], total.errors) == (101, 3, 103)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("/a/b.wav: not decodable (No.): it is an HTML page", "not decodable (No.): it is an HTML page"),
        ("/m.jsonl line 12: /a/b c.wav: cannot be read: No such file", "cannot be read: No such file"),
        ("/m.jsonl line 3: is not JSON: at byte 17", "is not JSON: at byte N"),
        ("m.jsonl line 1: has no audio_filepath", "has no audio_filepath"),
        ("/t.parquet row 7: sample 3 of 10 is null (1.5 %)", "sample N of N is null (N %)"),
    ],
)
def test_reason_leaves_out_where_and_how_much(message: str, expected: str) -> None:
    assert reason("AudioError", message) == f"AudioError: {expected}"
