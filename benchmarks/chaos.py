"""Kills parts of a streaming job on Flink at random moments and tells what a reader has seen of it.

python -m benchmarks.chaos --kills 100 --write docs/chaos.md
"""

import argparse
import json
import logging
import math
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from kafka import KafkaProducer

from benchmarks.delivery import Delivery, Said, chunk_places, compare, expected_finals
from model_runtime import Audio, SpeechEngine
from model_runtime.decode import decode_file
from pipelines.local_flink import TASKMANAGERS, LocalFlink, running_flink
from pipelines.local_jobs import ROOT, LocalBroker, create_topics, free_port, kill_process, running_broker, wait_until
from service.produce import Recording, cut
from service.tail import Follower
from service.wire import decode_result
from transforms.kafka_config import TopicsConfig

_logger = logging.getLogger(__name__)

_CHUNK_MS = 100
_PARTITIONS = 2
_SENT_S = 600
_RECOVERED_S = 900
_ALL_SAID_S = 600
# How long the job is left in peace between a recovery and the next kill, and how long a killed broker stays away.
_PEACE_S = 6.0
_AWAY_S = 4.0
# In so many of the cases the next kill does not wait for the recovery from the last one.
_IN_RECOVERY = 0.15


class Kill(NamedTuple):
    """One kill: recovery_s is the time until a checkpoint was completed again; None where nobody waited for that."""

    kind: str
    recovery_s: float | None


class Report(NamedTuple):
    """What has been done and seen."""

    kills: list[Kill]
    sessions: int
    audio_s: float
    restores: int
    delivery: Delivery
    ends: dict[str, int]
    seed: int
    took_s: float


