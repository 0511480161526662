"""A worker of the pool's, asked for and given work by a runner of Beam's as a TaskManager asks for it."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apache_beam as beam
import grpc
import pytest
from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.portability.api import beam_fn_api_pb2_grpc
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import ExternalEnvironment

from pipelines import worker
from pipelines.worker_pool import WorkerPool


@pytest.fixture
def pool() -> Iterator[str]:
    """The address of a pool of workers."""
    pool, server = WorkerPool(0), grpc.server(ThreadPoolExecutor(4))
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()
    pool.close()


def names_of_threads(file: Path) -> Callable[[int], None]:
    """Gives a step that writes down its process and which functions the threads of that run, and counts."""

    # Written within another, it goes to the worker by value: this file cannot be imported there.
    def write(element: int) -> None:
        running = (getattr(getattr(thread, "_target", None), "__qualname__", "") for thread in threading.enumerate())
        file.write_text("\n".join((str(os.getpid()), *running)))
        Metrics.counter("test", "seen").inc()

    return write


def test_a_bundle_has_no_thread_that_samples_its_states_and_its_counts_are_told(
    pool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By which name the runner lets itself be called back; the machine's own may be one that nobody knows.
    monkeypatch.setattr(socket, "getfqdn", lambda: "localhost")
    pipeline = beam.Pipeline(FnApiRunner(ExternalEnvironment(pool)))
    pipeline | beam.Create([3, 5, 4]) | beam.Map(names_of_threads(tmp_path / "threads"))
    result = pipeline.run()
    result.wait_until_finish()
    process, *functions = (tmp_path / "threads").read_text().splitlines()
    assert int(process) != os.getpid()
    assert "StateSampler.run" not in functions
    (seen,) = result.metrics().query(MetricsFilter().with_namespace("test"))["counters"]
    assert seen.committed == 3


def test_it_is_lean_before_it_works_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []

    class Harness:
        def __init__(self, *arguments: object, **settings: object) -> None:
            done.append((arguments, settings))

        def run(self) -> None:
            done.append("work")

    monkeypatch.setattr(worker, "work_lean", lambda: done.append("lean"))
    monkeypatch.setattr(worker, "SdkHarness", Harness)
    assert worker.main(["--endpoint=localhost:1", "--id=1-1", "--state-cache-bytes=5"]) == 0
    assert done == ["lean", (("localhost:1",), {"worker_id": "1-1", "state_cache_size": 5}), "work"]
