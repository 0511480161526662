"""CPU time of several contenders, interleaved, so that whatever else the machine does hits all of them alike."""

import statistics
import time
from collections.abc import Callable, Mapping


def interleaved(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Gives each contender's median CPU time in seconds (all threads of this process), after one warm-up of each."""
    for run in contenders.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in times.items()}
