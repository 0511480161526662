"""Which tokens may come next: suppression, what holds for the first token, and the order of timestamps."""

from collections.abc import Sequence

import numpy as np

from model_runtime.whisper_framing import WhisperFraming

# The first timestamp is at most 1 s, in steps of 20 ms.
_LATEST_FIRST = 50


class TokenRules:
    """Log probabilities of the next token from logits, for transcripts with or without timestamps."""

    def __init__(self, framing: WhisperFraming, timestamps: bool = False) -> None:
        self._end_of_text = framing.end_of_text
        self._first_timestamp = framing.no_timestamps + 1
        self._timestamps = timestamps
        self._suppress = framing.suppress
        self._suppress_at_begin = (*framing.suppress, *framing.suppress_at_begin)
        self._penalties: dict[tuple[bool, int], np.ndarray] = {}

    def log_probs(self, logits: np.ndarray, said: Sequence[int]) -> np.ndarray:
        """Gives float32 [V] of one row of logits [V]; -inf for tokens that may not come.

        Each row is normalised by itself: sums over several rows at once could depend on how many there are.

        Args:
            logits: what the model gave.
            said: the transcript's tokens so far.
        """
        allowed = logits + self._penalty(not said, len(logits))
        if self._timestamps:
            self._order_timestamps(allowed, said)
            normalised = _normalised(allowed)
            text, times = normalised[: self._first_timestamp], normalised[self._first_timestamp :]
            if np.exp(times).sum() <= np.exp(text.max()):
                return normalised
            # All timestamps together are more probable than any word, so one of them it is.
            allowed[: self._first_timestamp] = -np.inf
        return _normalised(allowed)

    def _penalty(self, first: bool, tokens: int) -> np.ndarray:
        key = first, tokens
        if key not in self._penalties:
            penalty = np.zeros(tokens, np.float32)
            # All special tokens lie above the end of text, timestamps above all others.
            penalty[self._end_of_text + 1 : self._first_timestamp if self._timestamps else None] = -np.inf
            suppressed = self._suppress_at_begin if first else self._suppress
            penalty[[token for token in suppressed if token < tokens]] = -np.inf
            self._penalties[key] = penalty
        return self._penalties[key]

    def _order_timestamps(self, allowed: np.ndarray, said: Sequence[int]) -> None:
        """Text begins and ends with a timestamp; between two texts there are two; none is earlier than the last."""
        begin = self._first_timestamp
        if not said:
            allowed[:begin] = -np.inf
            allowed[begin + _LATEST_FIRST + 1 :] = -np.inf
            return
        was_time = said[-1] >= begin
        was_begin = was_time and (len(said) < 2 or said[-2] >= begin)
        if was_begin:
            allowed[begin:] = -np.inf
        elif was_time:
            allowed[: self._end_of_text] = -np.inf
        last = next((token for token in reversed(said) if token >= begin), begin)
        # A text may begin when the last one ended, but it does not end when it began.
        allowed[begin : last if was_time else last + 1] = -np.inf


def probability(logits: np.ndarray, token: int) -> float:
    """Gives the probability of a token by one row of logits [V], no token left out."""
    top = logits.max()
    return float(np.exp(logits[token] - top) / np.exp(logits - top).sum())


def _normalised(scores: np.ndarray) -> np.ndarray:
    top = scores.max()
    normalised: np.ndarray = scores - (top + np.log(np.exp(scores - top).sum()))
    return normalised
