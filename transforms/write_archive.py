"""WriteArchive: finals and sessions into Parquet files by windows of event time."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.transforms.trigger import AccumulationMode, AfterCount, AfterProcessingTime, AfterWatermark
from apache_beam.transforms.window import FixedWindows, IntervalWindow, TimestampedValue
from apache_beam.utils.timestamp import Timestamp

from transforms.archive_config import ArchiveConfig
from transforms.archive_file import ArchiveRow, add_rows, table_path
from transforms.archive_rows import final_row, table_time_ms
from transforms.keep_sessions import KeepSessions
from transforms.result import Result, life_of
from transforms.stream_records import SessionPart


class WriteArchive(beam.PTransform):
    """Takes (results, the (life, SessionPart) of audio); gives the path of each file as often as it was written.

    A row lies in the window of the end of what it is about. A window's files are written when the watermark passes its
    end, before that as often as the configuration says, and once more for each row that comes later. Rows that come
    when allowed_lateness_ms are over go, by their stream time, into files of their own.
    """

    def __init__(self, config: ArchiveConfig, max_session_ms: int) -> None:
        super().__init__()
        self._config = config
        self._max_session_ms = max_session_ms

    def expand(self, inputs: tuple[tuple[beam.PCollection, ...], beam.PCollection]) -> beam.PCollection:
        results, heard = inputs
        config = self._config
        lasting = results | "Results" >> beam.Flatten() | "Lasting" >> beam.Filter(_is_lasting)
        said = lasting | "Key" >> beam.Map(_keyed).with_output_types(tuple[str, SessionPart])
        sessions = (said, heard) | "KeepSessions" >> KeepSessions(config, self._max_session_ms)
        finals = lasting | "FinalRows" >> beam.ParDo(_FinalRowFn(config)).with_output_types(tuple[int, ArchiveRow])
        return (
            (finals, sessions)
            | "Rows" >> beam.Flatten()
            | "Place" >> beam.ParDo(_PlaceFn(config)).with_output_types(tuple[str, ArchiveRow])
            | "Window" >> _windows(config)
            | "Group" >> beam.GroupByKey()
            | "Write" >> beam.ParDo(_WriteTableFn(config)).with_output_types(str)
        )


def _windows(config: ArchiveConfig) -> beam.WindowInto:
    early = AfterProcessingTime(config.early_firing_s) if config.early_firing_s else None
    return beam.WindowInto(
        FixedWindows(config.window_ms / 1000),
        trigger=AfterWatermark(early=early, late=AfterCount(1)),
        # A firing's rows are added to those that its file has already, so none has to be kept for the next one.
        accumulation_mode=AccumulationMode.DISCARDING,
        allowed_lateness=config.allowed_lateness_ms / 1000,
    )


def _is_lasting(result: Result) -> bool:
    return result.type in ("final", "session_end")


def _keyed(result: Result) -> tuple[str, SessionPart]:
    return life_of(result), SessionPart(result, None)


class _FinalRowFn(beam.DoFn):
    def __init__(self, config: ArchiveConfig) -> None:
        super().__init__()
        self._config = config

    def process(self, result: Result, time: Timestamp = beam.DoFn.TimestampParam) -> Iterator[tuple[int, ArchiveRow]]:
        if result.type == "final":
            stream_ms = time.micros // 1000
            yield stream_ms, final_row(result, stream_ms, self._config)


class _PlaceFn(beam.DoFn):
    def __init__(self, config: ArchiveConfig) -> None:
        super().__init__()
        self._drop_late = config.late == "drop"
        self._rows = Metrics.counter("speech.archive", "rows")
        self._late = Metrics.counter("speech.archive", "rows_late")

    def process(self, element: tuple[int, ArchiveRow]) -> Iterator[TimestampedValue]:
        stream_ms, row = element
        self._rows.inc()
        if row.late:
            self._late.inc()
            if self._drop_late:
                return
        time = Timestamp(micros=table_time_ms(row, stream_ms) * 1000)
        yield TimestampedValue((f"{row.kind}{' late' * row.late}", row), time)


class _WriteTableFn(beam.DoFn):
    def __init__(self, config: ArchiveConfig) -> None:
        super().__init__()
        self._folder = Path(config.folder)

    def process(
        self, element: tuple[str, Iterable[ArchiveRow]], window: IntervalWindow = beam.DoFn.WindowParam
    ) -> Iterator[str]:
        rows = list(element[1])
        begin_ms, end_ms = window.start.micros // 1000, window.end.micros // 1000
        path = table_path(self._folder, rows[0].kind, rows[0].late, begin_ms, end_ms)
        add_rows(self._folder, path, rows[0].kind, rows)
        yield str(path)