class _Speakers:
    """Plays the samples as sessions in real time, again and again, until it is told to end."""

    def __init__(self, servers: str, topic: str, clips: dict[str, Audio]) -> None:
        # The clip that each session has played.
        self.clips: dict[str, str] = {}
        self._clips = clips
        self._topic = topic
        self._over = threading.Event()
        self._failed: list[BaseException] = []
        self._producer = KafkaProducer(
            bootstrap_servers=servers, acks="all", enable_idempotence=True, delivery_timeout_ms=_SENT_S * 1000
        )
        self._threads = [threading.Thread(target=self._speak, args=(name,), daemon=True) for name in clips]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Lets every speaker finish what he says.

        Raises:
            RuntimeError: something could not be sent.
        """
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._producer.close()
        if self._failed:
            raise RuntimeError("not all audio could be sent") from self._failed[0]

    def _speak(self, name: str) -> None:
        turn = 0
        while not self._over.is_set():
            session = f"{name}-{turn}"
            self.clips[session] = name
            start_s = time.time()
            for piece in cut(Recording(session, self._clips[name]), _CHUNK_MS, "LINEAR16", 1.0):
                time.sleep(max(0.0, start_s + piece.due_ms / 1000 - time.time()))
                self._producer.send(
                    self._topic,
                    piece.payload,
                    key=session.encode(),
                    headers=piece.headers,
                    timestamp_ms=round(start_s * 1000 + piece.captured_ms),
                ).add_errback(self._failed.append)
            turn += 1


class _Chaos:
    """Kills parts and sees to it that they come back."""

    def __init__(self, flink: LocalFlink, broker: LocalBroker, job: str, rng: random.Random) -> None:
        self.kills: list[Kill] = []
        self._flink = flink
        self._broker = broker
        self._job = job
        self._rng = rng

    def strike(self) -> None:
        """Waits for a random moment, kills a random part, brings it back and, mostly, waits until the job works."""
        time.sleep(self._rng.uniform(0, _PEACE_S))
        kinds: dict[str, Callable[[], None]] = {
            "worker": self._kill_worker,
            "taskmanager": self._kill_taskmanager,
            "broker": self._kill_broker,
        }
        kind = self._rng.choice(list(kinds))
        start_s = time.monotonic()
        before = self._flink.checkpoints(self._job)
        kinds[kind]()
        recovery_s = None
        if self._rng.random() >= _IN_RECOVERY:
            wait_until(lambda: self._works(before), "the job has recovered", _RECOVERED_S)
            recovery_s = time.monotonic() - start_s
        self.kills.append(Kill(kind, recovery_s))
        _logger.info("kill %d: %s, recovery %s s", len(self.kills), kind, recovery_s and round(recovery_s, 1))

    def settle(self) -> None:
        """Waits until the job works."""
        before = self._flink.checkpoints(self._job)
        wait_until(lambda: self._works(before), "the job has recovered", _RECOVERED_S)

    def _works(self, checkpoints: int) -> bool:
        # Two more: the first may have been under way when the blow fell.
        return self._flink.runs(self._job) and self._flink.checkpoints(self._job) >= checkpoints + 2

    def _kill_worker(self) -> None:
        wait_until(lambda: bool(self._flink.workers()), "there is a worker", _RECOVERED_S)
        kill_process(self._rng.choice(self._flink.workers()))

    def _kill_taskmanager(self) -> None:
        self._flink.kill(self._rng.choice(TASKMANAGERS))
        self._flink.repair()

    def _kill_broker(self) -> None:
        self._broker.kill()
        time.sleep(self._rng.uniform(0, _AWAY_S))
        self._broker.start()


def run_chaos(kills: int, minutes: float, speakers: int, seed: int, folder: Path) -> Report:
    """Runs a cluster, a broker and the job, kills parts, and compares what was said with the engine.

    Args:
        kills, minutes: the end comes after so many kills, or when the time is over.
        speakers: how many samples are played at the same time.
        folder: where all of them keep what they write; results.jsonl is what was said.
    """
    began_s = time.monotonic()
    clips = {path.stem: decode_file(path) for path in sorted((ROOT / "samples").glob("*.wav"))[:speakers]}
    topics = TopicsConfig()
    with running_broker(free_port(), folder) as broker, running_flink(folder / "flink") as flink:
        create_topics(broker.servers, topics, _PARTITIONS)
        settings = {"kafka.bootstrap_servers": broker.servers, "kafka.start": "earliest", "results.enhanced": "false"}
        arguments = [f"--set={name}={value}" for name, value in settings.items()]
        job, driver = flink.send(arguments, folder / "driver.log")
        driver.send_signal(signal.SIGINT)
        stage = _Speakers(broker.servers, topics.audio, clips)
        stage.start()
        chaos = _Chaos(flink, broker, job, random.Random(seed))
        try:
            end_s = time.monotonic() + 60 * minutes
            while len(chaos.kills) < kills and time.monotonic() < end_s:
                chaos.strike()
        finally:
            stage.end()
        chaos.settle()
        results = _all_said(broker.servers, topics.results, set(stage.clips))
        restores = flink.restores(job)
        flink.cancel(job)
        expected = _expected(broker.servers, topics.audio, clips, stage.clips)
    (folder / "results.jsonl").write_text("".join(json.dumps(result) + "\n" for result in results), encoding="utf-8")
    delivery = compare(expected, results)
    # Each once: what is written again has the same id.
    ends = Counter({r["result_id"]: r["reason"] for r in results if r["type"] == "session_end"}.values())
    audio_s = sum(clips[clip].duration_s for clip in stage.clips.values())
    took_s = time.monotonic() - began_s
    return Report(chaos.kills, len(stage.clips), audio_s, restores, delivery, ends, seed, took_s)


def _all_said(servers: str, topic: str, sessions: set[str]) -> list[dict[str, Any]]:
    """Gives all results, once every session has ended or the time is over."""
    follower = Follower(servers, topic, from_beginning=True)
    results: list[dict[str, Any]] = []
    for value in follower.results(_ALL_SAID_S):
        if value is not None:
            results.append(decode_result(value))
            if results[-1]["type"] == "session_end":
                sessions.discard(results[-1]["session"])
        elif not sessions:
            break
    follower.close()
    return results


def _expected(servers: str, topic: str, clips: dict[str, Audio], sessions: dict[str, str]) -> dict[str, Said]:
    """Gives the finals of all sessions; each clip is heard once, as what is said of it differs in the ids alone."""
    engine = SpeechEngine.load("streaming")
    finals = {clip: list(expected_finals(engine, "", 0, audio).items()) for clip, audio in clips.items()}
    places = chunk_places(servers, topic)
    return {
        f"{session}/{places[session][0]}{id_.removeprefix('/0')}": words
        for session, clip in sessions.items()
        for id_, words in finals[clip]
    }


def render(report: Report) -> str:
    """Gives the report as text."""
    delivery = report.delivery
    lines = [
        f"{len(report.kills)} kills within {report.took_s / 60:.0f} minutes (seed {report.seed}); {report.sessions} "
        f"sessions with {report.audio_s:.0f} s of speech meanwhile; {report.restores} restarts from a checkpoint.",
        "",
        "| finals | |",
        "|---|---|",
        f"| expected | {delivery.expected} |",
        f"| lost | {len(delivery.lost)} |",
        f"| doubled: said again under another id | {len(delivery.doubled)} |",
        f"| changed: text, words or times | {len(delivery.changed)} |",
        f"| written again under the same id, which no reader sees | {delivery.repeated} |",
        "",
        "Sessions ended by " + ", ".join(f"{reason}: {count}" for reason, count in sorted(report.ends.items())) + ".",
        "",
        "| killed | times | in a recovery | recovery, median | longest |",
        "|---|---|---|---|---|",
    ]
    for kind in sorted({kill.kind for kill in report.kills}):
        kills = [kill for kill in report.kills if kill.kind == kind]
        times = [kill.recovery_s for kill in kills if kill.recovery_s is not None]
        spread = f"{np.median(times):.1f} s | {max(times):.1f} s" if times else "- | -"
        lines.append(f"| {kind} | {len(kills)} | {len(kills) - len(times)} | {spread} |")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 nothing was lost, doubled or changed; 1 something was."""
    parser = argparse.ArgumentParser("python -m benchmarks.chaos", description="Kills parts of a job on Flink.")
    parser.add_argument("--kills", type=int, default=100, help="default: %(default)s")
    parser.add_argument("--minutes", type=float, default=math.inf, help="no kill begins later; default: no limit")
    parser.add_argument("--speakers", type=int, default=7, help="samples played at a time, default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="decides what is killed and when, default: %(default)s")
    parser.add_argument("--keep", type=Path, help="folder for the logs and results, which are deleted otherwise")
    parser.add_argument("--write", type=Path, help="file in which the figures take the place of the last ones")
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", force=True)
    logging.getLogger("kafka").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="unison-chaos-") as name:
        folder = args.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        report = run_chaos(args.kills, args.minutes, args.speakers, args.seed, folder)
    text = render(report)
    print(text)
    for what in ("lost", "doubled", "changed"):
        for name in getattr(report.delivery, what):
            print(f"{what}: {name}")
    if args.write is not None:
        before, mark, _ = args.write.read_text(encoding="utf-8").partition(_MARK)
        args.write.write_text(f"{before}{mark}\n\n{text}", encoding="utf-8")
    return 0 if report.delivery.is_exact() else 1


_MARK = "<!-- Figures: python -m benchmarks.chaos --write docs/chaos.md -->"


if __name__ == "__main__":
    sys.exit(main())
