"""What a lean worker leaves out of a bundle, and what it still says: run by Beam's own worker in this process."""

import threading
from collections.abc import Callable
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.coders import BytesCoder, StrUtf8Coder
from apache_beam.coders.coders import GlobalWindowCoder
from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.metrics.cells import DistributionData
from apache_beam.metrics.metricbase import MetricName
from apache_beam.portability.api import beam_fn_api_pb2, metrics_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineResult
from apache_beam.runners.worker import statecache
from apache_beam.runners.worker.bundle_processor import BundleProcessor, FnApiUserStateContext
from apache_beam.runners.worker.sdk_worker import SdkWorker
from apache_beam.runners.worker.statesampler import StateSampler
from apache_beam.transforms.userstate import BagStateSpec, ReadModifyWriteStateSpec, SetStateSpec
from apache_beam.transforms.window import GlobalWindow

from pipelines.lean_worker import _size, work_lean, work_lean_on_prism


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beam's worker is as it comes when a test is over."""
    for owner, name in (
        (SdkWorker, "process_bundle_progress"),
        (BundleProcessor, "monitoring_infos"),
        (FnApiUserStateContext, "commit"),
        (statecache, "get_deep_size"),
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


@pytest.mark.parametrize("value", [[], [b""], [b"state" * 1000, b"more"], [b"state", 7], [[b"state"]], b"state", {}])
def test_a_state_in_the_cache_has_the_size_that_beam_finds(value: object) -> None:
    assert _size(value) == statecache.get_deep_size(value)


class Handler:
    """Takes the states of a bundle, and writes down what is done and waited for."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def clear(self, key: beam_fn_api_pb2.StateKey) -> "Answer":
        return self._take(f"clear {key.bag_user_state.user_state_id}")

    def extend(self, key: beam_fn_api_pb2.StateKey, coder: object, elements: list[bytes]) -> "Answer":
        return self._take(f"extend {key.bag_user_state.user_state_id} {elements}")

    def _take(self, what: str) -> "Answer":
        self.log.append(what)
        return Answer(lambda: self.log.append(f"wait for {what}"))


class Answer:
    def __init__(self, get: Callable[[], None]) -> None:
        self.get = get


def test_all_states_of_a_bundle_are_written_before_an_answer_is_waited_for(lean: None) -> None:
    handler = Handler()
    context = FnApiUserStateContext(handler, "step", StrUtf8Coder(), GlobalWindowCoder())
    book, audio, parts = (
        ReadModifyWriteStateSpec("book", BytesCoder()),
        BagStateSpec("audio", BytesCoder()),
        SetStateSpec("parts", BytesCoder()),
    )
    context.get_state(book, "one", GlobalWindow()).write(b"new")
    context.get_state(parts, "one", GlobalWindow()).clear()
    context.get_state(audio, "one", GlobalWindow()).add(b"more")
    context.get_state(book, "two", GlobalWindow())
    context.get_state(audio, "two", GlobalWindow()).clear()
    context.commit()
    assert handler.log == [
        "clear book",
        "extend book [b'new']",
        "clear parts",
        "wait for clear parts",
        "extend audio [b'more']",
        "clear audio",
        "wait for clear book",
        "wait for extend book [b'new']",
        "wait for extend audio [b'more']",
        "wait for clear audio",
    ]
