"""ReplaySessions: a range of a topic through the live job's sessions, in parts that are committed as a whole."""

from collections.abc import Iterator
from copy import copy

import apache_beam as beam

import transforms.coders  # noqa: F401  (registers the records' coders)
from transforms.engine_handle import _EngineFn
from transforms.records import PartDone
from transforms.replay_work import ReplayOrder, ReplayWork


class ReplaySessions(beam.PTransform):
    """Gives a PartDone for each part of the order, in no order. No audio passes between steps."""

    def __init__(self, order: ReplayOrder) -> None:
        super().__init__()
        self.order = order
        self._replay = _ReplayPartFn(order)

    def load(self, workers: int = 1) -> None:
        """Loads the models, for the workers of this process to share while this transform lives.

        Raises:
            ConfigError, ModelError, DeviceError: what would else fail in every worker.
        """
        # A copy shares the engine; the step itself must stay without one, or it could not be pickled.
        self._loaded = copy(self._replay)
        self._loaded.setup()

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection[PartDone]:
        return (
            pbegin
            | "Parts" >> beam.Create(range(self.order.kafka.parts))
            | "Spread" >> beam.Reshuffle()
            | "Replay" >> beam.ParDo(self._replay)
        )


class _ReplayPartFn(_EngineFn):
    def __init__(self, order: ReplayOrder) -> None:
        super().__init__(order.recipe, order.route)
        self._order = order

    def setup(self) -> None:
        super().setup()
        self._work = ReplayWork(self._order, self.engine)

    def process(self, number: int) -> Iterator[PartDone]:
        yield self._work.do(number)
