"""Voice activity models: blocks of samples in, one speech probability per frame out (Silero's interface)."""

from collections.abc import Sequence

import numpy as np

from model_runtime.calls import States, split_states, stack, stack_states
from model_runtime.card import ProbabilityFraming
from model_runtime.graph import Graph


class ProbabilityKernel:
    """Rows (samples [context + block], graph states) -> (probabilities [frames per block], states)."""

    def __init__(self, framing: ProbabilityFraming, graph: Graph) -> None:
        self.framing = framing
        self._graph = graph

    @property
    def most_rows(self) -> int:
        """Rows that a call should have at most."""
        return self._graph.most_rows

    def initial_states(self) -> States:
        """Gives the graph states of one new session."""
        return self._graph.initial_states(1)

    def run(self, rows: Sequence[tuple[np.ndarray, States]]) -> list[tuple[np.ndarray, States]]:
        """Judges one block per row."""
        samples = stack([row[0] for row in rows])
        outputs, states = self._graph.run({"samples": samples}, stack_states([row[1] for row in rows]))
        speech = outputs["speech"].reshape(len(rows), -1)
        return list(zip(speech, split_states(states, len(rows)), strict=True))
