"""Reading waits while too much of what was read has not been heard."""

import threading

import pytest

from transforms import waiting_records
from transforms.waiting_records import WaitingRecords


def test_records_wait_from_the_newest_heard_to_the_next_to_be_read() -> None:
    waiting = WaitingRecords()
    waiting.heard("audio", 0, 99)
    assert waiting.wait_below("audio", 0, next_offset=105, most=6, timeout_s=0)
    assert not waiting.wait_below("audio", 0, next_offset=106, most=6, timeout_s=0)
    assert waiting.wait_below("audio", 1, next_offset=10_000, most=6, timeout_s=0)


def test_a_record_that_is_heard_again_changes_nothing() -> None:
    waiting = WaitingRecords()
    waiting.heard("audio", 0, 99)
    waiting.heard("audio", 0, 4)
    assert waiting.wait_below("audio", 0, next_offset=101, most=2, timeout_s=0)


def test_who_waits_goes_on_when_enough_has_been_heard() -> None:
    waiting = WaitingRecords()
    waiting.heard("audio", 0, 0)
    done: list[bool] = []
    reader = threading.Thread(target=lambda: done.append(waiting.wait_below("audio", 0, 1_000, 10, timeout_s=60)))
    reader.start()
    waiting.heard("audio", 0, 989)
    waiting.heard("audio", 0, 990)
    reader.join(60)
    assert done == [True]


def test_what_this_process_has_long_heard_nothing_of_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = WaitingRecords()
    monkeypatch.setattr(waiting_records.time, "monotonic", lambda: 100.0)
    waiting.heard("audio", 0, 0)
    assert not waiting.wait_below("audio", 0, 1_000, 10, timeout_s=0)
    monkeypatch.setattr(waiting_records.time, "monotonic", lambda: 111.0)
    assert waiting.wait_below("audio", 0, 1_000, 10, timeout_s=0)
