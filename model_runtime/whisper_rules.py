"""Which tokens may come next: suppression, and what holds for the first token."""

from collections.abc import Sequence

import numpy as np

from model_runtime.whisper_framing import WhisperFraming


class TokenRules:
    """Log probabilities of the next token from logits, for transcripts without timestamps."""

    def __init__(self, framing: WhisperFraming) -> None:
        self._framing = framing
        self._cache: dict[tuple[bool, int], np.ndarray] = {}

    def log_probs(self, logits: np.ndarray, first: bool) -> np.ndarray:
        """Gives float32 [V] of one row of logits [V]; -inf for tokens that may not come.

        Each row is normalised by itself: sums over several rows at once could depend on how many there are.
        """
        allowed = logits + self._penalty(first, len(logits))
        top = allowed.max()
        normalised: np.ndarray = allowed - (top + np.log(np.exp(allowed - top).sum()))
        return normalised

    def _penalty(self, first: bool, tokens: int) -> np.ndarray:
        key = first, tokens
        if key not in self._cache:
            penalty = np.zeros(tokens, np.float32)
            # All special tokens lie above the end of text.
            penalty[self._framing.end_of_text + 1 :] = -np.inf
            penalty[_below(self._framing.suppress, tokens)] = -np.inf
            if first:
                penalty[_below(self._framing.suppress_at_begin, tokens)] = -np.inf
            self._cache[key] = penalty
        return self._cache[key]


def probability(logits: np.ndarray, token: int) -> float:
    """Gives the probability of a token by one row of logits [V], no token left out."""
    top = logits.max()
    return float(np.exp(logits[token] - top) / np.exp(logits - top).sum())


def _below(numbers: Sequence[int], bound: int) -> list[int]:
    return [number for number in numbers if number < bound]
