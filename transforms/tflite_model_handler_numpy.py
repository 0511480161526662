"""TFLiteModelHandlerNumpy: one graph of a model card behind Beam's own RunInference, arrays in, arrays out."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from apache_beam.ml.inference.base import PredictionResult

from model_runtime.card import ModelCard, load_card
from model_runtime.devices import RouteConfig
from model_runtime.errors import ConfigError, ModelError
from model_runtime.graph import Graph, GraphBinding
from transforms.tflite_model_handler import _TFLiteHandler

# What a graph with an open batch is called with at most.
_MOST_ROWS = 32

Arrays: TypeAlias = Mapping[str, np.ndarray]
"""Arrays of one row, without the batch dimension, by the card's names; states by the names of their inputs."""


class TFLiteModelHandlerNumpy(_TFLiteHandler):
    """Runs one graph of a card: Arrays (or the only input's array) -> PredictionResult(example, Arrays, model).

    Inputs and outputs are float32 whatever the graph's own numbers are. States are optional: an example without them
    begins a stream, and outputs hold the next ones, to be given with the stream's next example. Rows of equal shapes
    share a call, and do not influence each other.
    """

    def __init__(
        self,
        card: str,
        graph: str | None = None,
        *,
        route: RouteConfig = RouteConfig(),  # noqa: B008  (frozen)
        **kwargs: Any,
    ) -> None:
        """Takes the name or path of a card and the role of one of its graphs.

        Args:
            graph: not needed where the card has one graph only.
            route: devices in order of preference, variants and threads.
            kwargs: ModelHandler's own: large_model, model_copies, batch sizes (at most 32 rows by default).
        """
        super().__init__(**{"max_batch_size": _MOST_ROWS, **kwargs})
        self._card = card
        self._graph = graph
        self._route = route

    def load_model(self) -> "_GraphModel":
        """Loads the graph; once in a process, or once for all of them (`large_model`).

        Raises:
            ConfigError, ModelError, DeviceError: with path and reason.
        """
        card = load_card(self._card)
        roles = [binding.role for binding in card.graphs]
        role = self._graph or roles[0]
        if role not in roles or (self._graph is None and len(roles) > 1):
            raise ConfigError(f"{card.name}: graph must be one of {roles}, got {self._graph!r}")
        return _GraphModel(card, card.graphs[roles.index(role)], self._route)

    def run_inference(
        self,
        batch: Sequence[Arrays | np.ndarray],
        model: "_GraphModel",
        inference_args: dict[str, Any] | None = None,
    ) -> Iterator[PredictionResult]:
        """Gives one result for each example, in order.

        Raises:
            ModelError: an example has other names or shapes than the graph.
        """
        name = model.name()
        for example, outputs in zip(batch, model.run(list(batch)), strict=True):
            yield PredictionResult(example, outputs, name)

    def get_num_bytes(self, batch: Sequence[Arrays | np.ndarray]) -> int:
        """Gives the bytes of the batch's arrays."""
        arrays = [[each] if isinstance(each, np.ndarray) else each.values() for each in batch]
        return sum(int(array.nbytes) for each in arrays for array in each)

    def update_model_path(self, model_path: str | None = None) -> None:
        """Takes another card from RunInference's side input."""
        self._card = model_path or self._card


class _GraphModel:
    """A graph as Beam shares it. From other processes only methods can be called."""

    def __init__(self, card: ModelCard, binding: GraphBinding, route: RouteConfig) -> None:
        sizes = None if card.batch_sizes == "any" else card.batch_sizes
        self._graph = Graph.load(card.paths(binding.role), binding, card.signature, route, sizes)
        self._states = tuple(pair.input for pair in binding.states)
        self._name = f"{card.name}:{card.version}:{self._graph.variant}"

    def name(self) -> str:
        """Gives what results call the model."""
        return self._name

    def run(self, examples: Sequence[Arrays | np.ndarray]) -> list[dict[str, np.ndarray]]:
        """Gives the outputs and the next states of each example, in order."""
        rows = [self._named(example) for example in examples]
        alike: defaultdict[object, list[int]] = defaultdict(list)
        for place, row in enumerate(rows):
            alike[tuple(array.shape for array in row.values())].append(place)
        found: dict[int, dict[str, np.ndarray]] = {}
        for places in alike.values():
            stacked = {name: np.stack([rows[place][name] for place in places]) for name in rows[places[0]]}
            states = tuple(stacked.pop(name) for name in self._states)
            outputs, states = self._graph.run(stacked, states)
            outputs |= dict(zip(self._states, states, strict=True))
            for at, place in enumerate(places):
                found[place] = {name: array[at].copy() for name, array in outputs.items()}
        return [found[place] for place in range(len(rows))]

    def _named(self, example: Arrays | np.ndarray) -> dict[str, np.ndarray]:
        """Gives inputs, then states, in the graph's order."""
        inputs = self._graph.input_names
        arrays = {inputs[0]: example} if isinstance(example, np.ndarray) else dict(example)
        begun = zip(self._states, self._graph.initial_states(1), strict=True)
        arrays = {**{name: zeros[0] for name, zeros in begun}, **arrays}
        if set(arrays) != {*inputs, *self._states}:
            raise ModelError(
                f"{self._name}: an example must have {list(inputs)} and may have states {list(self._states)}, "
                f"got {sorted(example) if isinstance(example, Mapping) else 'one array'}"
            )
        return {name: arrays[name] for name in (*inputs, *self._states)}
