"""The whole measurement: candidate after candidate, round after round."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.peers.candidates import Candidate
from benchmarks.peers.expected import RATE_HZ, Script, script, scripts
from benchmarks.peers.figures import Findings, Lateness, Plan
from benchmarks.peers.no_model import NONE, load_engine
from benchmarks.peers.search import next_count
from benchmarks.peers.trial import Trial, TrialError, trial
from benchmarks.speed import recordings
from pipelines.local_jobs import LocalJobError, free_port, running_broker

_SCRIPTS = 4
_WARM_UP_S = 3.0
_FULL_SPEED_SESSIONS = 20
# Long enough for a few checkpoints: 20,000 chunks without a model, 2,000 with one.
_FULL_SPEED_S = {True: 100.0, False: 10.0}


class _Material(NamedTuple):
    warm_up: list[Script]
    full_speed: list[Script]
    live: list[Script]
    opening: Script


def measure(plan: Plan, candidates: Sequence[Candidate], servers: str | None = None) -> dict[tuple[str, str], Findings]:
    """Gives the findings by (model, candidate); a candidate that fails or says wrong things is left out from there.

    Args:
        servers: a broker that runs; None: one is started.
    """
    findings = {(model, candidate.name): Findings() for model in plan.models for candidate in candidates}
    clips = recordings()
    materials = {model: _material(recipe, clips, plan) for model, recipe in plan.models.items()}
    last = next(reversed(plan.models), None)
    with tempfile.TemporaryDirectory(prefix="unison-peers-") as name, _broker(servers, Path(name)) as place:
        for number, model, candidate in product(range(plan.rounds), plan.models, candidates):
            found = findings[model, candidate.name]
            if found.failure:
                continue
            _say(f"round {number + 1}, {model}: {candidate.title}")
            bench = _Bench(candidate, plan.models[model], place, Path(name), materials[model])
            try:
                bench.measure(plan, found, plan.idle if number == 0 and model == last else ())
            except (TrialError, LocalJobError) as error:
                found.failure = str(error)
                _say(found.failure)
    return findings


@contextmanager
def _broker(servers: str | None, folder: Path) -> Iterator[str]:
    """Gives the address of the broker that there is, or of one that runs for as long as the block."""
    if servers is not None:
        yield servers
        return
    port = free_port()
    with running_broker(port, folder):
        yield f"127.0.0.1:{port}"


class _Bench(NamedTuple):
    candidate: Candidate
    recipe: str
    servers: str
    folder: Path
    material: _Material

    def measure(self, plan: Plan, found: Findings, idle: Sequence[int]) -> None:
        """Adds a round's findings.

        One trial does for all, unless it could not keep up with some number of sessions: its backlog would go on.
        """
        lateness: dict[int, Lateness] = {}
        found.live.append(lateness)
        over = False
        while not over:
            with self._trial() as begun:
                if len(found.full_speed) < len(found.live):
                    # The first time warms up: the JVM compiles what it finds to be hot.
                    begun.full_speed(self.material.full_speed, _FULL_SPEED_SESSIONS)
                    found.full_speed.append(begun.full_speed(self.material.full_speed, _FULL_SPEED_SESSIONS))
                    _say(f"  full speed: {found.full_speed[-1]}")
                if not self.candidate.live:
                    return
                keeps_up = self._live(begun, plan, lateness)
                if keeps_up:
                    self._idle(begun, idle, found)
            over = keeps_up or (not idle and next_count(lateness, plan.sessions, plan.search) is None)

    def _live(self, begun: Trial, plan: Plan, lateness: dict[int, Lateness]) -> bool:
        """Tries numbers of sessions until there are enough (True), or one was too much for what is running (False)."""
        while (count := next_count(lateness, plan.sessions, plan.search)) is not None:
            lateness[count] = begun.live(self.material.live, count)
            _say(f"  {count} live: {lateness[count]}")
            if lateness[count].behind:
                return False
        return True

    def _idle(self, begun: Trial, counts: Sequence[int], found: Findings) -> None:
        for count in counts:
            found.idle[count] = begun.idle_bytes(self.material.opening, count)
            _say(f"  {count} idle: {found.idle[count]:.0f} bytes each")

    def _trial(self) -> "trial":
        return trial(self.candidate, self.recipe, self.servers, self.folder, self.material.warm_up)


def _material(recipe: str, clips: list[np.ndarray], plan: Plan) -> _Material:
    engine = load_engine(recipe)
    return _Material(
        scripts(engine, clips, 1, _WARM_UP_S),
        scripts(engine, clips, _SCRIPTS, _FULL_SPEED_S[recipe == NONE]),
        scripts(engine, clips, _SCRIPTS, plan.seconds),
        script(engine, np.concatenate(clips)[:RATE_HZ]),
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
