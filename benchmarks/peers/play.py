"""Plays: sessions by their id, each with its script, spread over time."""

from typing import NamedTuple

from benchmarks.peers.expected import CHUNK_MS, Script


class Play(NamedTuple):
    """A session that is played: its id, what is to be said of it, and how late in ms after the others it begins."""

    session: str
    script: Script
    offset_ms: float


def cast(name: str, scripts: list[Script], sessions: int) -> list[Play]:
    """Gives so many sessions, whose chunks are spread evenly over the time of one chunk."""
    return [
        Play(f"{name}-{number}", scripts[number % len(scripts)], number * CHUNK_MS / sessions)
        for number in range(sessions)
    ]
