"""CPU time of several contenders, interleaved, so that whatever else the machine does hits all of them alike."""

import resource
import statistics
from collections.abc import Callable, Mapping


def interleaved(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Gives each contender's median CPU time in seconds (all threads of this process
    and of the processes that it started and that have ended), after one warm-up of each.
    """
    for run in contenders.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = _cpu_s()
            run()
            times[name].append(_cpu_s() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def _cpu_s() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
