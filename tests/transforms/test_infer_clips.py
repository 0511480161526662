"""InferClips on a runner: batches, counters, and one engine for a process. The engine is a stand-in."""

import pickle
from collections.abc import Sequence
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.metrics import MetricsFilter
from apache_beam.testing.util import assert_that, equal_to

from model_runtime import Audio, Event, Final, MadeBy, RouteConfig, SpeechEngine
from transforms.clip_inference import InferenceConfig
from transforms.infer_clips import METRICS, InferClips
from transforms.progress import ProgressFile
from transforms.records import ClipRow


class _Answering:
    """Answers with the number of samples."""

    loads = 0

    def run(self, clips: Sequence[Audio], batch_size: int) -> list[list[Event]]:
        return [[Final(0, 0, str(len(clip.samples)), (), 1.0, 0, 1)] for clip in clips]

    def made_by(self) -> MadeBy:
        return MadeBy("answering:1:float32", "npu")


def _load(*_: object) -> _Answering:
    _Answering.loads += 1
    return _Answering()


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    _Answering.loads = 0
    monkeypatch.setattr(SpeechEngine, "load", _load)


def _rows(count: int) -> list[ClipRow]:
    """Row n has n samples, and every tenth has none that are usable."""
    rows = [ClipRow(0, n, f"row {n}", "t", b"{}", data=b"\0" * (4 * n), sample_rate_hz=8000) for n in range(count)]
    return [row if row.row % 10 else row._replace(error="bad") for row in rows]


def _infer(batch_size: int = 2, progress: ProgressFile | None = None) -> InferClips:
    return InferClips("batch", RouteConfig(), InferenceConfig(batch_size=batch_size), progress=progress)


def _metrics(count: int, batch_size: int) -> dict[str, object]:
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create(_rows(count), reshuffle=False) | _infer(batch_size)
    result = pipeline.run()
    result.wait_until_finish()
    found = result.metrics().query(MetricsFilter().with_namespace(METRICS))
    return {each.key.metric.name: each.result for kind in ("counters", "distributions") for each in found[kind]}


def test_every_row_has_its_own_answer() -> None:
    with beam.Pipeline() as pipeline:
        results = pipeline | beam.Create(_rows(30)) | _infer()
        answers = results | beam.Map(lambda result: (result.row, result.pred_text, result.error, result.device))
        assert_that(
            answers, equal_to([(n, str(n) if n % 10 else "", "" if n % 10 else "bad", "npu") for n in range(30)])
        )


def test_counters_say_rows_errors_audio_and_devices() -> None:
    metrics = _metrics(20, 2)
    assert {name: metrics[name] for name in ("rows", "errors", "audio_ms", "device/npu")} == {
        "rows": 20,
        "errors": 2,
        "audio_ms": sum(round(n / 8) for n in range(20) if n % 10),
        "device/npu": 18,
    }


def test_rows_come_in_hands_of_four_batches() -> None:
    batches = _metrics(20, 2)["batch_rows"]
    assert (batches.max, batches.count, batches.sum) == (8, 3, 20)  # type: ignore[attr-defined]


def test_rows_with_much_data_come_in_smaller_hands() -> None:
    row = ClipRow(0, 1, "big", "t", b"{}", data=bytes(5 << 20))
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create([4]) | beam.FlatMap(lambda count: [row] * count).with_output_types(ClipRow) | _infer(1)
    result = pipeline.run()
    result.wait_until_finish()
    (batches,) = result.metrics().query(MetricsFilter().with_name("batch_rows"))["distributions"]
    assert (batches.result.max, batches.result.count) == (2, 2)


def test_engine_is_loaded_once_and_the_launcher_shares_it() -> None:
    infer = _infer()
    held = infer.load_engine()
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(_rows(30)) | infer
    assert (_Answering.loads, type(held)) == (1, _Answering)


def test_step_can_be_pickled_after_the_launcher_has_loaded_the_engine() -> None:
    infer = _infer()
    infer.load_engine()
    assert not hasattr(pickle.loads(pickle.dumps(infer._infer)), "engine")


def test_progress_counts_good_and_bad_rows(tmp_path: Path) -> None:
    progress = ProgressFile(str(tmp_path / "rows"))
    assert progress.total() == 0
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(_rows(30)) | _infer(progress=progress)
    assert progress.total() == 30
