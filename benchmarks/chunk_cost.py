"""What a chunk costs in the streaming job without any model: Kafka, Beam and the session's book-keeping alone.

python -m benchmarks.chunk_cost
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from kafka import KafkaConsumer, TopicPartition

from benchmarks.streaming_load import cpu_s
from model_runtime import Audio
from model_runtime.records import Event, MadeBy
from model_runtime.session_settings import SessionSettings
from pipelines.local_jobs import create_topics, free_port, running_broker
from pipelines.streaming import main as run_streaming
from service.produce import Recording, play
from service.tail import Follower
from service.wire import decode_result
from transforms.engine_handle import _EngineFn
from transforms.kafka_config import TopicsConfig

SESSIONS = 20
SECONDS = 60
_RATE_HZ = 16_000
_STATE_BYTES = 30_000


class DeafEngine:
    """Hears nothing and says nothing; its state is how many samples have come."""

    defers = False
    sample_rate_hz = _RATE_HZ

    def start(self, sample_rate_hz: int, settings: SessionSettings = SessionSettings()) -> int:  # noqa: B008
        """Gives the state of a session."""
        return 0

    def step(self, state: int, samples: np.ndarray) -> tuple[int, list[Event]]:
        """Counts samples."""
        return state + len(samples), []

    def finish(self, state: int) -> tuple[int, list[Event]]:
        """Ends a session."""
        return state, []

    def freeze(self, state: int) -> bytes:
        """Gives as many bytes as the state of the recipe `streaming` has."""
        return state.to_bytes(8, "big").ljust(_STATE_BYTES, b"\0")

    def thaw(self, blob: bytes) -> int:
        """Gives the state back."""
        return int.from_bytes(blob[:8], "big")

    def made_by(self) -> MadeBy:
        """Names itself."""
        return MadeBy("deaf:1", "cpu")


def run_job(arguments: Sequence[str]) -> int:
    """Runs the streaming job with an engine that is deaf."""
    _EngineFn.load_engine = lambda fn: DeafEngine()
    return run_streaming(list(arguments))


def measure_chunks() -> list[tuple[str, float, str]]:
    """Gives rows (what, CPU us per chunk, ratio) of 20 sessions, at once and live, beside reading alone.

    Time in which the job waits for the broker costs rounds as well: on a busy machine all rows are those of that time.
    """
    topics = TopicsConfig()
    costs: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="unison-chunks-") as name:
        folder, port = Path(name), free_port()
        servers = f"127.0.0.1:{port}"
        with running_broker(port, folder):
            create_topics(servers, topics)
            with _deaf_job(servers, folder) as job, closing(Follower(servers, topics.results, True)) as follower:
                play([Recording("warm-up", _silence(0.1))], servers, topics.audio, speed=0)
                _wait_for_ends(follower, 1)
                for what, speed in (("at once", 0.0), ("live", 1.0)):
                    before = cpu_s(job.pid)
                    recordings = [Recording(f"{what}-{number}", _silence(SECONDS)) for number in range(SESSIONS)]
                    chunks = play(recordings, servers, topics.audio, speed=speed)
                    _wait_for_ends(follower, SESSIONS)
                    for part, begin_s, end_s in zip(("Python", "Prism"), before, cpu_s(job.pid), strict=True):
                        costs[f"{what}, {part}"] = (end_s - begin_s) * 1e6 / chunks
            read_us = _read_us(servers, topics.audio)
    costs["reading alone, by kafka-python"] = read_us
    return [(what, cost, f"{cost / read_us:.1f} times reading") for what, cost in costs.items()]


@contextmanager
def _deaf_job(servers: str, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    settings = {"kafka.bootstrap_servers": servers, "kafka.start": "earliest", "results.enhanced": "false"}
    code = "import sys; from benchmarks.chunk_cost import run_job; sys.exit(run_job(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "--runner=DirectRunner", "--streaming"]
    command += [f"--set={field}={value}" for field, value in settings.items()]
    with (folder / "job.log").open("wb") as log:
        job = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        yield job
    finally:
        job.terminate()
        job.wait(60)


def _silence(seconds: float) -> Audio:
    return Audio(np.zeros(int(seconds * _RATE_HZ), np.float32), _RATE_HZ)


def _wait_for_ends(follower: Follower, sessions: int) -> None:
    ended = 0
    for value in follower.results(timeout_s=600):
        ended += value is not None and decode_result(value)["type"] == "session_end"
        if ended == sessions:
            return
    raise TimeoutError(f"{ended} of {sessions} sessions ended within 600 s")


def _read_us(servers: str, topic: str) -> float:
    """Gives the CPU time of reading a record of the topic."""
    partition = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest", metrics_enabled=False) as consumer:
        consumer.assign([partition])
        end = consumer.end_offsets([partition])[partition]
        begin_s = time.process_time()
        while consumer.position(partition) < end:
            consumer.poll(timeout_ms=100)
        return (time.process_time() - begin_s) * 1e6 / end


if __name__ == "__main__":
    for what, cost, ratio in measure_chunks():
        sys.stdout.write(f"{what:40} {cost:8.0f} us  {ratio}\n")
