"""Driving sessions one by one and in lock step."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from model_runtime.calls import Call, CallTally, Steps, drive, drive_in_lock_step, split_states, stack, stack_states


class Doubler:
    """A kernel that doubles numbers and remembers how many rows each call had."""

    def __init__(self, most_rows: int = 1000) -> None:
        self.batches: list[int] = []
        self.most_rows = most_rows

    def run(self, rows: Sequence[tuple[int]]) -> list[int]:
        self.batches.append(len(rows))
        return [2 * value for (value,) in rows]


def session(kernels: list[Doubler], start: int, calls: int) -> Steps[list[int]]:
    values = [start]
    for i in range(calls):
        values.append((yield Call(kernels[i % len(kernels)], None, (values[-1],))))
    return values


def test_lock_step_gives_what_each_session_gives_alone() -> None:
    kernels = [Doubler(), Doubler()]
    sessions = [partial(session, kernels, start, start % 7) for start in range(50)]
    alone = [drive(make()) for make in sessions]
    assert drive_in_lock_step(sessions, 4) == alone


def test_equal_calls_share_batches() -> None:
    kernel = Doubler()
    drive_in_lock_step([partial(session, [kernel], i, 10) for i in range(8)], 4)
    assert kernel.batches == [4] * 20


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_no_batch_is_larger_than_asked(batch_size: int) -> None:
    kernel = Doubler()
    drive_in_lock_step([partial(session, [kernel], i, 5) for i in range(7)], batch_size)
    assert max(kernel.batches) <= batch_size
    assert sum(kernel.batches) == 35


def test_a_kernel_gets_no_more_rows_than_are_best_for_it() -> None:
    kernels = [Doubler(2), Doubler()]
    drive_in_lock_step([partial(session, kernels, i, 2) for i in range(8)], 4)
    assert (kernels[0].batches, kernels[1].batches) == ([2, 2, 2, 2], [4, 4])


def test_calls_of_other_shapes_do_not_share_a_batch() -> None:
    kernel = Doubler()

    def shaped(shape: int) -> Steps[int]:
        return (yield Call(kernel, shape, (shape,)))

    assert drive_in_lock_step([partial(shaped, shape) for shape in (1, 2, 1, 2, 1)], 8) == [2, 4, 2, 4, 2]
    assert sorted(kernel.batches) == [2, 3]


def test_tally_counts_calls_rows_and_what_only_fills_them() -> None:
    kernel = Doubler()

    def filled(samples: int) -> Steps[int]:
        value: int = yield Call(kernel, None, (samples,))
        return (yield Call(kernel, 100, (value,), 100, 100 - samples))

    tally = CallTally()
    drive_in_lock_step([partial(filled, samples) for samples in (90, 80, 60)], 2, tally)
    assert tally == CallTally(len(kernel.batches), 6, 300, 70)
    tally.add(CallTally(1, 2, 3, 4))
    assert tally == CallTally(len(kernel.batches) + 1, 8, 303, 74)


def test_no_sessions_give_no_results() -> None:
    assert drive_in_lock_step([], 4) == []


def test_states_are_stacked_and_split_row_by_row() -> None:
    rows = [(np.full((1, 2), i), np.full((1, 3), -i)) for i in range(3)]
    stacked = stack_states(rows)
    assert [part.shape for part in stacked] == [(3, 2), (3, 3)]
    assert [[part.tolist() for part in row] for row in split_states(stacked, 3)] == [
        [part.tolist() for part in row] for row in rows
    ]
    assert stack([np.zeros(4)]).shape == (1, 4)
