"""Batches from another process: the same on every run, part of each never seen before."""

import functools
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from training.pool import Bucket, Pool, PoolConfig

CONFIG = PoolConfig((Bucket(3, 4, 1.0), Bucket(5, 2, 1.0)), fresh=0.5, kept=6, seed=1)
# Makes the maker (rng, length) -> rng.random(length), importable in the other process.
MAKE = functools.partial(getattr, np.random.Generator, "random")


def batches(count: int) -> list[list[np.ndarray]]:
    with closing(Pool(MAKE, CONFIG)) as pool:
        return [pool.batch() for _ in range(count)]


@pytest.fixture(scope="module")
def some() -> Iterator[list[list[np.ndarray]]]:
    yield batches(12)


def test_the_same_seed_gives_the_same_batches(some: list[list[np.ndarray]]) -> None:
    for first, second in zip(some, batches(12), strict=True):
        np.testing.assert_array_equal(first, second)


def test_a_batch_has_examples_of_one_length(some: list[list[np.ndarray]]) -> None:
    sizes = {(len(batch[0]), len(batch)) for batch in some[6:]}
    assert sizes == {(3, 4), (5, 2)}
    assert all(len({len(example) for example in batch}) == 1 for batch in some)


def test_half_of_a_batch_is_fresh_and_the_rest_was_there_before(some: list[list[np.ndarray]]) -> None:
    seen: set[float] = set()
    for batch in some:
        known = [float(example[0]) in seen for example in batch]
        fresh = 2 if len(batch[0]) == 3 else 1
        assert not any(known[:fresh])
        assert all(known[fresh:])
        seen |= {float(example[0]) for example in batch}
