"""The pool of workers, with a control service in place of a TaskManager's; real ones are in tests/flink."""

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc, endpoints_pb2

from pipelines.kept_worker import KeptWorker
from pipelines.local_jobs import is_alive, kill_process, wait_until
from pipelines.worker_pool import WorkerPool, main

# Workers import Beam, on machines that have other things to do as well.
TIMEOUT_S = 120


class Control(beam_fn_api_pb2_grpc.BeamFnControlServicer):
    """Takes calls of workers, notes their ids, and hangs up when it is told to."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self._hung_up = threading.Event()
        self._server = grpc.server(ThreadPoolExecutor(8))
        beam_fn_api_pb2_grpc.add_BeamFnControlServicer_to_server(self, self._server)
        self.endpoint = f"localhost:{self._server.add_insecure_port('localhost:0')}"
        self._server.start()

    def Control(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        self.called.append(dict(context.invocation_metadata())["worker_id"])
        self._hung_up.wait()
        yield from ()

    def hang_up(self) -> None:
        self._hung_up.set()

    def close(self) -> None:
        self.hang_up()
        self._server.stop(None).wait()


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(0)
    yield pool
    pool.close()


@pytest.fixture
def make_control() -> Iterator[Callable[[], Control]]:
    made: list[Control] = []

    def make() -> Control:
        made.append(Control())
        return made[-1]

    yield make
    for control in made:
        control.close()


def start(pool: WorkerPool, worker_id: str, control: Control) -> int:
    """Asks for a worker; gives its process."""
    endpoint = endpoints_pb2.ApiServiceDescriptor(url=control.endpoint)
    before = children()
    request = beam_fn_api_pb2.StartWorkerRequest(worker_id=worker_id, control_endpoint=endpoint)
    assert not pool.StartWorker(request, None).error
    (pid,) = children() - before
    return pid


def stop(pool: WorkerPool, worker_id: str) -> None:
    assert not pool.StopWorker(beam_fn_api_pb2.StopWorkerRequest(worker_id=worker_id), None).error


def children() -> set[int]:
    tasks = (f"/proc/self/task/{task}/children" for task in os.listdir("/proc/self/task"))
    found: set[int] = set()
    for task in tasks:
        with open(task, encoding="utf-8") as file:
            found |= set(map(int, file.read().split()))
    return found


def test_a_worker_that_dies_before_it_has_called_is_started_again(
    pool: WorkerPool, make_control: Callable[[], Control]
) -> None:
    control = make_control()
    kill_process(start(pool, "1-1", control))
    assert control.called == []
    wait_until(lambda: control.called == ["1-1"], "the second worker calls", TIMEOUT_S)


def test_of_two_workers_with_one_id_the_one_is_stopped_whose_caller_hung_up(
    pool: WorkerPool, make_control: Callable[[], Control]
) -> None:
    first, second = make_control(), make_control()
    kept, left = start(pool, "1-1", first), start(pool, "1-1", second)
    wait_until(lambda: first.called == second.called == ["1-1"], "both workers call", TIMEOUT_S)
    second.hang_up()
    stop(pool, "1-1")
    assert (is_alive(kept), is_alive(left)) == (True, False)
    stop(pool, "1-1")
    assert not is_alive(kept)


def test_an_id_that_nobody_has_is_stopped_already(pool: WorkerPool) -> None:
    stop(pool, "7-7")


def test_a_worker_is_let_go_when_nobody_wants_it_any_more() -> None:
    with socket.socket() as caller:
        caller.bind(("127.0.0.1", 0))
        caller.listen()
        endpoint = f"127.0.0.1:{caller.getsockname()[1]}"
        worker = KeptWorker([sys.executable, "-c", "import signal; signal.pause()"], endpoint, pause_s=0.01)
        first = worker.pid
        kill_process(first)
        wait_until(lambda: worker.pid != first, "another takes its place", TIMEOUT_S)
    assert worker.is_kept()
    kill_process(worker.pid)
    wait_until(lambda: not worker.is_kept(), "it is let go", TIMEOUT_S)
    worker.end()


def test_a_worker_that_is_deaf_to_being_asked_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pipelines.kept_worker._END_S", 0.1)
    code = "import pathlib, signal; signal.signal(15, signal.SIG_IGN); pathlib.Path('deaf').touch(); signal.pause()"
    monkeypatch.chdir(tmp_path)
    worker = KeptWorker([sys.executable, "-c", code], "127.0.0.1:1")
    wait_until((tmp_path / "deaf").exists, "it is deaf", TIMEOUT_S)
    worker.end()
    assert not is_alive(worker.pid)


def test_a_port_that_is_taken_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["--port", str(port)]) == 1
    assert f"127.0.0.1:{port}" in capfd.readouterr().err
