"""A training takes its batches from the pool and gives back what they made of the weights."""

import functools
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="the training loop is TensorFlow's")

from training.pool import Bucket, PoolConfig
from training.pool_training import train_on_pool
from training.schedule import Schedule, make_optimiser
from training.weights import load_weights, variables

CONFIG = PoolConfig((Bucket(3, 4, 1.0),), fresh=0.5, kept=6, seed=1)
# Makes the maker (rng, length) -> rng.random(length), importable in the other process.
MAKE = functools.partial(getattr, np.random.Generator, "random")
# The first step is not on the clock and the second is begun before any time has passed.
TWO_STEPS_MINUTES = 1e-12


def test_weights_are_those_after_the_last_batch_and_are_kept(tmp_path: Path) -> None:
    weights = variables({"layer/bias": np.zeros(3, np.float32)})
    batches: list[list[np.ndarray]] = []

    def learn(batch: list[np.ndarray]) -> float:
        batches.append(batch)
        weights["layer/bias"].assign_add(np.ones(3, np.float32))
        return 0.0

    schedule = Schedule(TWO_STEPS_MINUTES, 1e-3, 0.3, tmp_path / "kept.npz")
    after = train_on_pool(learn, weights, make_optimiser(weights), schedule, MAKE, CONFIG)
    assert [len(example) for batch in batches for example in batch] == [3] * (2 + 4)
    np.testing.assert_array_equal(after["layer/bias"], [2.0] * 3)
    np.testing.assert_array_equal(load_weights(tmp_path / "kept.npz")["layer/bias"], [2.0] * 3)
