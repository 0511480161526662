"""Examples made in another process, each used a few times: making one costs as much as learning from it."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

# An example is whatever the maker returns: it only travels through here.
Maker = Callable[[np.random.Generator, int], Any]


class Bucket(NamedTuple):
    """Examples of one length.

    Attributes:
        length_samples: Their length.
        batch: How many make a batch.
        share: How often a batch comes from here, relative to the other buckets.
    """

    length_samples: int
    batch: int
    share: float


class PoolConfig(NamedTuple):
    """How examples are made and reused.

    Attributes:
        buckets: Lengths and batch sizes.
        fresh: Share of a batch that nobody has seen.
        kept: Examples kept per bucket for the rest.
        seed: Of the makers.
    """

    buckets: tuple[Bucket, ...]
    fresh: float
    kept: int
    seed: int


def _fresh_count(bucket: Bucket, config: PoolConfig) -> int:
    return max(1, round(bucket.batch * config.fresh))


def _choices(config: PoolConfig) -> np.random.Generator:
    return np.random.default_rng(config.seed + 1)


def _next_bucket(rng: np.random.Generator, config: PoolConfig) -> int:
    shares = np.array([bucket.share for bucket in config.buckets])
    return int(rng.choice(len(shares), p=shares / shares.sum()))


def _produce(connection: Connection, make: Callable[[], Maker], config: PoolConfig) -> None:
    maker, order = make(), _choices(config)
    rng = np.random.default_rng(config.seed)
    while True:
        bucket = config.buckets[_next_bucket(order, config)]
        examples = [maker(rng, bucket.length_samples) for _ in range(_fresh_count(bucket, config))]
        try:
            connection.send(examples)
        except (BrokenPipeError, ConnectionResetError):
            return


class Pool:
    """Batches without end; the same on every run with the same seed."""

    def __init__(self, make: Callable[[], Maker], config: PoolConfig) -> None:
        """Starts the process.

        Args:
            make: Called there once; returns the function that makes one example of a length.
            config: Lengths, sizes and reuse.
        """
        self._config = config
        self._order, self._rng = _choices(config), np.random.default_rng(config.seed + 2)
        self._kept: list[list[Any]] = [[] for _ in config.buckets]
        context = multiprocessing.get_context("spawn")
        self._receiver, sender = context.Pipe(duplex=False)
        arguments = (sender, make, config)
        self._process = context.Process(target=_produce, args=arguments, daemon=True)
        self._process.start()
        sender.close()

    def batch(self) -> list[Any]:
        """The next batch: fresh examples first, then ones from before."""
        index = _next_bucket(self._order, self._config)
        bucket, kept = self._config.buckets[index], self._kept[index]
        fresh: list[Any] = self._receiver.recv()
        again = min(bucket.batch - len(fresh), len(kept))
        chosen: list[int] = self._rng.choice(len(kept), again, replace=False).tolist() if again else []
        batch = fresh + [kept[i] for i in chosen]
        kept.extend(fresh)
        for _ in range(len(kept) - self._config.kept):
            kept.pop(int(self._rng.integers(len(kept))))
        return batch

    def close(self) -> None:
        """Ends the process."""
        self._receiver.close()
        self._process.terminate()
        self._process.join()
