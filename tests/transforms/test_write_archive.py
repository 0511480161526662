"""The archive under TestStream: windows, early firings, late rows, and sessions with their audio."""

from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.testing.test_stream import TestStream
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Timestamp

from model_runtime.records import Final, MadeBy, Word
from transforms.archive_config import ArchiveConfig
from transforms.archive_file import FINALS, SESSIONS, ArchiveRow, add_rows, table_path
from transforms.archive_rows import final_row, session_row
from transforms.record_coder import RecordCoder
from transforms.result import Gap, Heard, Result, event_to_result, session_end, session_life
from transforms.session_anchors import Anchor
from transforms.stream_records import SessionAudio, SessionPart
from transforms.write_archive import WriteArchive

BEGIN_MS = 1_700_000_040_000
RATE_HZ = 16_000
MADE_BY = MadeBy("m:1", "cpu")


@pytest.fixture
def config(tmp_path: Path) -> ArchiveConfig:
    return ArchiveConfig(folder=str(tmp_path), window_ms=60_000, allowed_lateness_ms=30_000)


def final(session: str, utterance: int, end_s: float) -> Result:
    """A final that ends so long after the session's begin, which is that of the window."""
    heard = Heard(session, 5, RATE_HZ, 0, anchors=[Anchor(0, BEGIN_MS)])
    end = int(end_s * RATE_HZ)
    event = Final(utterance, 1, f"{session}{utterance}", (Word("w", 1, 2, 0.5),), 0.5, end - RATE_HZ, end)
    result = event_to_result(event, heard, MADE_BY)
    assert result is not None
    return result


def at(seconds: float, result: Result) -> TimestampedValue:
    return TimestampedValue(result, Timestamp(micros=int((BEGIN_MS / 1000 + seconds) * 1_000_000)))


def since_begin(seconds: float) -> Timestamp:
    return Timestamp(micros=int((BEGIN_MS / 1000 + seconds) * 1_000_000))


def run(events: TestStream, config: ArchiveConfig, written: list[str]) -> None:
    """Runs the archive over a stream of results, without audio; `written` are the files in any order."""
    options = PipelineOptions([])
    options.view_as(StandardOptions).streaming = True
    with beam.Pipeline(runner=BundleBasedDirectRunner(), options=options) as pipeline:
        results = pipeline | "Results" >> events
        # A stage of its own, so that what is typed is typed.
        results = results | beam.Map(lambda result: result).with_output_types(Result)
        heard = results | beam.FlatMap(lambda _: []).with_output_types(tuple[str, SessionPart])
        paths = ((results,), heard) | WriteArchive(config, max_session_ms=3_600_000)
        assert_that(paths | beam.Map(lambda path: Path(path).parent.name + "/" + Path(path).name), equal_to(written))


def new_stream() -> TestStream:
    return TestStream(coder=RecordCoder(Result)).advance_watermark_to(since_begin(0))


def texts(config: ArchiveConfig, kind: str, begin_s: int = 0, late: bool = False) -> list[str]:
    begin_ms = BEGIN_MS + 1000 * begin_s
    path = table_path(Path(config.folder), kind, late, begin_ms, begin_ms + config.window_ms)
    return pq.read_table(path).column("text").to_pylist()


def test_finals_lie_in_the_window_of_their_end(config: ArchiveConfig) -> None:
    events = new_stream().add_elements(
        [at(11, final("a", 0, 10)), at(62, final("a", 1, 59)), at(62, final("b", 0, 60))]
    )
    events.advance_watermark_to(since_begin(200)).advance_watermark_to_infinity()
    run(events, config, ["finals/20231114T221400Z-60s.parquet", "finals/20231114T221500Z-60s.parquet"])
    assert texts(config, FINALS) == ["a0", "a1"]
    assert texts(config, FINALS, begin_s=60) == ["b0"]


def test_a_late_final_is_added_to_the_file_of_its_window(config: ArchiveConfig) -> None:
    events = new_stream().add_elements([at(11, final("a", 0, 10))]).advance_watermark_to(since_begin(70))
    events.add_elements([at(71, final("slow", 0, 20))]).advance_watermark_to(since_begin(200))
    run(events.advance_watermark_to_infinity(), config, ["finals/20231114T221400Z-60s.parquet"] * 2)
    assert texts(config, FINALS) == ["a0", "slow0"]


@pytest.mark.parametrize("late", ["file", "drop"])
def test_a_final_that_is_later_than_allowed_leaves_its_window_as_it_is(config: ArchiveConfig, late: str) -> None:
    config = ArchiveConfig(config.folder, config.window_ms, config.allowed_lateness_ms, late=late)
    events = new_stream().add_elements([at(11, final("a", 0, 10))]).advance_watermark_to(since_begin(90))
    events.add_elements([at(90, final("slow", 0, 20))]).advance_watermark_to(since_begin(200))
    own = ["finals/late-20231114T221500Z-60s.parquet"] * (late == "file")
    run(events.advance_watermark_to_infinity(), config, ["finals/20231114T221400Z-60s.parquet", *own])
    assert texts(config, FINALS) == ["a0"]
    if own:
        assert texts(config, FINALS, begin_s=60, late=True) == ["slow0"]


