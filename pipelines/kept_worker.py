"""A worker process that is kept alive for as long as whoever wants it is there."""

import logging
import socket
import subprocess
import threading
from collections.abc import Sequence

_logger = logging.getLogger(__name__)

# A TaskManager that notices the death of a worker says within this time that it no longer wants it.
_PAUSE_S = 5.0
_LONGEST_PAUSE_S = 60.0
_CONNECT_S = 5.0
_END_S = 10.0


class KeptWorker:
    """A process that is started again when it dies, unless nobody listens at its endpoint any more. Thread-safe."""

    def __init__(self, command: Sequence[str], endpoint: str, pause_s: float = _PAUSE_S) -> None:
        """Starts it.

        Args:
            command: what to run.
            endpoint: HOST:PORT of who wants it.
            pause_s: seconds before it is started again; twice as many each further time, up to a minute.

        Raises:
            OSError: it cannot be started.
        """
        self._command = command
        self._endpoint = endpoint
        self._pause_s = pause_s
        self._lock = threading.Lock()
        self._unwanted = threading.Event()
        self._process = subprocess.Popen(command)
        self._keeper = threading.Thread(target=self._keep, name=f"worker of {endpoint}", daemon=True)
        self._keeper.start()

    @property
    def pid(self) -> int:
        """Number of the process that runs, or ran last."""
        return self._process.pid

    def is_running(self) -> bool:
        """Says whether there is a process now."""
        return self._process.poll() is None

    def is_kept(self) -> bool:
        """Says whether there is a process or will be one again."""
        return self._keeper.is_alive()

    def end(self) -> None:
        """Ends it: by SIGTERM, and by SIGKILL where that takes longer than ten seconds."""
        with self._lock:
            self._unwanted.set()
            self._process.terminate()
        self._keeper.join(_END_S)
        self._process.kill()
        self._keeper.join()

    def _keep(self) -> None:
        pause_s = self._pause_s
        while True:
            code = self._process.wait()
            if self._unwanted.wait(pause_s) or not _listens(self._endpoint):
                return
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            with self._lock:
                if self._unwanted.is_set():
                    return
                try:
                    self._process = subprocess.Popen(self._command)
                except OSError:
                    _logger.exception("no worker can be started for %s", self._endpoint)
                    continue
            _logger.warning("a worker of %s ended with %d; process %d takes its place", self._endpoint, code, self.pid)


def _listens(endpoint: str) -> bool:
    host, _, port = endpoint.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _CONNECT_S).close()
    except OSError:
        return False
    return True
