"""A candidate at work: a process of its own over its own topics."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.peers.candidates import Candidate
from benchmarks.peers.process_tree import process_cpu_s, process_rss_bytes, tree
from pipelines.local_flink import running_flink
from pipelines.local_jobs import ROOT

_STOP_S = 30
_CREATE_S = 60


class Running(NamedTuple):
    """A candidate at work: its process, the cluster it runs on, if any, its topics, and its log."""

    process: "subprocess.Popen[bytes]"
    cluster: list[int]
    audio: str
    results: str
    log: Path

    def cpu_s(self) -> float:
        """Gives the CPU seconds of all its processes."""
        return sum(map(process_cpu_s, self._processes()))

    def rss_bytes(self) -> int:
        """Gives the resident memory of all its processes."""
        return sum(map(process_rss_bytes, self._processes()))

    def last_words(self) -> str:
        """Gives the end of its log."""
        return " | ".join(self.log.read_text(errors="replace").strip().splitlines()[-3:])

    def _processes(self) -> list[int]:
        return [pid for root in (self.process.pid, *self.cluster) for pid in tree(root)]


@contextmanager
def running(candidate: Candidate, model: str, servers: str, folder: Path) -> Iterator[Running]:
    """Starts a candidate over new topics; it is ended, with all that it has started, when the block is left."""
    name = f"{candidate.name}-{time.monotonic_ns()}"
    audio, results, log = f"{name}-audio", f"{name}-results", folder / f"{name}.log"
    _create_topics(servers, audio, results)
    command = [sys.executable, "-m", f"benchmarks.peers.{candidate.job}", f"--servers={servers}", f"--audio={audio}"]
    command += [f"--results={results}", f"--model={model}", f"--folder={folder / name}", *candidate.flags]
    with ExitStack() as stack:
        cluster = []
        if candidate.on_flink:
            flink = stack.enter_context(running_flink(folder / f"{name}-cluster"))
            command += flink.flags()
            cluster = [int(file.read_text()) for file in flink.folder.glob("*.pid")]
        with log.open("wb") as out:
            process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out, start_new_session=True)
        stack.callback(_end, process)
        yield Running(process, cluster, audio, results, log)


def _create_topics(servers: str, audio: str, results: str) -> None:
    """Makes a candidate's topics, of one partition each; results are stamped by the broker when it takes them."""
    stamped = {"message.timestamp.type": "LogAppendTime"}
    topics = [NewTopic(audio, 1, 1), NewTopic(f"{audio}-dlt", 1, 1), NewTopic(results, 1, 1, config=stamped)]
    # What it promises is broken when it is let go of.
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics(topics).values():
        made.result(_CREATE_S)


def _end(process: "subprocess.Popen[bytes]") -> None:
    pids = tree(process.pid)
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pid in pids:
        # Those that have outlived their parent; the others' numbers are not given away within so short a time.
        if Path(f"/proc/{pid}").exists():
            os.kill(pid, signal.SIGKILL)
