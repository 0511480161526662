"""What a command costs with all processes that it starts: wall clock, CPU time and memory, as Linux counts them."""

import os
import resource
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_POLL_S = 0.25
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """wall_s, cpu_s: of the whole; peak_mb: the most memory of all processes together, shared pages counted once."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def measure_command(command: Sequence[str], folder: Path) -> Cost:
    """Runs a command in a folder to its end and measures it.

    Raises:
        CalledProcessError: it failed; its output ends the error.
    """
    began, before_s = time.monotonic(), _children_s()
    with (folder / "contender.log").open("w+b") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        cpu_s: dict[int, float] = {}
        peak_mb = 0.0
        while process.poll() is None:
            family = _family(process.pid)
            # A process that has ended keeps what it was last seen with.
            cpu_s |= {pid: used for pid in family if (used := _cpu_s(pid))}
            peak_mb = max(peak_mb, sum(map(_memory_mb, family)))
            time.sleep(_POLL_S)
        wall_s = time.monotonic() - began
        if process.returncode:
            log.seek(0)
            raise subprocess.CalledProcessError(process.returncode, command, log.read()[-3000:])
    # What ended between two looks is missing in the one, what was never waited for in the other.
    return Cost(wall_s, max(sum(cpu_s.values()), _children_s() - before_s), peak_mb)


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _family(pid: int) -> list[int]:
    """The process and all that descend from it."""
    found = [pid]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                found += map(int, Path(f"/proc/{parent}/task/{task}/children").read_text().split())
        except OSError:
            continue
    return found


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def _memory_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
