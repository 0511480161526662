"""Calls of batched kernels from per-session code.

The code of a session is written once, as generators that yield a `Call` and are sent its result. `drive` runs one
session, call by call (batch 1); `drive_in_lock_step` runs many at once and serves equal calls in one batch. What a
session computes cannot depend on who drives it.
"""

from collections import deque
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

States = tuple[np.ndarray, ...]


class Kernel(Protocol):
    """Batched, stateless computation: equal rows in, one result per row out, in order."""

    @property
    def most_rows(self) -> int:
        """Rows that a call should have at most: more is not faster here, or not to be had."""

    def run(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Computes all rows in one go; a row's result does not depend on its neighbours."""


class Call(NamedTuple):
    """A request of one row to a kernel; rows of equal `kernel` and `shape` can share a batch.

    samples, padding: samples in the row and how many of them only fill it up, where a row is filled up to a length that
    others have too.
    """

    kernel: Kernel
    shape: Hashable
    row: tuple[Any, ...]
    samples: int = 0
    padding: int = 0


class CallTally(msgspec.Struct):
    """What was asked of kernels; it grows. samples, padding: of rows that are filled up to a length; fixed: models
    whose graphs are fixed to a batch size below the one that was asked for, and that size.
    """

    calls: int = 0
    rows: int = 0
    samples: int = 0
    padding: int = 0
    fixed: dict[str, int] = {}

    def count(self, batch: Sequence[Call]) -> None:
        """Counts one call of a kernel."""
        self.calls += 1
        self.rows += len(batch)
        if batch[0].samples:
            self.samples += sum(call.samples for call in batch)
            self.padding += sum(call.padding for call in batch)

    def add(self, other: "CallTally") -> None:
        """Counts what another tally has."""
        self.calls += other.calls
        self.rows += other.rows
        self.samples += other.samples
        self.padding += other.padding
        self.fixed |= other.fixed


T = TypeVar("T")
# Rows and results are of as many types as there are kernels; each stage knows its own.
Steps = Generator[Call, Any, T]


def drive(steps: Steps[T]) -> T:
    """Runs one session's generator to its end and gives its return value."""
    try:
        call = next(steps)
        while True:
            call = steps.send(call.kernel.run((call.row,))[0])
    except StopIteration as stop:
        result: T = stop.value
        return result


def drive_in_lock_step(
    sessions: Sequence[Callable[[], Steps[T]]], batch_size: int, tally: CallTally | None = None
) -> list[T]:
    """Runs many sessions side by side, in batches of at most `batch_size` rows (or of what the kernel says is best);
    results in the order of `sessions`.

    Three batches' worth of sessions are under way at a time, so that the kernel with the longest queue can nearly
    always fill its batch.
    """
    results: dict[int, T] = {}
    waiting: dict[Hashable, deque[tuple[int, Steps[T], Call]]] = {}
    starts = iter(enumerate(sessions))
    under_way = 0

    def resume(index: int, steps: Steps[T], value: Any) -> bool:
        try:
            call = steps.send(value)
        except StopIteration as stop:
            results[index] = stop.value
            return False
        waiting.setdefault((id(call.kernel), call.shape), deque()).append((index, steps, call))
        return True

    while True:
        while under_way < 3 * batch_size and (start := next(starts, None)) is not None:
            under_way += resume(start[0], start[1](), None)
        if not under_way:
            return [results[index] for index in range(len(sessions))]
        queue = max(waiting.values(), key=len)
        rows = min(batch_size, queue[0][2].kernel.most_rows, len(queue))
        batch = [queue.popleft() for _ in range(rows)]
        if tally is not None:
            tally.count([call for _, _, call in batch])
        outputs = batch[0][2].kernel.run([call.row for _, _, call in batch])
        for (index, steps, _), output in zip(batch, outputs, strict=True):
            under_way -= not resume(index, steps, output)


def stack(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Gives rows [...] as one array [n, ...]; a single row is not copied."""
    return rows[0][None] if len(rows) == 1 else np.stack(rows)


def stack_states(rows: Sequence[States]) -> States:
    """Gives the states of n rows, each [1, ...], as one tuple of arrays [n, ...]."""
    return rows[0] if len(rows) == 1 else tuple(np.concatenate(parts) for parts in zip(*rows, strict=True))


def split_states(states: States, n: int) -> list[States]:
    """Gives the states of n rows one by one, each an array [1, ...]."""
    if n == 1 or not states:
        return [states] * n
    # Arrays are walked, not sliced, which takes two thirds of the time.
    return list(zip(*[part[:, None] for part in states], strict=True))
