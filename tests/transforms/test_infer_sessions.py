"""InferSessions under a bounded and an unbounded runner, with one expectation; and its timers and state."""

import pickle
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.test_stream import TestStream
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Timestamp

from model_runtime.devices import RouteConfig
from transforms.dead_letter import DEAD_LETTERS
from transforms.engine_handle import _EngineFn
from transforms.infer_sessions import InferSessions
from transforms.result import ENHANCED, RESULTS
from transforms.session_config import OutputConfig, SessionConfig
from transforms.stream_records import Chunk

SESSION = SessionConfig(idle_timeout_ms=5_000, tombstone_ms=60_000)
OUTPUT = OutputConfig(partials=False, enhanced=True)

# This runner takes some ms for each; in test_session_memory.py there are as many as the field case has.
KEYS = 300

Said = list[tuple[str, str]]


@pytest.fixture(autouse=True)
def stand_in_for_the_engine(stand_in: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_EngineFn, "load_engine", lambda self: stand_in)


@pytest.fixture
def story(make_chunk: Callable[..., Chunk], noise: np.ndarray) -> list[Chunk]:
    """Two sessions at the same time: a ends its stream, with one bad chunk; b falls silent."""
    parts = np.split(noise, 10)
    a = [make_chunk(i, part, session="a", end_of_stream=i == 9) for i, part in enumerate(parts)]
    b = [make_chunk(i, part, session="b") for i, part in enumerate(parts[:4])]
    a[5] = a[5]._replace(encoding="OPUS")
    return sorted(a + b, key=lambda chunk: chunk.stream_ms)


@pytest.fixture
def expected(noise: np.ndarray, final_of: Callable[[np.ndarray], str]) -> Said:
    return [
        ("a/500/0/9", final_of(np.concatenate([noise[:8000], noise[9600:]]))),
        ("a/500/-1/end", "end_of_stream"),
        ("b/500/0/4", final_of(noise[:6400])),
        ("b/500/-1/end", "idle"),
    ]


def check(chunks: beam.PCollection, expected: Said, pieces: int, ends: int, refused: Sequence[int]) -> None:
    said = chunks | InferSessions("streaming", RouteConfig(), SESSION, OUTPUT)
    results = said[RESULTS] | "Said" >> beam.Map(lambda result: (result.result_id, result.text or result.reason))
    clean = said[ENHANCED] | "Payloads" >> beam.Map(lambda chunk: (len(chunk.payload), chunk.end_of_stream))
    letters = said[DEAD_LETTERS] | "Offsets" >> beam.Map(lambda letter: letter.offset)
    assert_that(results, equal_to(expected), "results")
    assert_that(clean, equal_to([(3200, False)] * pieces + [(0, True)] * ends), "enhanced")
    assert_that(letters, equal_to(list(refused)), "dead letters")


def stamped(chunk: Chunk) -> TimestampedValue:
    return TimestampedValue((chunk.session, [chunk]), Timestamp(micros=chunk.stream_ms * 1000))


def test_bounded(story: list[Chunk], expected: Said) -> None:
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        chunks = pipeline | beam.Create(story) | beam.Map(stamped).with_output_types(tuple[str, list[Chunk]])
        check(chunks, expected, pieces=13, ends=2, refused=[505])


def stream(chunks: Sequence[Chunk], until_ms: int) -> TestStream:
    """Each chunk when the watermark has come to its time, then time up to `until_ms`."""
    events = TestStream(coder=beam.coders.FastPrimitivesCoder())
    for stream_ms, together in groupby(chunks, key=lambda chunk: chunk.stream_ms):
        events.advance_watermark_to(Timestamp(micros=stream_ms * 1000))
        events.add_elements([stamped(chunk) for chunk in together])
    # Timers that the last elements have set are lost where infinity follows at once.
    events.advance_watermark_to(Timestamp(micros=until_ms * 1000))
    return events.advance_watermark_to_infinity()


def streaming_pipeline() -> beam.Pipeline:
    options = PipelineOptions([])
    options.view_as(StandardOptions).streaming = True
    return beam.Pipeline(runner=BundleBasedDirectRunner(), options=options)


def test_unbounded(story: list[Chunk], expected: Said) -> None:
    with streaming_pipeline() as pipeline:
        events = pipeline | stream(story, until_ms=1_010_000)
        chunks = events | beam.Map(lambda pair: pair).with_output_types(tuple[str, list[Chunk]])
        check(chunks, expected, pieces=13, ends=2, refused=[505])


