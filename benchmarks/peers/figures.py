"""What is to be measured of candidates, and what was found."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Plan(NamedTuple):
    """What is measured: models (`none` or recipes, by name), seconds of each live measurement, numbers of live sessions
    and how many more to search among, numbers of idle sessions (in the first round, with the last model); nothing is
    measured of what is empty.
    """

    models: dict[str, str]
    rounds: int
    seconds: float
    sessions: Sequence[int]
    search: int
    idle: Sequence[int]


class FullSpeed(NamedTuple):
    """chunks_per_s: from the first record sent to the last result; cpu_us: CPU time of all its processes per chunk."""

    chunks_per_s: float
    cpu_us: float


class Lateness(NamedTuple):
    """Latency of partials and finals, and from the end of a stream to its last final, in ms; cpu_us: CPU time of all
    processes per chunk; behind: it could not keep up with so many sessions.
    """

    p50_ms: float
    p99_ms: float
    end_p50_ms: float
    end_p99_ms: float
    cpu_us: float
    behind: bool


@dataclass
class Findings:
    """What was found of one candidate with one model; failure says why there is less."""

    full_speed: list[FullSpeed] = field(default_factory=list)
    # One dictionary a round: number of sessions -> how late.
    live: list[dict[int, Lateness]] = field(default_factory=list)
    # Number of idle sessions -> bytes of memory for each.
    idle: dict[int, float] = field(default_factory=dict)
    failure: str = ""
