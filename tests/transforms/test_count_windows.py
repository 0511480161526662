"""Figures by windows of event time, out of a stream with sessions that go over the border of two windows."""

from collections.abc import Callable

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.test_stream import TestStream
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Timestamp

from model_runtime.devices import RouteConfig
from model_runtime.records import Final, MadeBy
from transforms.count_windows import CountResults, CountWindows, StatsConfig, count_result
from transforms.engine_handle import _EngineFn
from transforms.infer_sessions import STATS, InferSessions
from transforms.result import RESULTS, Heard, event_to_result, session_end
from transforms.session_config import OutputConfig, SessionConfig
from transforms.stream_records import Chunk
from transforms.window_stats import StatsPart, WindowStats, latency_bucket

CONFIG = StatsConfig(write=True, window_ms=10_000)


def essence(stats: WindowStats) -> tuple[object, ...]:
    """Without what only a clock knows."""
    sums = stats.sums._replace(compute_us=0, lag_ms=0, latencies={})
    return stats.begin_ms, stats.end_ms, sums


def test_each_window_has_its_own_figures(
    stand_in: object, make_chunk: Callable[..., Chunk], noise: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_EngineFn, "load_engine", lambda self: stand_in)
    parts = np.split(noise, 10)
    chunks = [make_chunk(i, parts[i], event_ms=1_009_500 + 100 * i, end_of_stream=i == 9) for i in range(10)]
    events = TestStream(coder=beam.coders.FastPrimitivesCoder())
    for chunk in chunks:
        events.advance_watermark_to(Timestamp(micros=chunk.stream_ms * 1000))
        events.add_elements([TimestampedValue(("s", [chunk]), Timestamp(micros=chunk.stream_ms * 1000))])
    events.advance_watermark_to(Timestamp(seconds=1_100)).advance_watermark_to_infinity()
    with beam.Pipeline(runner="BundleBasedDirectRunner") as pipeline:
        source = pipeline | events | beam.Map(lambda pair: pair).with_output_types(tuple[str, list[Chunk]])
        infer = InferSessions("streaming", RouteConfig(), SessionConfig(tombstone_ms=0), OutputConfig(), count=True)
        said = source | infer
        figures = (said[STATS], said[RESULTS] | CountResults()) | CountWindows(CONFIG)
        first = StatsPart(sessions_opened=1, chunks=5, audio_us=500_000, lag_ms=0, records_behind=0)
        second = StatsPart(
            sessions_ended={"end_of_stream": 1},
            chunks=5,
            audio_us=500_000,
            finals=1,
            lag_ms=0,
            records_behind=0,
        )
        expected = [(1_000_000, 1_010_000, first), (1_010_000, 1_020_000, second)]
        assert_that(figures | beam.Map(essence), equal_to(expected))


def test_a_final_counts_with_its_latency_and_an_end_with_its_reason() -> None:
    heard = Heard("s", 0, 16_000, 0, captured_ms=1_000)
    final = event_to_result(Final(0, 0, "a", (), 1.0, 0, 1), heard, MadeBy("m", "cpu"))
    assert final is not None
    assert count_result(final, 1_250) == StatsPart(finals=1, latencies={latency_bucket(250): 1})
    assert count_result(final._replace(captured_ms=None), 1_250) == StatsPart(finals=1)
    ended = session_end(heard, MadeBy("m", "cpu"), "idle")
    assert count_result(ended, 1_250) == StatsPart(sessions_ended={"idle": 1})
    assert count_result(final._replace(type="partial"), 1_250) is None
