"""What a lean worker leaves out of a bundle, and what it still says: run by Beam's own worker in this process."""

import threading
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.metrics.cells import DistributionData
from apache_beam.metrics.metricbase import MetricName
from apache_beam.portability.api import beam_fn_api_pb2, metrics_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineResult
from apache_beam.runners.worker.bundle_processor import BundleProcessor
from apache_beam.runners.worker.sdk_worker import SdkWorker
from apache_beam.runners.worker.statesampler import StateSampler

from pipelines.lean_worker import work_lean, work_lean_on_prism


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beam's worker is as it comes when a test is over."""
    for owner, name in (
        (SdkWorker, "process_bundle_progress"),
        (BundleProcessor, "monitoring_infos"),
        (StateSampler, "start"),
        (StateSampler, "stop"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))


@pytest.fixture
def lean(restored: None) -> None:
    work_lean()


@pytest.fixture
def lean_on_prism(restored: None) -> None:
    work_lean_on_prism()


class CountFn(beam.DoFn):
    """Counts, and writes down which functions the threads of its process run."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen = Metrics.counter("test", "seen")
        self._never = Metrics.counter("test", "never")
        self._sizes = Metrics.distribution("test", "sizes")

    def process(self, element: int) -> None:
        self._seen.inc()
        self._never.inc(0)
        self._sizes.update(element)
        functions = [getattr(getattr(thread, "_target", None), "__qualname__", "") for thread in threading.enumerate()]
        self._file.write_text("\n".join(functions))


def run(folder: Path) -> tuple[PipelineResult, list[str]]:
    pipeline = beam.Pipeline(FnApiRunner())
    pipeline | beam.Create([3, 5, 4]) | beam.ParDo(CountFn(folder / "functions"))
    result = pipeline.run()
    result.wait_until_finish()
    return result, (folder / "functions").read_text().splitlines()


def samples_states(functions: list[str]) -> bool:
    return "StateSampler.run" in functions


class Bundle:
    """One that runs, with the metrics that it tells of itself; it stands in for the cache that it is found in, too."""

    consuming_received_data = True

    def lookup(self, instruction_id: str) -> "Bundle":
        assert instruction_id == "other"
        return self

    def monitoring_infos(self) -> list[metrics_pb2.MonitoringInfo]:
        return [metrics_pb2.MonitoringInfo(urn="seen")]


def progress() -> beam_fn_api_pb2.ProcessBundleProgressResponse:
    """What a worker answers while it is at that bundle."""
    request = beam_fn_api_pb2.ProcessBundleProgressRequest(instruction_id="other")
    answer = SdkWorker(Bundle()).process_bundle_progress(request, "this")
    assert (answer.instruction_id, answer.error) == ("this", "")
    return answer.process_bundle_progress


def test_own_metrics_are_as_they_would_be(lean: None, tmp_path: Path) -> None:
    result, _ = run(tmp_path)
    metrics = result.metrics().query(MetricsFilter().with_namespace("test"))
    assert {each.key.metric.name: each.committed for each in metrics["counters"]} == {"seen": 3}
    (sizes,) = metrics["distributions"]
    assert sizes.key.metric == MetricName("test", "sizes")
    assert sizes.committed.data == DistributionData(12, 3, 3, 5)


def test_no_thread_samples_the_states_of_a_bundle(lean: None, tmp_path: Path) -> None:
    _, functions = run(tmp_path)
    assert not samples_states(functions)


def test_a_worker_as_it_comes_has_such_a_thread(tmp_path: Path) -> None:
    _, functions = run(tmp_path)
    assert samples_states(functions)


def test_on_prism_no_thread_samples_them_either(lean_on_prism: None, tmp_path: Path) -> None:
    _, functions = run(tmp_path)
    assert not samples_states(functions)


def test_an_answer_about_progress_is_a_true_one(lean: None) -> None:
    answer = progress()
    assert [info.urn for info in answer.monitoring_infos] == ["seen"]
    assert answer.consuming_received_data


def test_on_prism_an_answer_about_progress_says_nothing(lean_on_prism: None) -> None:
    assert progress() == beam_fn_api_pb2.ProcessBundleProgressResponse()
