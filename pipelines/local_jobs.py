"""A broker and a streaming job on this machine, for the demonstration and the benchmarks; they end with the block."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from kafka.admin import KafkaAdminClient, NewTopic

from transforms.kafka_config import TopicsConfig

ROOT = Path(__file__).resolve().parents[1]
_BROKER = str(ROOT / "deploy" / "kafka.sh")
_STOP_S = 40
_BETWEEN_S = 0.1
# Places in /proc/PID/stat behind the name.
_STATE, _THREADS = 0, 17


class LocalJobError(Exception):
    """Something local did not start or has ended; the message says why."""


class LocalBroker:
    """A broker on `port` and the next one, with its data in `folder`."""

    def __init__(self, port: int, folder: Path) -> None:
        self.servers = f"127.0.0.1:{port}"
        self._place = ["--port", str(port), "--data", str(folder / "kafka")]
        self._pid_file = folder / "kafka" / "broker.pid"

    def start(self) -> None:
        """Starts it, over the data that there are.

        Raises:
            LocalJobError: it did not start.
        """
        # Its own session: a Ctrl-C reaches this process alone, which then stops everything in good order.
        command = [_BROKER, "start", *self._place, "--topics", ""]
        if subprocess.run(command, start_new_session=True, check=False).returncode:
            raise LocalJobError("the broker did not start; its reason stands above")

    def kill(self) -> None:
        """Ends it by SIGKILL, in the middle of whatever it does."""
        kill_process(int(self._pid_file.read_text()))

    def stop(self) -> None:
        """Ends it in good order."""
        command = [_BROKER, "stop", *self._place]
        subprocess.run(command, start_new_session=True, check=False, stderr=subprocess.DEVNULL)


@contextmanager
def running_broker(port: int, folder: Path) -> Iterator[LocalBroker]:
    """Runs a broker of its own.

    Raises:
        LocalJobError: it did not start.
    """
    broker = LocalBroker(port, folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


def create_topics(servers: str, topics: TopicsConfig, audio_partitions: int = 1) -> None:
    """Makes a job's topics, all but that of the audio with one partition each."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        for name in msgspec.structs.astuple(topics):
            admin.create_topics([NewTopic(name, audio_partitions if name == topics.audio else 1, 1)])
    finally:
        admin.close()


@contextmanager
def running_streaming_job(
    servers: str, folder: Path, settings: Mapping[str, str]
) -> Iterator["subprocess.Popen[bytes]"]:
    """Runs the streaming job on Prism, from the earliest record on; its log is `folder`/streaming.log."""
    command = [sys.executable, "-m", "pipelines.streaming", "--runner=DirectRunner", "--streaming"]
    all_settings = {"kafka.bootstrap_servers": servers, "kafka.start": "earliest", **settings}
    command += [f"--set={field}={value}" for field, value in all_settings.items()]
    with job_log(folder).open("wb") as log:
        job = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
        try:
            yield job
        finally:
            job.terminate()
            try:
                job.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                children = _children(job.pid)
                job.kill()
                job.wait()
                for pid in children:
                    os.kill(pid, signal.SIGKILL)


def job_log(folder: Path) -> Path:
    """Gives where running_streaming_job logs to."""
    return folder / "streaming.log"


def check_alive(job: "subprocess.Popen[bytes]", folder: Path) -> None:
    """Raises LocalJobError, with the end of its log, if the job has ended."""
    if job.poll() is not None:
        raise LocalJobError(f"the streaming job ended with exit code {job.returncode}: {last_words(folder)}")


def last_words(folder: Path) -> str:
    """Gives the end of the job's log."""
    lines = job_log(folder).read_text(errors="replace").strip().splitlines()
    return "its log ends with\n" + "\n".join(lines[-10:])


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float) -> None:
    """Waits until a condition holds; what does not answer yet (OSError) is asked again.

    Raises:
        LocalJobError: it does not within the time.
    """
    end_s = time.monotonic() + timeout_s
    while True:
        try:
            if condition():
                return
        except OSError:
            pass
        if time.monotonic() >= end_s:
            raise LocalJobError(f"waited {timeout_s:g} s in vain until {what}")
        time.sleep(_BETWEEN_S)


def kill_process(pid: int) -> None:
    """Ends a process by SIGKILL, and waits until nothing of it is left but its number."""
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), f"process {pid} is gone", _STOP_S)


def is_alive(pid: int) -> bool:
    """Says whether a process runs; one that has ended keeps its number until its parent asks for it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    # The first thread of a process that was killed can be gone while another still holds its ports.
    return fields[_STATE] not in "ZX" or int(fields[_THREADS]) > 1


def free_port() -> int:
    """Gives a port that is free, as is the next one, which the broker takes as well.

    Raises:
        LocalJobError: no such pair was found.
    """
    for _ in range(100):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port
    raise LocalJobError("no two free ports beside each other were found")


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
