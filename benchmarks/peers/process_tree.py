"""CPU time and memory of a process and of all that it has started, from /proc."""

import os
from collections.abc import Iterator
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def tree(pid: int) -> list[int]:
    """Gives a process and its descendants, itself first."""
    return [pid, *(one for child in _children(pid) for one in tree(child))]


def process_cpu_s(pid: int) -> float:
    """Gives the CPU seconds of all threads of a process, and of those it started that have ended; 0 if it has ended."""
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS_PER_SECOND


def process_rss_bytes(pid: int) -> int:
    """Gives the resident memory of a process; 0 if it has ended."""
    fields = _read(pid, "statm").split()
    return int(fields[1]) * _PAGE_BYTES if fields else 0


def _children(pid: int) -> Iterator[int]:
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        yield from map(int, _read(pid, f"task/{thread.name}/children").split())


def _read(pid: int, name: str) -> str:
    """Gives the text of a file about a process; none if the process, or its thread, has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
