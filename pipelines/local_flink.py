"""A Flink cluster on this machine, for tests and benchmarks: what can be asked of it, and what can be done to it."""

import json
import os
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipelines.local_jobs import ROOT, LocalJobError, is_alive, kill_process, wait_until

PORTS = 7
"""So many ports beside each other belong to a cluster."""
TASKMANAGERS = ("taskmanager-1", "taskmanager-2")
FLAGS = ROOT / "configs" / "flink.flags"
"""What the streaming job is sent with."""

_SCRIPT = str(ROOT / "deploy" / "flink.sh")
_ANSWER_S = 10


def is_fetched() -> bool:
    """Says whether `deploy/flink.sh fetch` has been done."""
    cache = Path(os.environ.get("UNISON_CACHE") or Path.home() / ".cache" / "unison-speech")
    return any(cache.glob("flink-*/libs"))


class LocalFlink:
    """A cluster that `deploy/flink.sh` has started, with its data in `folder`."""

    def __init__(self, port: int, folder: Path) -> None:
        self.folder = folder
        self._port = port

    def flags(self) -> list[str]:
        """Gives the options by which a job gets here; its workers are those of the cluster's pool."""
        return [f"--job_endpoint=127.0.0.1:{self._port}", f"--environment_config=127.0.0.1:{self._port + 6}"]

    def repair(self) -> None:
        """Starts what does not run, and waits until all does.

        Raises:
            LocalJobError: it does not.
        """
        if self._run("start"):
            raise LocalJobError("the cluster did not start; its reason stands above")

    def stop(self) -> None:
        """Ends all of it."""
        self._run("stop")

    def kill(self, part: str) -> None:
        """Ends a part by SIGKILL: jobmanager, taskmanager-1, taskmanager-2, workers (the pool) or jobserver."""
        kill_process(self._pid(part))

    def workers(self) -> list[int]:
        """Gives the process ids of the Python workers."""
        tasks = Path(f"/proc/{self._pid('workers')}/task").glob("*/children")
        return [pid for task in tasks for pid in map(int, task.read_text().split()) if is_alive(pid)]

    def ask(self, path: str, body: object = None, method: str | None = None) -> Any:
        """Gives Flink's answer to a request to its REST interface.

        Raises:
            OSError: it gives none.
        """
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self._port + 3}{path}"
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=_ANSWER_S) as answer:
            return json.load(answer)

    def jobs(self) -> list[str]:
        """Gives the ids of the jobs that have not ended."""
        over = ("CANCELED", "FAILED", "FINISHED")
        return [job["id"] for job in self.ask("/jobs")["jobs"] if job["status"] not in over]

    def runs(self, job: str) -> bool:
        """Says whether every task of a job is at work."""
        tasks = self.ask(f"/jobs/{job}")["vertices"]
        return bool(tasks) and all(task["status"] == "RUNNING" for task in tasks)

    def checkpoints(self, job: str) -> int:
        """Gives how many checkpoints have been completed."""
        return int(self.ask(f"/jobs/{job}/checkpoints")["counts"]["completed"])

    def restores(self, job: str) -> int:
        """Gives how often the job has gone on from a checkpoint or savepoint."""
        return int(self.ask(f"/jobs/{job}/checkpoints")["counts"]["restored"])

    def metrics(self, job: str) -> dict[str, float]:
        """Gives the numbers that a job's steps have told since it began or was restored, summed over its tasks.

        Flink has them some ten seconds late, under names like `4Sessions.speech_sessions_chunks`.
        """
        told: dict[str, float] = {}
        for task in self.ask(f"/jobs/{job}")["vertices"]:
            path = f"/jobs/{job}/vertices/{task['id']}/subtasks/metrics"
            names = [metric["id"] for metric in self.ask(path)]
            answer = self.ask(f"{path}?agg=sum&get={urllib.parse.quote(','.join(names))}") if names else []
            for metric in answer:
                told[metric["id"]] = told.get(metric["id"], 0) + float(metric["sum"])
        return told

    def stop_with_savepoint(self, job: str, timeout_s: float = 300) -> str:
        """Ends a job, which says nothing more behind its state, and gives where that lies: for --savepoint_path.

        Raises:
            LocalJobError: there is no savepoint; the job goes on.
        """
        trigger = self.ask(f"/jobs/{job}/stop", {"drain": False})["request-id"]
        answer: dict[str, Any] = {}

        def done() -> bool:
            answer.update(self.ask(f"/jobs/{job}/savepoints/{trigger}"))
            return bool(answer["status"]["id"] == "COMPLETED")

        wait_until(done, "the savepoint is written", timeout_s)
        if "location" not in answer["operation"]:
            raise LocalJobError(f"there is no savepoint: {answer['operation']}")
        wait_until(lambda: job not in self.jobs(), "the job has ended", timeout_s)
        return str(answer["operation"]["location"])

    def cancel(self, job: str) -> None:
        """Ends a job as it stands."""
        self.ask(f"/jobs/{job}", {}, "PATCH")
        wait_until(lambda: job not in self.jobs(), "the job has ended", 120)

    def send(self, arguments: list[str], log: Path, timeout_s: float = 600) -> tuple[str, "subprocess.Popen[bytes]"]:
        """Sends the streaming job and waits until it works; gives its id, and the driver, which SIGINT makes leave it.

        Raises:
            LocalJobError: it did not begin to work.
        """
        command = [sys.executable, "-m", "pipelines.streaming", f"@{FLAGS}", *self.flags(), *arguments]
        before = set(self.jobs())
        with log.open("ab") as out:
            driver = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out, start_new_session=True)

        def works() -> bool:
            if driver.poll() is not None:
                raise LocalJobError(f"the driver ended with exit code {driver.returncode}; its log is {log}")
            return any(self.runs(job) for job in set(self.jobs()) - before)

        try:
            wait_until(works, f"the job works; its log is {log}", timeout_s)
        except LocalJobError:
            driver.kill()
            raise
        (job,) = set(self.jobs()) - before
        return job, driver

    def _pid(self, part: str) -> int:
        return int((self.folder / f"{part}.pid").read_text())

    def _run(self, command: str) -> int:
        environment = {**os.environ, "UNISON_PYTHON": sys.executable}
        place = ["--port", str(self._port), "--data", str(self.folder)]
        # Its own session: a Ctrl-C reaches this process alone, which then stops everything in good order.
        return subprocess.run([_SCRIPT, command, *place], env=environment, start_new_session=True).returncode


@contextmanager
def running_flink(folder: Path) -> Iterator[LocalFlink]:
    """Runs a cluster of its own with its data in `folder`.

    Raises:
        LocalJobError: it did not start.
    """
    flink = LocalFlink(_free_ports(), folder)
    try:
        flink.repair()
        yield flink
    finally:
        flink.stop()


def _free_ports() -> int:
    """Gives the first of a cluster's ports."""
    for first in range(20_000 + os.getpid() % 1000 * 10, 32_000, 10):
        try:
            for port in range(first, first + PORTS):
                with socket.socket() as free:
                    free.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise LocalJobError(f"no {PORTS} free ports beside each other were found")
