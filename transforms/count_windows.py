"""CountWindows: one record of figures for each window of event time, whatever worker saw what."""

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Annotated

import apache_beam as beam
import msgspec
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import FixedWindows, IntervalWindow

from transforms.result import Result
from transforms.timing import clock_ms
from transforms.window_stats import StatsPart, WindowStats, add_up, latency_bucket


class StatsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Figures of the job by windows of event time, into a topic of their own."""

    # Write them.
    write: bool = False
    # Length of a window in ms. A window's figures are written when the watermark has passed its end.
    window_ms: Annotated[int, msgspec.Meta(ge=1_000, le=86_400_000)] = 60_000


class CountWindows(beam.PTransform):
    """Takes a tuple of PCollections of StatsPart; gives one WindowStats for each window in which there was something.

    Each part counts in the window of its Beam timestamp. Nothing is late: parts come with stream times, which the
    watermark has not passed.
    """

    def __init__(self, config: StatsConfig) -> None:
        super().__init__()
        self._config = config

    def expand(self, parts: tuple[beam.PCollection, ...]) -> beam.PCollection:
        return (
            parts
            | "Together" >> beam.Flatten()
            | "Window" >> beam.WindowInto(FixedWindows(self._config.window_ms / 1000))
            | "Key" >> beam.Map(lambda part: ("all", part)).with_output_types(tuple[str, StatsPart])
            | "AddUp" >> beam.CombinePerKey(_AddUpFn())
            | "Name" >> beam.ParDo(_NameFn()).with_output_types(WindowStats)
        )


class CountResults(beam.PTransform):
    """Gives a StatsPart for each final and each end of a session; the latency is measured here, where it is written."""

    def expand(self, results: beam.PCollection) -> beam.PCollection:
        return results | "Count" >> beam.ParDo(_CountResultsFn()).with_output_types(StatsPart)


def count_result(result: Result, now_ms: int) -> StatsPart | None:
    """Gives what a result that is written at `now_ms` counts for; None for those that count for nothing."""
    if result.type == "session_end":
        return StatsPart(sessions_ended={result.reason: 1})
    if result.type != "final":
        return None
    timed = result.captured_ms is not None and result.captured_ms <= now_ms
    latencies = {latency_bucket(now_ms - result.captured_ms): 1} if timed and result.captured_ms is not None else {}
    return StatsPart(finals=1, words=len(result.words), latencies=latencies)


class _CountResultsFn(beam.DoFn):
    def __init__(self) -> None:
        super().__init__()
        self._latency_ms = Metrics.distribution("speech.results", "latency_ms")

    def process(self, result: Result) -> Iterator[StatsPart]:
        now_ms = clock_ms()
        part = count_result(result, now_ms)
        if part is not None:
            yield part
            if part.latencies and result.captured_ms is not None:
                self._latency_ms.update(now_ms - result.captured_ms)


class _AddUpFn(beam.CombineFn):
    def create_accumulator(self) -> StatsPart:
        return StatsPart()

    def add_input(self, accumulator: StatsPart, part: StatsPart) -> StatsPart:
        return add_up(accumulator, part)

    def merge_accumulators(self, accumulators: Iterable[StatsPart]) -> StatsPart:
        return reduce(add_up, accumulators, StatsPart())

    def extract_output(self, accumulator: StatsPart) -> StatsPart:
        return accumulator


class _NameFn(beam.DoFn):
    def process(
        self, element: tuple[str, StatsPart], window: IntervalWindow = beam.DoFn.WindowParam
    ) -> Iterator[WindowStats]:
        yield WindowStats(window.start.micros // 1000, window.end.micros // 1000, element[1])
