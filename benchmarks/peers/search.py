"""Which numbers of live sessions are tried next, to find the largest one that is served in time."""

from collections.abc import Mapping, Sequence

from benchmarks.peers.figures import Lateness

P99_MS = 200
"""In time: 99 of 100 results come within so many ms."""


def in_time(lateness: Lateness) -> bool:
    """Says whether so many sessions were served in time."""
    return not lateness.behind and lateness.p99_ms < P99_MS


def largest(found: Mapping[int, Lateness]) -> int:
    """Gives the largest number of sessions that was served in time; 0 if none was."""
    return max((count for count, lateness in found.items() if in_time(lateness)), default=0)


def next_count(found: Mapping[int, Lateness], counts: Sequence[int], steps: int) -> int | None:
    """Gives the number of sessions to try next: first those of `counts`, in order, until one cannot be kept up with;
    then up to `steps` more, each halfway between what was in time and what was not, or twice the most; None: enough.
    """
    hopeless = min((count for count, lateness in found.items() if lateness.behind), default=None)
    for count in counts:
        if count not in found and (hopeless is None or count < hopeless):
            return count
    if len(set(found) - set(counts)) >= steps:
        return None
    good = largest(found)
    late = [count for count in found if count > good]
    count = (good + min(late)) // 2 if late else 2 * good
    return count if count > 0 and count not in found else None
