"""Measures this job and the same loop on other stream processors, in one run, and writes docs/peers.md.

.venv-peers/bin/python -m benchmarks.peers [--minutes 30] [--only plain,prism] [--models none,dtln] [--sessions 1,20]
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers.candidates import CANDIDATES, Candidate, why_not
from benchmarks.peers.dtln_recipe import DTLN, write_dtln_recipe
from benchmarks.peers.figures import Plan
from benchmarks.peers.measure_peers import measure
from benchmarks.peers.no_model import NONE
from benchmarks.peers.notes import NOTES
from benchmarks.peers.page import MINUTES, page
from pipelines.local_jobs import ROOT

# What a candidate takes besides its live measurements: to start, and at full speed; to open idle sessions.
_TRIAL_S = 15
_FLINK_S = 70
_IDLE_S = 25
_SHORTEST_S = 5.0
_LONGEST_S = 60.0


def main() -> int:
    """Measures, prints and writes the page; gives 1 if a candidate was wrong or failed."""
    options = _options()
    wanted = [candidate for candidate in CANDIDATES if candidate.name in options.only]
    skipped = [reason for candidate in wanted if (reason := why_not(candidate))]
    candidates = [candidate for candidate in wanted if not why_not(candidate)]
    with tempfile.TemporaryDirectory(prefix="unison-dtln-") as folder:
        models = {name: name for name in options.models}
        if DTLN in models:
            recipe = write_dtln_recipe(Path(folder))
            if recipe is None:
                skipped.append("recipe dtln, since there is no shared/data/models/dtln beside the checkout")
                del models[DTLN]
            else:
                models[DTLN] = str(recipe)
        plan = _plan(options, models, candidates)
        findings = measure(plan, candidates, options.bootstrap_servers)
    text = page(plan, candidates, findings, NOTES, skipped)
    print(text)
    options.output.write_text(text, encoding="utf-8")
    return int(any(found.failure for found in findings.values()))


def _plan(options: argparse.Namespace, models: dict[str, str], candidates: list[Candidate]) -> Plan:
    """Gives live measurements the time that the rest leaves them, within bounds."""
    live, runs = sum(candidate.live for candidate in candidates), options.rounds * len(models)
    fixed_s = runs * sum(_FLINK_S if candidate.on_flink else _TRIAL_S for candidate in candidates)
    fixed_s += live * _IDLE_S * bool(options.idle)
    times = runs * live * (len(options.sessions) + options.search)
    seconds = min(max((options.minutes * 60 - fixed_s) / max(1, times), _SHORTEST_S), _LONGEST_S)
    return Plan(models, options.rounds, seconds, options.sessions, options.search, options.idle)


def _options() -> argparse.Namespace:
    names = [candidate.name for candidate in CANDIDATES]
    parser = argparse.ArgumentParser("python -m benchmarks.peers", description="Measures this job beside others.")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long all of it may take, roughly")
    parser.add_argument("--only", type=_list(str), default=names, help=f"candidates: {','.join(names)}")
    parser.add_argument(
        "--models", type=_list(str), default=[NONE, DTLN], help="none, dtln, or packaged recipes; default: none,dtln"
    )
    parser.add_argument("--sessions", type=_list(int), default=[1, 20, 60, 120], help="numbers of live sessions")
    parser.add_argument("--search", type=int, default=2, help="further numbers to try for the largest one in time")
    parser.add_argument("--idle", type=_list(int), default=[1_000, 10_000], help="numbers of idle sessions")
    parser.add_argument("--rounds", type=int, default=1, help="of all candidates, one after the other")
    parser.add_argument("--bootstrap-servers", help="a broker that runs; by default one is started")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "peers.md")
    options = parser.parse_args()
    unknown = sorted(set(options.only) - set(names))
    if unknown:
        parser.error(f"--only: there is no {', '.join(unknown)}")
    return options


def _list(kind: Callable[[str], object]) -> Callable[[str], list[object]]:
    """Gives a reader of values between commas; of nothing it makes an empty list."""
    return lambda text: [kind(part) for part in text.split(",") if part]


if __name__ == "__main__":
    sys.exit(main())
