"""A pool of Python workers for a Flink cluster's TaskManagers: --environment_type=EXTERNAL.

python -m pipelines.worker_pool --port 50000

Beam's own pool (apache_beam.runners.worker.worker_pool_main) listens on every interface of the machine, asks the runner
for state that it has just written, and starts whatever `python` is on the path. This one listens on loopback, keeps
what a session's next chunk needs, and starts workers of the Python that runs it.
"""

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from apache_beam.portability.api import beam_fn_api_pb2_grpc
from apache_beam.runners.worker.worker_pool_main import BeamFnExternalWorkerPoolServicer, kill_process_gracefully

_logger = logging.getLogger(__name__)


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
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    pool = BeamFnExternalWorkerPoolServicer(use_process=True, state_cache_size=args.state_cache_mb << 20)
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
    for process in list(pool._worker_processes.values()):
        kill_process_gracefully(process)
    return 0


if __name__ == "__main__":
    sys.exit(main())