def test_a_window_that_is_open_is_written_early_and_again_at_its_end(config: ArchiveConfig) -> None:
    config = ArchiveConfig(config.folder, config.window_ms, early_firing_s=5)
    events = new_stream().add_elements([at(11, final("a", 0, 10))]).advance_processing_time(6)
    events.add_elements([at(21, final("a", 1, 20))]).advance_watermark_to(since_begin(200))
    run(events.advance_watermark_to_infinity(), config, ["finals/20231114T221400Z-60s.parquet"] * 2)
    assert texts(config, FINALS) == ["a0", "a1"]


@pytest.mark.parametrize(("stream_s", "late"), [(89, False), (90, True)])
def test_late_is_what_comes_when_the_windows_lateness_is_over(config: ArchiveConfig, stream_s: int, late: bool) -> None:
    row = final_row(final("a", 0, 59), BEGIN_MS + 1000 * stream_s, config)
    assert (row.kind, row.late, row.event_ms) == (FINALS, late, BEGIN_MS + 59_000)


def test_what_has_no_time_of_its_own_has_that_of_the_stream(config: ArchiveConfig) -> None:
    row = final_row(final("a", 0, 59)._replace(event_ms=None), BEGIN_MS + 500, config)
    assert row == ArchiveRow(FINALS, False, BEGIN_MS + 500, row.columns)


def test_a_session_has_the_texts_of_its_finals_in_their_order(config: ArchiveConfig) -> None:
    heard = Heard("a", 5, RATE_HZ, 30_000, [Gap(5, 6, 3)], 2, anchors=[Anchor(0, BEGIN_MS)])
    end = session_end(heard, MADE_BY, "idle")
    row = session_row(end, [final("a", 1, 20), final("a", 0, 10)], "", BEGIN_MS + 40_000, config)
    path = table_path(Path(config.folder), SESSIONS, False, BEGIN_MS, BEGIN_MS + 60_000)
    add_rows(Path(config.folder), path, SESSIONS, [row])
    (kept,) = pq.read_table(path).to_pylist()
    said = (kept["text"], kept["duration"], kept["utterances"], kept["word_count"], kept["speech_s"], kept["reason"])
    assert said == ("a0 a1", 30.0, 2, 2, 2.0, "idle")
    assert (kept["audio"], kept["missing_chunks"], kept["duplicates"]) == (None, 3, 2)


def test_a_sessions_audio_and_results_come_together_by_different_ways(config: ArchiveConfig, tmp_path: Path) -> None:
    samples = np.random.default_rng(1).integers(-30_000, 30_000, 3_200).astype("<i2")
    life = session_life("a", 5)
    end = session_end(Heard("a", 5, RATE_HZ, 200, anchors=[Anchor(0, BEGIN_MS)]), MADE_BY, "end_of_stream")
    parts = [
        (0.2, SessionPart(end, None)),
        (0.2, SessionPart(None, SessionAudio(life, RATE_HZ, 1_600, samples[1_600:].tobytes()))),
        (0.1, SessionPart(None, SessionAudio(life, RATE_HZ, 0, samples[:1_600].tobytes()))),
        (0.2, SessionPart(final("a", 0, 0.15), None)),
    ]
    events = TestStream(coder=beam.coders.FastPrimitivesCoder()).advance_watermark_to(since_begin(0))
    events.add_elements([TimestampedValue((life, part), since_begin(seconds)) for seconds, part in parts])
    # This runner's timers do not hold the watermark: it is led past the session's end, and then past the window's.
    events.advance_watermark_to(since_begin(1)).advance_watermark_to(since_begin(200)).advance_watermark_to_infinity()
    options = PipelineOptions([])
    options.view_as(StandardOptions).streaming = True
    with beam.Pipeline(runner=BundleBasedDirectRunner(), options=options) as pipeline:
        heard = pipeline | events | beam.Map(lambda pair: pair).with_output_types(tuple[str, SessionPart])
        results = pipeline | beam.Create([]).with_output_types(Result)
        ((results,), heard) | WriteArchive(config, max_session_ms=3_600_000)
    (kept,) = pq.read_table(tmp_path / SESSIONS / "20231114T221400Z-60s.parquet").to_pylist()
    assert (kept["text"], kept["utterances"], kept["duration"]) == ("a0", 1, 0.2)
    written, rate_hz = soundfile.read(tmp_path / SESSIONS / kept["audio"]["path"], dtype="int16")
    assert rate_hz == RATE_HZ
    np.testing.assert_array_equal(written, samples)
