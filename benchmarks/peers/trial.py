"""A candidate under measurement: what it costs at full speed, how late it is live, what idle sessions cost it."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.peers.candidates import Candidate
from benchmarks.peers.expected import Script
from benchmarks.peers.figures import FullSpeed, Lateness
from benchmarks.peers.judgement import Outcome, judge
from benchmarks.peers.listener import Listener
from benchmarks.peers.load import Load, Played
from benchmarks.peers.play import Play, cast
from benchmarks.peers.running import Running, running

_START_S = 600
_FULL_SPEED_S = 600
_DRAIN_S = 30
_SETTLE_S = 2


class TrialError(Exception):
    """A candidate did not start, ended, or has said something wrong; the message says what."""


class Trial:
    """A running candidate, warmed up."""

    def __init__(self, job: Running, servers: str, warm_up: list[Script]) -> None:
        self._job = job
        self._load = Load(servers, job.audio)
        self._listener = Listener(servers, job.results)
        self._count = 0
        self._run(warm_up, len(warm_up), False, _START_S)

    def close(self) -> None:
        """Lets go of the broker."""
        self._listener.close()

    def full_speed(self, scripts: list[Script], sessions: int) -> FullSpeed:
        """Measures sessions that come as fast as they go.

        Raises:
            TrialError: the results are not right.
        """
        before_s = self._job.cpu_s()
        plays, played, outcome = self._run(scripts, sessions, False, _FULL_SPEED_S)
        chunks = sum(play.script.chunks() for play in plays)
        cpu_us = (self._job.cpu_s() - before_s) * 1e6 / chunks
        return FullSpeed(chunks * 1000 / (outcome.last_ms - played.begun_ms), cpu_us)

    def live(self, scripts: list[Script], sessions: int) -> Lateness:
        """Measures sessions in real time.

        Raises:
            TrialError: the results are not right.
        """
        before_s = self._job.cpu_s()
        longest_s = max(script.chunks() for script in scripts) / 10
        plays, _, outcome = self._run(scripts, sessions, True, longest_s + _DRAIN_S)
        cpu_us = (self._job.cpu_s() - before_s) * 1e6 / sum(play.script.chunks() for play in plays)
        figures = [
            float(np.percentile(latencies or [np.inf], percent))
            for latencies, percent in product((outcome.latencies_ms, outcome.end_latencies_ms), (50, 99))
        ]
        return Lateness(*figures, cpu_us, outcome.behind > 0)

    def idle_bytes(self, opening: Script, sessions: int) -> float:
        """Gives the memory that each of so many more sessions takes which have spoken once and then wait."""
        time.sleep(_SETTLE_S)
        before = self._job.rss_bytes()
        self._load.play(cast(self._name(), [opening], sessions), live=False, chunks=1)
        # Behind them all comes one that ends.
        self._run([opening], 1, False, _FULL_SPEED_S)
        time.sleep(_SETTLE_S)
        return (self._job.rss_bytes() - before) / sessions

    def _name(self) -> str:
        self._count += 1
        return f"s{self._count}"

    def _run(
        self, scripts: list[Script], sessions: int, live: bool, timeout_s: float
    ) -> tuple[list[Play], Played, Outcome]:
        plays = cast(self._name(), scripts, sessions)
        with ThreadPoolExecutor(1) as player:
            playing = player.submit(self._load.play, plays, live)
            said = self._listener.collect(plays, timeout_s, lambda: self._job.process.poll() is None)
            played = playing.result()
        if self._job.process.poll() is not None:
            raise TrialError(f"ended with exit code {self._job.process.returncode}: {self._job.last_words()}")
        outcome = judge(plays, played.capture_ms, said)
        if outcome.wrong:
            raise TrialError(f"wrong: {outcome.wrong} results are not those of the engine, as {outcome.examples[0]}")
        if outcome.behind and not live:
            raise TrialError(f"{outcome.behind} of {sessions} sessions did not end: {self._job.last_words()}")
        return plays, played, outcome


@contextmanager
def trial(candidate: Candidate, model: str, servers: str, folder: Path, warm_up: list[Script]) -> Iterator[Trial]:
    """Starts a candidate and warms it up.

    Raises:
        TrialError: it does not start.
    """
    with running(candidate, model, servers, folder) as job:
        begun = Trial(job, servers, warm_up)
        try:
            yield begun
        finally:
            begun.close()
