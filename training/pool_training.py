"""A training on examples from a pool, from its first batch to the last weights."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from training.pool import Maker, Pool, PoolConfig
from training.schedule import Schedule, run
from training.weights import Arrays, values


def train_on_pool(
    learn: Callable[[list[Any]], float],
    weights: dict[str, tf.Variable],
    optimiser: tf.keras.optimizers.Optimizer,
    schedule: Schedule,
    make: Callable[[], Maker],
    config: PoolConfig,
) -> Arrays:
    """Trains for the time of the schedule and returns the new weights.

    Args:
        learn: One step on a batch of examples; returns its loss.
        weights: What `learn` changes.
        optimiser: Whose learning rate follows the schedule.
        schedule: How long and how fast.
        make: Called once in the process that makes examples; returns their maker.
        config: Of the pool; its seed is also that of TensorFlow.
    """
    tf.random.set_seed(config.seed)
    pool = Pool(make, config)
    try:
        run(schedule, weights, optimiser, lambda: learn(pool.batch()))
    finally:
        pool.close()
    return values(weights)
