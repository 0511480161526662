"""The streaming job under live load: 20 sessions through a real broker and Prism, in real time."""

import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.peers.process_tree import process_cpu_s, tree
from model_runtime import Audio, SpeechEngine
from pipelines.local_jobs import create_topics, free_port, running_broker, running_streaming_job
from service.produce import Recording, play
from service.tail import Follower
from service.wire import decode_result
from transforms.kafka_config import TopicsConfig

SESSIONS = 20
SECONDS = 60
_CHUNK_SAMPLES = 1_600
_SECOND_SAMPLES = 16_000
_PAUSE_S = 0.5
_FEWEST_SECONDS = 5


def measure_streaming_job(clips: Sequence[Audio]) -> list[tuple[str, float, str]]:
    """Gives rows (what, CPU ms per second of audio, ratio) for 20 live sessions of the streaming recipe.

    Each session is a different rotation of the clips. The CPU time is that of the job's Python process; Prism's own
    stands in a row of its own, and so does the time from a sample's capture to its partial. The engine is measured
    while the job runs: a busy machine makes both dearer.
    """
    topics = TopicsConfig()
    recordings = [Recording(f"live-{number}", _minute(clips, number)) for number in range(SESSIONS)]
    with tempfile.TemporaryDirectory(prefix="unison-load-") as name:
        folder, port = Path(name), free_port()
        servers = f"127.0.0.1:{port}"
        with running_broker(port, folder):
            create_topics(servers, topics)
            with running_streaming_job(servers, folder, {"recipe": "streaming"}) as job:
                follower = Follower(servers, topics.results, from_beginning=True)
                play([Recording("warm-up", Audio(np.zeros(0, np.float32), 16_000))], servers, topics.audio, speed=0)
                _follow(follower, 1, 180)
                meter = _EngineMeter(recordings[0].audio)
                before = cpu_s(job.pid)
                player = threading.Thread(target=play, args=(recordings, servers, topics.audio), daemon=True)
                player.start()
                latencies = _follow(follower, SESSIONS, SECONDS + 120)
                python_s, prism_s = (end - start for end, start in zip(cpu_s(job.pid), before, strict=True))
                engine_ms = meter.stop()
                player.join()
                follower.close()
    seconds = sum(audio.duration_s for _, audio in recordings)
    job_ms, prism_ms = python_s * 1000 / seconds, prism_s * 1000 / seconds
    p50, p99 = np.percentile(latencies, [50, 99])
    return [
        ("engine alone: thaw, step, freeze", engine_ms, "1.00"),
        ("streaming job, Python", job_ms, f"{job_ms / engine_ms:.2f} of the engine"),
        ("streaming job, Prism", prism_ms, f"{prism_ms / engine_ms:.2f} of the engine"),
        (f"latency of partials: p50 {p50:.0f} ms, p99 {p99:.0f} ms", 0.0, "from the capture of the last sample"),
    ]


def _minute(clips: Sequence[Audio], number: int) -> Audio:
    order = [clips[(number + i) % len(clips)].samples for i in range(4 * len(clips))]
    return Audio(np.concatenate(order)[: SECONDS * 16_000], 16_000)


def _follow(follower: Follower, sessions: int, timeout_s: float) -> list[float]:
    """Waits until so many sessions have ended; gives the latencies of the partials in ms."""
    ended, latencies = 0, []
    for value in follower.results(timeout_s):
        result = decode_result(value) if value is not None else {}
        if result.get("type") == "partial":
            latencies.append(result["latency_ms"])
        ended += result.get("type") == "session_end"
        if ended == sessions:
            return latencies
    raise TimeoutError(f"{ended} of {sessions} sessions ended within {timeout_s} s")


class _EngineMeter:
    """Runs the engine alone, for a second of audio now and then, until it is stopped."""

    def __init__(self, audio: Audio) -> None:
        self._engine = SpeechEngine.load("streaming")
        self._samples = audio.samples
        self._costs_ms: list[float] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        """Gives the mean CPU time in ms per second of audio."""
        self._stopped.set()
        self._thread.join()
        # The first second warms up.
        return float(np.mean(self._costs_ms[1:]))

    def _run(self) -> None:
        blob, second = self._engine.freeze(self._engine.start()), 0
        while not self._stopped.wait(_PAUSE_S) or len(self._costs_ms) < _FEWEST_SECONDS:
            at = second * _SECOND_SAMPLES % (len(self._samples) - _SECOND_SAMPLES)
            start_s = time.thread_time()
            for first in range(at, at + _SECOND_SAMPLES, _CHUNK_SAMPLES):
                state, _ = self._engine.step(self._engine.thaw(blob), self._samples[first : first + _CHUNK_SAMPLES])
                blob = self._engine.freeze(state)
            self._costs_ms.append((time.thread_time() - start_s) * 1000)
            second += 1


def cpu_s(pid: int) -> tuple[float, float]:
    """Gives the CPU seconds of the job's Python process and of its children (Prism)."""
    python, *others = tree(pid)
    return process_cpu_s(python), sum(map(process_cpu_s, others))
