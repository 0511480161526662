"""docs/peers.md: the findings as tables, between what the rows are and what was learnt on the way."""

import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from statistics import median

from benchmarks.peers.candidates import Candidate
from benchmarks.peers.figures import Findings, FullSpeed
from benchmarks.peers.measure_peers import Plan
from benchmarks.peers.plain_session import CHECKPOINT_S
from benchmarks.peers.search import P99_MS, in_time, largest
from model_runtime.tflite import RUNTIME

_VERSIONS = ("apache-beam", "bytewax", "quixstreams", "confluent-kafka", "kafka-python", "rocksdict", "numpy")

MINUTES = 30
"""How long the whole takes by default."""

AllFindings = dict[tuple[str, str], Findings]


def page(plan: Plan, candidates: Sequence[Candidate], findings: AllFindings, notes: str, skipped: list[str]) -> str:
    """Gives the page.

    Args:
        notes: what stands at its end.
        skipped: what was not measured, and why.
    """
    parts = [_introduction(plan), *(f"Not measured: {reason}.\n" for reason in skipped)]
    live = [candidate for candidate in candidates if candidate.live]
    for model in plan.models:
        mine = {candidate.name: findings[model, candidate.name] for candidate in candidates}
        parts.append(_full_speed(model, candidates, mine))
        if plan.sessions:
            parts += [_lateness(model, plan, live, mine), _most_sessions(model, live, mine)]
        if plan.idle:
            parts.append(_idle(model, plan, live, mine))
    return "\n".join([*parts, notes])


def _introduction(plan: Plan) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in _VERSIONS)
    return f"""# Peers

Written by `python -m benchmarks.peers`. All rows are of one run on one machine ({platform.machine()}, Python
{platform.python_version()}, {RUNTIME.name} {RUNTIME.version}, {versions}), one candidate after the other, {plan.rounds}
round(s) of all of them, medians of the rounds; each live measurement lasts {plan.seconds:g} s. Compare rows, not
machines.

    deploy/setup.sh peers                                        # once: makes .venv-peers
    deploy/kafka.sh fetch && deploy/prism.sh                     # once
    .venv-peers/bin/python -m benchmarks.peers                   # about {MINUTES} minutes
    .venv-peers/bin/python -m benchmarks.peers --minutes 10      # the same, shorter
    .venv-peers/bin/python -m benchmarks.peers --help            # one candidate, one table, other numbers

## What the rows are

Every candidate is a process (and what it starts) of its own. It reads the same records from one partition of the same
broker, 100 ms of LINEAR16 at 16 kHz each, keeps the same engine's state for each session, and writes its partials,
finals and session ends as JSON. Every result is compared with what the engine says of the same audio; a candidate that
says anything else, or leaves anything out, is reported as wrong and has no figures.

| row | what it is | where a session's state is | after a crash |
|---|---|---|---|
| plain loop | kafka-python, a dict, the engine: the limit | live object in a dict | lost |
| unison-speech on Prism | this job, as `pipelines.streaming` runs it | frozen bytes at the runner | lost with Prism |
| Bytewax | KafkaSource, stateful_flat_map, KafkaSink, one worker | live object in the worker | lost |
| Bytewax with recovery | the same, a snapshot every {CHECKPOINT_S:g} s | live object, pickled to SQLite | kept |
| Quix Streams without changelog | Application, apply(stateful=True) | frozen bytes, RocksDB | kept on this disk |
| Quix Streams with changelog | the same, its default; commits every {CHECKPOINT_S:g} s | and in a Kafka topic | kept |

The peers do what their users would write first: headers, decoding, the engine, JSON. This job does more with each
record: order and gaps by sequence number, duplicates, idle and longest sessions, dead letters, event time, results that
keep their id when they are said again. Bytewax could keep frozen bytes as well, which would cost it a thaw and a freeze
per chunk; a pickled state is not checked against the models that read it.

Without a model, `NoModel` stands in for the engine: a count and a CRC-32 of all samples, whose value is the text of a
result every 0.8 s. CPU time is that of all processes of a candidate, from /proc; the broker's is not in it. Latency is
taken where the broker stamps a result, from the time at which the last sample that it needs was captured, which is
known from the engine run chunk by chunk; so it does not depend on what a candidate takes for "last".
"""


