"""What the clock of a training counts."""

import pytest

pytest.importorskip("tensorflow", reason="the training loop is TensorFlow's")

from training.schedule import WorkingTime


def test_steps_count_in_full() -> None:
    spent = WorkingTime()
    for step_s in (0.5, 0.25, 1.0):
        spent.add(step_s)
    assert spent.seconds == 1.75


def test_of_a_pause_ten_median_steps_count() -> None:
    spent = WorkingTime()
    for step_s in (0.5, 0.25, 0.5, 300.0):
        spent.add(step_s)
    assert spent.seconds == 1.25 + 5.0


def test_steps_that_became_slower_for_good_soon_count_in_full() -> None:
    spent = WorkingTime()
    for _ in range(60):
        spent.add(0.01)
    for _ in range(51):
        spent.add(1.0)
    before = spent.seconds
    spent.add(1.0)
    assert spent.seconds == before + 1.0
