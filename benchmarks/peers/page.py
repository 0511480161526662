"""docs/peers.md: the findings as tables, between what the rows are and what was learnt on the way."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from statistics import median

from benchmarks.peers.candidates import Candidate
from benchmarks.peers.figures import Findings, Plan
from benchmarks.peers.no_model import NONE
from benchmarks.peers.plain_session import CHECKPOINT_S
from benchmarks.peers.search import P99_MS, in_time, largest
from model_runtime.tflite import RUNTIME

_VERSIONS = ("apache-beam", "bytewax", "quixstreams", "confluent-kafka", "kafka-python", "rocksdict", "numpy")

MINUTES = 30
"""How long the whole takes by default."""

AllFindings = dict[tuple[str, str], Findings]
Rows = list[tuple[Candidate, Findings]]


def page(plan: Plan, candidates: Sequence[Candidate], findings: AllFindings, notes: str, skipped: list[str]) -> str:
    """Gives the page.

    Args:
        notes: what stands at its end.
        skipped: what was not measured, and why.
    """
    left_out = [f"Not measured: {reason}.\n" for reason in skipped]
    return "\n".join([_introduction(plan), *left_out, *tables(plan, candidates, findings), notes])


def tables(plan: Plan, candidates: Sequence[Candidate], findings: AllFindings) -> list[str]:
    """Gives what was found as tables, model after model, with the reason of every failure before them."""
    parts = []
    for model in plan.models:
        mine = [(candidate, findings[model, candidate.name]) for candidate in candidates]
        parts += [f"**{one.title} has failed.** {found.failure}\n" for one, found in mine if found.failure]
        live = [(candidate, found) for candidate, found in mine if candidate.live]
        parts += [_full_speed(model, mine), _checkpoints(model, mine)]
        if plan.sessions:
            parts += [_lateness(model, plan, live), _live_cpu(model, plan, live), _most_sessions(model, live)]
        if any(found.idle for _, found in live):
            parts.append(_idle(model, plan, live))
    return parts


def _introduction(plan: Plan) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in _VERSIONS)
    return f"""# Peers

Written by `python -m benchmarks.peers`. All rows are of one run on one machine, one candidate after the other, and are
medians of {plan.rounds} round(s); each live measurement lasts {plan.seconds:g} s. Compare rows, not machines.

Python {platform.python_version()}, {platform.machine()}, {RUNTIME.name} {RUNTIME.version}; {versions}.

    deploy/setup.sh peers                                        # once: makes .venv-peers
    deploy/kafka.sh fetch && deploy/prism.sh && deploy/flink.sh fetch      # once; without Flink its rows are left out
    .venv-peers/bin/python -m benchmarks.peers                   # about {MINUTES} minutes
    .venv-peers/bin/python -m benchmarks.peers --minutes 10 --search 0 --idle 1000
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
| unison-speech on Flink | by configs/flink.flags, a checkpoint every {CHECKPOINT_S:g} s | bytes in Flink | kept |
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


def _full_speed(model: str, found: Rows) -> str:
    limit = next((_cpu_us(one) for candidate, one in found if candidate.name == "plain"), None)
    rows = []
    for candidate, one in found:
        rate = _median([speed.chunks_per_s for speed in one.full_speed])
        cpu_us = _cpu_us(one)
        rows.append(
            [candidate.title, _number(rate), _number(cpu_us), _number(cpu_us and limit and cpu_us / limit, ".2f")]
        )
    header = ["chunks/s", "CPU us per chunk", "ratio to the plain loop"]
    return _table(f"Full speed, 20 sessions, {_called(model)}", header, rows)


def _checkpoints(model: str, found: Rows) -> str:
    times = {candidate.name: _cpu_us(one) for candidate, one in found}
    pairs = [candidate for candidate, _ in found if candidate.bare]
    rows = [[one.title, _number(times.get(one.bare)), _number(times[one.name])] for one in pairs]
    title = f"What checkpoints cost, {_called(model)}: CPU us per chunk"
    return _table(title, ["without", f"every {CHECKPOINT_S:g} s"], rows)


def _lateness(model: str, plan: Plan, found: Rows) -> str:
    rows = [[candidate.title, *(_late(one, count) for count in plan.sessions)] for candidate, one in found]
    title = f"Latency in ms, {_called(model)}: p50 / p99 of results (and of the final behind the end of a stream)"
    return _table(title, [f"{count} live" for count in plan.sessions], rows)


def _late(found: Findings, count: int) -> str:
    rounds = [lateness[count] for lateness in found.live if count in lateness]
    if any(one.behind for one in rounds):
        return "behind"
    figures = [median(values) for values in zip(*(one[:4] for one in rounds), strict=True)]
    return "{:.0f} / {:.0f} ({:.0f} / {:.0f})".format(*figures) if figures else ""


def _live_cpu(model: str, plan: Plan, found: Rows) -> str:
    rows = []
    for candidate, one in found:
        times = [[lateness[count].cpu_us for lateness in one.live if count in lateness] for count in plan.sessions]
        rows.append([candidate.title, *(_number(_median(values)) for values in times)])
    return _table(f"Live CPU us per chunk, {_called(model)}", [f"{count} live" for count in plan.sessions], rows)


def _most_sessions(model: str, found: Rows) -> str:
    rows = []
    for candidate, one in found:
        most = _median([largest(lateness) for lateness in one.live])
        late = any(not in_time(lateness) for found_in_round in one.live for lateness in found_in_round.values())
        tried = sorted({count for lateness in one.live for count in lateness})
        rows.append([candidate.title, _number(most) + ("" if late else " or more"), ", ".join(map(str, tried))])
    return _table(f"Most live sessions with p99 under {P99_MS} ms, {_called(model)}", ["sessions", "tried"], rows)


def _idle(model: str, plan: Plan, found: Rows) -> str:
    rows = [
        [candidate.title, *(_number(one.idle[count] / 1024, ".1f") if count in one.idle else "" for count in plan.idle)]
        for candidate, one in found
    ]
    title = f"Memory in kB for each session that has spoken once and waits, {_called(model)}"
    return _table(title, [f"{count:,} sessions" for count in plan.idle], rows)


def _table(title: str, header: list[str], rows: list[list[str]]) -> str:
    lines = [f"## {title}", "", f"| | {' | '.join(header)} |", "|---" * (len(header) + 1) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows), ""])


def _cpu_us(found: Findings) -> float | None:
    return _median([speed.cpu_us for speed in found.full_speed])


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _number(value: float | None, form: str = ",.0f") -> str:
    """Gives a figure; nothing where there is none."""
    return "" if value is None else format(value, form)


def _called(model: str) -> str:
    return "without a model" if model == NONE else f"recipe {model}"
