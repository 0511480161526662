"""A training loop that fills a given time, with a learning rate that rises, rests and falls to zero."""

import logging
import statistics
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from training.weights import save_weights, values

_LOGGER = logging.getLogger(__name__)
_WARM_UP_STEPS = 80
_STATISTICS_MEMORY = 0.98
_CHECKPOINT_S = 240.0
# What a step took beyond so many times the median of the last ones is a pause: the process stood still.
_PAUSED, _LAST_STEPS = 10.0, 51


class Schedule(NamedTuple):
    """How long and how fast.

    Attributes:
        minutes: Wall clock of the whole training, less the time for which the process stood still.
        learning_rate: At its highest.
        flat: Share of the time before the rate begins to fall.
        checkpoint: Where the weights are kept while training goes on.
    """

    minutes: float
    learning_rate: float
    flat: float
    checkpoint: Path


def configure_threads(threads: int = 2) -> None:
    """Bounds TensorFlow's threads; call before anything else uses it."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", force=True)


def make_optimiser(weights: dict[str, tf.Variable]) -> tf.keras.optimizers.Optimizer:
    """Adam with decoupled weight decay on kernels and clipped gradients."""
    optimiser = tf.keras.optimizers.AdamW(1e-3, weight_decay=1e-3, global_clipnorm=3.0, beta_2=0.98)
    variables = [weight for weight in weights.values() if weight.trainable]
    optimiser.exclude_from_weight_decay([weight for name, weight in weights.items() if not name.endswith("/kernel")])
    optimiser.build(variables)
    return optimiser


def remember_statistics(weights: dict[str, tf.Variable], updates: dict[str, tf.Tensor]) -> None:
    """Moves the running mean and variance of each norm towards those of the batch."""
    for name, update in updates.items():
        old = weights[name]
        old.assign(old * _STATISTICS_MEMORY + (1.0 - _STATISTICS_MEMORY) * update)


def _rate(schedule: Schedule, progress: float, step: int) -> float:
    fall = min(1.0, (1.0 - progress) / (1.0 - schedule.flat))
    return schedule.learning_rate * max(0.003, fall) * min(1.0, (step + 1) / _WARM_UP_STEPS)


class WorkingTime:
    """Seconds spent on steps; a pause does not count."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._last: deque[float] = deque(maxlen=_LAST_STEPS)

    def add(self, step_s: float) -> None:
        """Counts a step that took so many seconds."""
        self._last.append(step_s)
        self.seconds += min(step_s, _PAUSED * statistics.median(self._last))


def run(
    schedule: Schedule,
    weights: dict[str, tf.Variable],
    optimiser: tf.keras.optimizers.Optimizer,
    train: Callable[[], float],
) -> None:
    """Calls `train`, which does one step and returns its loss, until the time is over."""
    # The first step waits for examples and for the graph to be built: it is not on the clock.
    optimiser.learning_rate = _rate(schedule, 0.0, 0)
    losses = [train()]
    spent, last = WorkingTime(), time.monotonic()
    saved = last
    while (progress := spent.seconds / (60.0 * schedule.minutes)) < 1.0:
        optimiser.learning_rate = _rate(schedule, progress, len(losses))
        losses.append(train())
        before, last = last, time.monotonic()
        spent.add(last - before)
        if len(losses) % 100 == 0:
            _LOGGER.info("step %d, %.0f %%, loss %.3f", len(losses), 100 * progress, np.mean(losses[-100:]))
        if last - saved > _CHECKPOINT_S:
            save_weights(schedule.checkpoint, values(weights))
            saved = last
    save_weights(schedule.checkpoint, values(weights))
    _LOGGER.info("%d steps, last loss %.3f", len(losses), np.mean(losses[-100:]))
