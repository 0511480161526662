"""Replay over given records: time passes with them, and a session belongs to the range in which it begins."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from model_runtime.decode import encode_linear16
from service.wire import NO_SEQUENCE, AudioDefaults, ChunkHeaders, encode_headers
from transforms.dead_letter import DeadLetter
from transforms.kafka_range import Span
from transforms.replay import Replay, ReplayedFinal
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_logic import SessionLogic
from transforms.stream_records import KafkaRecord

BEGIN_MS = 1_767_225_600_000
IDLE_MS, TOMBSTONE_MS, DISORDER_MS = 1_000, 5_000, 200
SAMPLES = np.arange(1, 1601, dtype=np.float32) / 32768


class Records:
    """Stands in for a RangeReader; remembers how many records were taken."""

    def __init__(self, records: Sequence[KafkaRecord], last: int) -> None:
        self._records = records
        self._last = last
        self.taken = 0
        self.past = False

    def records(self) -> Iterator[KafkaRecord]:
        for record in self._records:
            self.past = record.offset >= self._last
            self.taken += 1
            yield record
        self.past = True


def record(offset: int, key: str, at_ms: int, sequence: int = NO_SEQUENCE, ends: bool = False) -> KafkaRecord:
    """100 ms of audio at 16 kHz."""
    headers = [*encode_headers(ChunkHeaders("LINEAR16", 16_000, 1, sequence, ends))]
    time_ms = BEGIN_MS + at_ms
    payload = encode_linear16(SAMPLES)
    return KafkaRecord("t", 0, offset, key.encode() or None, payload, headers, time_ms, False, time_ms, time_ms, 0)


@pytest.fixture
def play(stand_in: Any) -> Callable[..., tuple[list[str], list[int], Replay, Records]]:
    """Plays records; gives the finals' ids with their samples, the offsets of dead letters, and who did it."""

    def run(
        records: Sequence[KafkaRecord], first: int = 0, last: int = 10_000, now_ms: int = 60_000, **part: Any
    ) -> tuple[list[str], list[int], Replay, Records]:
        config = SessionConfig(idle_timeout_ms=IDLE_MS, tombstone_ms=TOMBSTONE_MS)
        logic = SessionLogic(stand_in, config, OutputConfig(partials=False, segments=False, enhanced=False))
        replay = Replay(logic, AudioDefaults(), [Span(0, 0, first, last, 20_000)], DISORDER_MS, **part)
        reader = Records(records, last)
        said = list(replay.play(reader, BEGIN_MS + now_ms))  # type: ignore[arg-type]
        finals = [each for each in said if isinstance(each, ReplayedFinal)]
        ids = [f"{f.final.session}/{f.offset}: {f.final.text.partition(' ')[0]}" for f in finals]
        return ids, [each.offset for each in said if isinstance(each, DeadLetter)], replay, reader

    return run


def test_a_pause_as_long_as_the_idle_timeout_ends_a_session_also_while_others_speak(play: Callable[..., Any]) -> None:
    others = [record(10 + n, "b", 100 * n) for n in range(40)]
    ends = [record(n, "a", at) for n, at in enumerate([0, 100, 2_000])]
    records = sorted([*others, *ends], key=lambda each: each.stream_ms)
    ids, *_ = play(records)
    assert sorted(ids) == ["a/0: 3200", "a/2: 1600", "b/10: 64000"]


@pytest.mark.parametrize(
    ("at_ms", "ids", "letters"), [(4_000, ["a/0: 1600"], [2]), (9_000, ["a/0: 1600", "a/2: 1600"], [])]
)
def test_the_tombstone_of_a_session_is_forgotten_in_stream_time(
    play: Callable[..., Any], at_ms: int, ids: list[str], letters: list[int]
) -> None:
    """What comes under a key after its end_of_stream is late as long as the key is remembered, and new afterwards."""
    records = [record(0, "a", 0, 0, ends=True), record(1, "b", at_ms - 300), record(2, "a", at_ms, 7)]
    found, refused, *_ = play(records)
    assert ([each for each in found if each.startswith("a")], refused) == (ids, letters)


def test_sessions_that_began_before_the_range_are_left_to_the_range_before(play: Callable[..., Any]) -> None:
    records = [record(n, "a", 100 * n, n) for n in range(5)] + [record(5, "b", 500, 0), record(6, "a", 600, 5)]
    whole, _, _, _ = play(records)
    before, _, _, _ = play(records, last=3)
    after, _, _, _ = play(records, first=3)
    assert (before, after) == (["a/0: 9600"], ["b/5: 1600"])
    assert sorted(before + after) == sorted(whole)


def test_reading_goes_on_behind_the_range_until_its_sessions_have_ended(play: Callable[..., Any]) -> None:
    records = [record(n, "a", 100 * n, n, ends=n == 29) for n in range(30)]
    records += [record(30 + n, "b", 3_000 + 100 * n, n) for n in range(200)]
    ids, _, replay, reader = play(records, last=3)
    assert (ids, replay.unfinished) == (["a/0: 48000"], 0)
    assert 30 < reader.taken < 60


def test_a_key_that_begins_anew_behind_the_range_is_left_to_the_next(play: Callable[..., Any]) -> None:
    records = [record(0, "a", 0, 0), record(1, "a", 100, 1), record(2, "a", 200, 0), record(3, "a", 300, 1)]
    ids, *_ = play(records, last=2)
    assert ids == ["a/0: 3200"]


def test_dead_letters_are_those_of_the_range(play: Callable[..., Any]) -> None:
    records = [record(n, "", 100 * n) for n in range(4)]
    assert play(records, first=1, last=3)[1] == [1, 2]


@pytest.mark.parametrize(("now_ms", "unfinished"), [(1_099, 1), (1_100, 0)])
def test_a_session_that_still_goes_on_has_no_end(play: Callable[..., Any], now_ms: int, unfinished: int) -> None:
    ids, _, replay, _ = play([record(0, "a", 0, 0)], now_ms=now_ms)
    assert (len(ids), replay.unfinished) == (1 - unfinished, unfinished)


def test_parts_hold_each_session_once(play: Callable[..., Any]) -> None:
    records = [record(10 * n + k, f"s{k}", 1_000 * n + k, n) for n in range(5) for k in range(10)]
    whole = play(records)[0]
    parts = [play(records, part=(number, 3))[0] for number in range(3)]
    assert sorted(name for part in parts for name in part) == sorted(whole)
    assert len(whole) == 10 and all(parts)
