"""A pool of Python workers for a Flink cluster's TaskManagers: --environment_type=EXTERNAL.

python -m pipelines.worker_pool --port 50000

Beam's own pool (apache_beam.runners.worker.worker_pool_main) listens on every interface of the machine, asks the runner
for state that it has just written, starts whatever `python` is on the path, and lets a TaskManager wait for ever for a
worker that died before it had called back. This one listens on loopback, keeps what a session's next chunk needs,
starts lean workers (pipelines.worker) of the Python that runs it, and keeps them as long as the TaskManager that wants
them is there.
"""

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc

from pipelines.kept_worker import KeptWorker
from pipelines.local_jobs import LocalJobError, wait_until

_logger = logging.getLogger(__name__)

_HUNG_UP_S = 3.0


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """Starts and ends workers as TaskManagers ask for it; several of these may give their workers the same ids."""

    def __init__(self, state_cache_bytes: int) -> None:
        self._state_cache_bytes = state_cache_bytes
        self._lock = threading.Lock()
        self._workers: dict[str, list[KeptWorker]] = {}

    def StartWorker(self, request: beam_fn_api_pb2.StartWorkerRequest, context: Any) -> Any:
        """Starts a worker, which calls the endpoint that the request names."""
        endpoint, name = request.control_endpoint.url, request.worker_id
        cache = f"--state-cache-bytes={self._state_cache_bytes}"
        command = [sys.executable, "-m", "pipelines.worker", f"--endpoint={endpoint}", f"--id={name}", cache]
        try:
            worker = KeptWorker(command, endpoint)
        except OSError as error:
            return beam_fn_api_pb2.StartWorkerResponse(error=f"worker {name} of {endpoint}: {error}")
        with self._lock:
            kept = [other for other in self._workers.get(name, []) if other.is_kept()]
            self._workers[name] = [*kept, worker]
        _logger.info("worker %s of %s is process %d", name, endpoint, worker.pid)
        return beam_fn_api_pb2.StartWorkerResponse()

    def StopWorker(self, request: beam_fn_api_pb2.StopWorkerRequest, context: Any) -> Any:
        """Ends a worker of this id."""
        with self._lock:
            worker = _left(self._workers.get(request.worker_id, []))
            if worker is not None:
                self._workers[request.worker_id].remove(worker)
        if worker is not None:
            worker.end()
        return beam_fn_api_pb2.StopWorkerResponse()

    def close(self) -> None:
        """Ends all workers."""
        with self._lock:
            workers = [worker for kept in self._workers.values() for worker in kept]
            self._workers.clear()
        for worker in workers:
            worker.end()


def _left(workers: Sequence[KeptWorker]) -> KeptWorker | None:
    """Gives the one whose caller has gone, which shows: a caller hangs up first, and its worker ends by itself."""
    if len(workers) > 1:
        with suppress(LocalJobError):
            wait_until(lambda: not all(worker.is_running() for worker in workers), "a worker has ended", _HUNG_UP_S)
    return min(workers, key=KeptWorker.is_running, default=None)


def main(argv: Sequence[str] | None = None) -> int:
    """Serves until SIGTERM or SIGINT, then ends the workers; gives the exit code."""
    parser = argparse.ArgumentParser("python -m pipelines.worker_pool", description="Starts workers for Flink.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on, default: %(default)s")
    parser.add_argument("--port", type=int, required=True, help="port to listen on: --environment_config=HOST:PORT")
    parser.add_argument(
        "--state-cache-mb", type=int, default=100, help="state that each worker keeps, default: %(default)s MiB"
    )
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    pool = WorkerPool(args.state_cache_mb << 20)
    server = grpc.server(ThreadPoolExecutor(4))
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    address = f"{args.host}:{args.port}"
    try:
        server.add_insecure_port(address)
    except RuntimeError as error:
        print(f"{address}: {error}", file=sys.stderr)
        return 1
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: stopped.set())
    server.start()
    _logger.info("workers can be had at %s", address)
    stopped.wait()
    server.stop(None).wait()
    pool.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