def test_a_session_stays_open_while_chunks_come_within_the_idle_timeout(
    make_chunk: Callable[..., Chunk], noise: np.ndarray, final_of: Callable[[np.ndarray], str]
) -> None:
    slow = [make_chunk(i, noise[:1600], event_ms=1_000_000 + 4_000 * i) for i in range(5)]
    with streaming_pipeline() as pipeline:
        events = pipeline | stream(slow, until_ms=1_100_000)
        chunks = events | beam.Map(lambda pair: pair).with_output_types(tuple[str, list[Chunk]])
        said = [("s/500/0/5", final_of(np.tile(noise[:1600], 5))), ("s/500/-1/end", "idle")]
        check(chunks, said, pieces=5, ends=1, refused=[])


def test_a_key_is_remembered_for_the_time_of_its_tombstone_and_then_forgotten(
    make_chunk: Callable[..., Chunk], noise: np.ndarray, final_of: Callable[[np.ndarray], str]
) -> None:
    part = noise[:1600]
    ended = make_chunk(0, part, end_of_stream=True)
    late = make_chunk(1, part, event_ms=1_030_000)
    forgotten = make_chunk(1, part, event_ms=1_199_000, offset=777)
    with streaming_pipeline() as pipeline:
        events = pipeline | stream([ended, late, forgotten], until_ms=1_300_000)
        chunks = events | beam.Map(lambda pair: pair).with_output_types(tuple[str, list[Chunk]])
        said = [
            ("s/500/0/1", final_of(part)),
            ("s/500/-1/end", "end_of_stream"),
            ("s/777/0/1", final_of(part)),
            ("s/777/-1/end", "idle"),
        ]
        check(chunks, said, pieces=2, ends=2, refused=[501])


def test_a_gap_is_given_up_and_the_longest_session_ended_at_their_times_by_timers_alone(
    make_chunk: Callable[..., Chunk], noise: np.ndarray, final_of: Callable[[np.ndarray], str]
) -> None:
    session = SessionConfig(idle_timeout_ms=60_000, tombstone_ms=60_000, reorder_ms=1_000, max_session_ms=20_000)
    part = noise[:1600]
    pipeline = streaming_pipeline()
    events = pipeline | stream([make_chunk(0, part), make_chunk(2, part)], until_ms=1_200_000)
    chunks = events | beam.Map(lambda pair: pair).with_output_types(tuple[str, list[Chunk]])
    said = chunks | InferSessions("streaming", RouteConfig(), session, OutputConfig(enhanced=False))
    timed = said[RESULTS] | beam.Map(
        lambda result, time=beam.DoFn.TimestampParam: (time.micros // 1000, result.text or result.reason)
    )
    heard = np.concatenate([part, np.zeros(1600, np.float32), part])
    ended = [(1_020_000, final_of(heard)), (1_020_000, "length")]
    assert_that(timed, equal_to([(1_000_000, "1"), (1_001_200, "2"), (1_001_200, "3"), *ended]))
    assert memory_of(pipeline) == Memory(1, 0, 0)


class Memory(NamedTuple):
    """What the runner keeps of the sessions' keys when a pipeline is over."""

    keys: int
    values: int
    timers: int


def memory_of(pipeline: beam.Pipeline) -> Memory:
    result = pipeline.run()
    result.wait_until_finish()
    steps = result._evaluation_context._transform_keyed_states.items()
    states = [state for step, keys in steps if "InferSessions" in step.full_label for state in keys.values()]
    values = [value for state in states for tags in state.state.values() for value in tags.values() if value]
    return Memory(len(states), len(values), sum(len(timers) for state in states for timers in state.timers.values()))


def test_field_case_s08_of_many_keys_with_one_chunk_and_no_end_neither_state_nor_timer_is_left(
    make_chunk: Callable[..., Chunk], noise: np.ndarray, final_of: Callable[[np.ndarray], str]
) -> None:
    keys = [f"k{number}" for number in range(KEYS)]
    pipeline = streaming_pipeline()
    events = pipeline | stream([make_chunk(0, noise[:1600], session=key) for key in keys], until_ms=1_100_000)
    chunks = events | beam.Map(lambda pair: pair).with_output_types(tuple[str, list[Chunk]])
    text = final_of(noise[:1600])
    said = [row for key in keys for row in ((f"{key}/500/0/1", text), (f"{key}/500/-1/end", "idle"))]
    check(chunks, said, pieces=KEYS, ends=KEYS, refused=[])
    assert memory_of(pipeline) == Memory(KEYS, 0, 0)


def test_the_transform_can_be_built_and_pickled_without_models() -> None:
    fn = InferSessions("no such recipe", RouteConfig())._fn
    assert pickle.loads(pickle.dumps(fn))._recipe == "no such recipe"
