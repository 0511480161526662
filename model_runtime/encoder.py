"""Acoustic encoders as kernels: audio in; out come log probabilities of tokens per frame, or a transducer's vectors."""

from collections.abc import Sequence

import numpy as np

from model_runtime.calls import States, split_states, stack, stack_states
from model_runtime.card import StreamingFraming, UtteranceCtcFraming
from model_runtime.graph import Graph


class StreamingEncoderKernel:
    """Rows (samples [context + block], encoder states) -> (the encoder's output [frames, tokens or width], states)."""

    def __init__(self, framing: StreamingFraming, features: Graph, encoder: Graph, output: str) -> None:
        self.framing = framing
        self._features = features
        self._encoder = encoder
        self._output = output

    @property
    def most_rows(self) -> int:
        """Rows that a call should have at most."""
        return min(self._features.most_rows, self._encoder.most_rows)

    def initial_states(self) -> States:
        """Gives the encoder states of one new utterance."""
        return self._encoder.initial_states(1)

    def run(self, rows: Sequence[tuple[np.ndarray, States]]) -> list[tuple[np.ndarray, States]]:
        """Encodes one block per row."""
        features, _ = self._features.run({"samples": stack([row[0] for row in rows])}, ())
        outputs, states = self._encoder.run(features, stack_states([row[1] for row in rows]))
        return list(zip(outputs[self._output], split_states(states, len(rows)), strict=True))


class UtteranceEncoderKernel:
    """Rows (samples of a whole, padded utterance,) -> log probabilities [frames, tokens]."""

    def __init__(self, framing: UtteranceCtcFraming, features: Graph, encoder: Graph) -> None:
        self.framing = framing
        self._features = features
        self._encoder = encoder

    @property
    def most_rows(self) -> int:
        """Rows that a call should have at most."""
        return min(self._features.most_rows, self._encoder.most_rows)

    def run(self, rows: Sequence[tuple[np.ndarray]]) -> list[np.ndarray]:
        """Encodes utterances of equal padded length."""
        features, _ = self._features.run({"samples": stack([row[0] for row in rows])}, ())
        outputs, _ = self._encoder.run(features, ())
        return list(outputs["log_probs"])
