"""Where the time of a final went: the stretches, and that they add up to its latency."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from apache_beam.utils.timestamp import Timestamp

from model_runtime.devices import RouteConfig
from model_runtime.records import Final, MadeBy
from transforms import transcribe_utterances
from transforms.result import Heard, Result, event_to_result, result_to_json
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_logic import SessionLogic
from transforms.session_turn import Turn
from transforms.stream_records import Chunk, SpokenUtterance
from transforms.timing import Moments, Timing, begin_timing
from transforms.transcribe_utterances import _TranscribeFn

CAPTURED_MS = 1_000_100


class Clock:
    """A clock that stands where it is told to, and goes on by 7 ms with each look at it."""

    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        now_ms, self.now_ms = self.now_ms, self.now_ms + 7
        return now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def advance(stand_in: object, clock: Clock) -> Callable[..., Turn]:
    logic = SessionLogic(stand_in, SessionConfig(), OutputConfig(partials=False), clock)

    def advance(book: bytes | None, at_ms: int, *chunks: Chunk) -> Turn:
        clock.now_ms = at_ms
        return logic.advance(book, chunks)

    return advance


def written(result: Result, now_ms: int) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.json.decode(result_to_json(result, now_ms))
    return fields


def test_the_time_of_a_final_is_told_stretch_by_stretch_and_adds_up_to_its_latency(
    advance: Callable[..., Turn], make_chunk: Callable[..., Chunk], noise: np.ndarray
) -> None:
    chunk = make_chunk(0, noise[:1600], end_of_stream=True, read_ms=CAPTURED_MS + 30)
    final, end = advance(None, CAPTURED_MS + 50, chunk).results
    fields = written(final, CAPTURED_MS + 100)
    assert fields["timing"] == {
        "ingest_ms": 30,
        "queue_ms": 20,
        "reorder_ms": 0,
        "idle_ms": 0,
        "compute_ms": 7,
        "emit_ms": 43,
    }
    assert fields["latency_ms"] == sum(fields["timing"].values()) == 100
    assert written(end, CAPTURED_MS + 100)["timing"] is None


def test_the_wait_for_a_chunk_that_comes_late_is_the_time_of_putting_in_order(
    advance: Callable[..., Turn], make_chunk: Callable[..., Chunk], noise: np.ndarray
) -> None:
    first, second, last = (
        make_chunk(i, noise[:1600], end_of_stream=i == 2, read_ms=1_000_310 + 5 * i) for i in range(3)
    )
    book = advance(None, 1_000_320, first).book
    book = advance(book, 1_000_330, last).book
    final = advance(book, 1_000_400, second).results[0]
    assert final.timing == Timing(ingest_ms=20, queue_ms=10, reorder_ms=70, idle_ms=0, compute_ms=7, until_ms=1_000_407)


def test_a_session_that_falls_silent_has_waited_for_its_timeout(
    stand_in: object, clock: Clock, make_chunk: Callable[..., Chunk], noise: np.ndarray
) -> None:
    logic = SessionLogic(stand_in, SessionConfig(), OutputConfig(partials=False), clock)
    clock.now_ms = 1_000_120
    open_ = logic.advance(None, [make_chunk(0, noise[:1600], read_ms=1_000_110)])
    clock.now_ms = 1_000_120 + 31_000
    final = logic.expire(open_.book or b"", "s", 1_000_000 + 31_000).results[0]
    assert final.timing is not None
    assert (final.timing.ingest_ms, final.timing.queue_ms, final.timing.idle_ms) == (10, 10, 31_000)


@pytest.mark.parametrize("fields", [{"substituted": True}, {"event_ms": 1_000_900, "stream_ms": 1_000_900}])
def test_what_cannot_be_the_capture_time_leaves_the_way_to_kafka_unknown(
    advance: Callable[..., Turn], make_chunk: Callable[..., Chunk], noise: np.ndarray, fields: dict[str, Any]
) -> None:
    chunk = make_chunk(0, noise[:1600], end_of_stream=True, read_ms=1_000_500, **fields)
    final = advance(None, 1_000_510, chunk).results[0]
    assert final.timing == Timing(
        ingest_ms=None, queue_ms=10, reorder_ms=0, idle_ms=0, compute_ms=7, until_ms=1_000_517
    )


def test_an_utterance_that_is_transcribed_elsewhere_waits_and_is_worked_on_twice() -> None:
    timing = begin_timing(100, Moments(110, 120, 120), 120)
    assert timing is not None
    assert timing.computed(125).queued(165).computed(215) == Timing(10, 10 + 40, 0, 0, 5 + 50, 215)


def test_a_clock_that_is_set_back_makes_no_stretch_negative() -> None:
    timing = begin_timing(100, Moments(110, 90, 95), 80)
    assert timing == Timing(10, 0, 5, 0, 0, 80)
    assert timing is not None and timing.computed(70).compute_ms == 0


def test_what_did_not_come_from_kafka_has_no_timing() -> None:
    assert begin_timing(None, Moments(), 5) is None


def test_a_final_that_is_transcribed_in_a_stage_of_its_own_tells_both_waits_and_both_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard = Heard("s", 0, 16_000, 100, timing=Timing(10, 10, 0, 0, 5, 125))
    final = event_to_result(Final(0, 1, "x", (), 1.0, 0, 1_600), heard, MadeBy("m", "cpu"))
    fn = _TranscribeFn("no recipe", RouteConfig(), True)
    fn._transcription = SimpleNamespace(transcribe=lambda spoken: [[final] for _ in spoken])
    clock = iter([165, 215])
    monkeypatch.setattr(transcribe_utterances, "clock_ms", lambda: next(clock))
    fn.start_bundle()
    list(fn.process(("0", SpokenUtterance(None, b"", heard, [])), Timestamp(0)))
    (written,) = fn.finish_bundle()
    assert written.value.timing == Timing(10, 10 + 40, 0, 0, 5 + 50, 215)
