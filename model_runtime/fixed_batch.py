"""Models that take batches of one size only: who asks for more is told once, and the counts of every call say so."""

import logging
from collections.abc import Mapping, Sequence

from model_runtime.calls import CallTally
from model_runtime.graph import Graph

_logger = logging.getLogger(__name__)


class FixedBatches:
    """The models of an engine whose graphs are fixed to a batch size."""

    def __init__(self, models: Mapping[str, Sequence[Graph]]) -> None:
        """models: name -> its graphs."""
        fixed = {name: [g.batch_sizes[0] for g in graphs if len(g.batch_sizes) == 1] for name, graphs in models.items()}
        self._sizes = {name: min(sizes) for name, sizes in fixed.items() if sizes}
        self._told: set[str] = set()

    def note(self, batch_size: int, tally: CallTally) -> None:
        """Takes note, once in the log and in every tally, of models that cannot have batches of this size."""
        for name, size in self._sizes.items():
            if size >= batch_size:
                continue
            tally.fixed[name] = size
            if name not in self._told:
                self._told.add(name)
                _logger.warning(
                    "model %s is fixed to batch size %d and is run with that, not with %d", name, size, batch_size
                )
