"""What a lean worker leaves out of a bundle, and what it still says: run by Beam's own worker in this process."""

import threading
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.metrics.cells import DistributionData
from apache_beam.metrics.metricbase import MetricName
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineResult
from apache_beam.runners.worker import statecache
from apache_beam.runners.worker.bundle_processor import BundleProcessor
from apache_beam.runners.worker.sdk_worker import SdkWorker
from apache_beam.runners.worker.statesampler import StateSampler

from pipelines.lean_worker import _size, work_lean


@pytest.fixture
def lean(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lean worker for as long as a test lasts."""
    for owner, name in (
        (SdkWorker, "process_bundle_progress"),
        (BundleProcessor, "monitoring_infos"),
        (statecache, "get_deep_size"),
        (StateSampler, "start"),
        (StateSampler, "stop"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    work_lean()


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


def test_an_answer_about_progress_says_nothing(lean: None) -> None:
    request = beam_fn_api_pb2.ProcessBundleProgressRequest(instruction_id="other")
    # The worker is not looked at.
    answer = SdkWorker.process_bundle_progress(None, request, "this")
    assert answer == beam_fn_api_pb2.InstructionResponse(
        instruction_id="this", process_bundle_progress=beam_fn_api_pb2.ProcessBundleProgressResponse()
    )


@pytest.mark.parametrize("value", [[], [b""], [b"state" * 1000, b"more"], [b"state", 7], [[b"state"]], b"state", {}])
def test_a_state_in_the_cache_has_the_size_that_beam_finds(value: object) -> None:
    assert _size(value) == statecache.get_deep_size(value)