def _full_speed(model: str, candidates: Sequence[Candidate], findings: dict[str, Findings]) -> str:
    """20 sessions as fast as they go; the ratio is to the plain loop."""
    limit = _median(findings.get("plain", Findings()).full_speed, lambda one: one.cpu_us)

    def cells(found: Findings) -> list[str]:
        cpu_us = _median(found.full_speed, lambda one: one.cpu_us)
        rate = _median(found.full_speed, lambda one: one.chunks_per_s)
        return [f"{rate:,.0f}", f"{cpu_us:,.0f}", f"{cpu_us / limit:.2f}" if limit else ""]

    header = ["chunks/s", "CPU us per chunk", "ratio to the plain loop"]
    return _table(f"Full speed, {_called(model)}", header, candidates, findings, lambda f: bool(f.full_speed), cells)


def _lateness(model: str, plan: Plan, candidates: Sequence[Candidate], findings: dict[str, Findings]) -> str:
    """p50 / p99 of results, then of the last final behind the end of a stream, for each number of sessions."""

    def cells(found: Findings) -> list[str]:
        return [_late(found, count) for count in plan.sessions]

    header = [f"{count} live" for count in plan.sessions]
    title = f"Latency in ms, {_called(model)}: p50 / p99 of results, and (of the final behind the end of the stream)"
    return _table(title, header, candidates, findings, lambda found: bool(found.live), cells)


def _late(found: Findings, count: int) -> str:
    rounds = [lateness[count] for lateness in found.live if count in lateness]
    if not rounds or any(one.behind for one in rounds):
        return "behind"
    figures = [median(values) for values in zip(*(one[:4] for one in rounds), strict=True)]
    return "{:.0f} / {:.0f} ({:.0f} / {:.0f})".format(*figures)


def _most_sessions(model: str, candidates: Sequence[Candidate], findings: dict[str, Findings]) -> str:
    def cells(found: Findings) -> list[str]:
        most = [largest(lateness) for lateness in found.live]
        tried = sorted({count for lateness in found.live for count in lateness})
        open_end = "" if any(not in_time(late) for one in found.live for late in one.values()) else " or more"
        return [f"{median(most):.0f}{open_end}", ", ".join(map(str, tried))]

    title = f"Most live sessions with p99 under {P99_MS} ms, {_called(model)}"
    return _table(title, ["sessions", "tried"], candidates, findings, lambda found: any(found.live), cells)


def _idle(model: str, plan: Plan, candidates: Sequence[Candidate], findings: dict[str, Findings]) -> str:
    def cells(found: Findings) -> list[str]:
        return [f"{found.idle[count] / 1024:.1f}" if count in found.idle else "" for count in plan.idle]

    title = f"Memory per session that has spoken once and waits, kB, {_called(model)}"
    header = [f"{count:,} sessions" for count in plan.idle]
    return _table(title, header, candidates, findings, lambda found: bool(found.idle), cells)


def _table(
    title: str,
    header: list[str],
    candidates: Sequence[Candidate],
    findings: dict[str, Findings],
    measured: Callable[[Findings], bool],
    cells: Callable[[Findings], list[str]],
) -> str:
    lines = [f"## {title}", "", f"| | {' | '.join(header)} |", "|---" * (len(header) + 1) + "|"]
    for candidate in candidates:
        found = findings[candidate.name]
        # A pipe would end the cell.
        failure = found.failure.replace("|", ";") or "not measured"
        row = cells(found) if measured(found) else [failure, *[""] * (len(header) - 1)]
        lines.append(f"| {candidate.title} | {' | '.join(row)} |")
    return "\n".join([*lines, ""])


def _median(values: Sequence[FullSpeed], pick: Callable[[FullSpeed], float]) -> float:
    return median(map(pick, values)) if values else 0.0


def _called(model: str) -> str:
    return "without a model" if model == "none" else f"recipe {model}"
