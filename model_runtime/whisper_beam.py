"""Search for transcripts by a beam: several hypotheses of each clip go on side by side."""

from collections.abc import Sequence

import numpy as np

from model_runtime.whisper_decode import Hypothesis, Prefix, Steps
from model_runtime.whisper_guards import find_loop
from model_runtime.whisper_rules import TokenRules


def search_beam(
    steps: Steps, prefix: Prefix, rules: TokenRules, end_of_text: int, limit: int, beam: int
) -> list[Hypothesis]:
    """Gives the best hypothesis of each clip: that with the largest mean log probability, none that loops.

    Args:
        steps: a decoding with `beam` rows per clip, one clip's below the other's, that has taken its prompt.
        prefix: what the prompt's last token led to.
        rules: what may be said.
        end_of_text: the token that ends a transcript.
        limit: tokens of a transcript.
        beam: hypotheses that go on, and transcripts that a clip's search ends with.
    """
    clips = [_Clip(beam, limit, end_of_text) for _ in range(len(prefix.logits) // beam)]
    logits, attention = prefix
    while True:
        parents: list[int] = []
        for number, clip in enumerate(clips):
            first = number * beam
            rows = slice(first, first + beam)
            parents += [first + row for row in clip.grow(logits[rows], attention[rows], rules)]
        if all(clip.is_over for clip in clips):
            return [clip.best() for clip in clips]
        steps.keep(parents)
        last = [token for clip in clips for token in clip.last_tokens()]
        logits, attention = steps.step(np.array(last, np.int32))


class _Clip:
    """The search of one clip."""

    def __init__(self, beam: int, limit: int, end_of_text: int) -> None:
        self._beam = beam
        self._limit = limit
        self._end_of_text = end_of_text
        # Most probable first. All rows are the same before the first token, so one of them speaks for all.
        self._alive = [Hypothesis()]
        self._over: list[Hypothesis] = []

    @property
    def is_over(self) -> bool:
        return len(self._over) >= self._beam or not self._alive

    def grow(self, logits: np.ndarray, attention: np.ndarray, rules: TokenRules) -> list[int]:
        """Takes one more token; gives the row that each hypothesis came from, filled up to the beam."""
        if self.is_over:
            return list(range(self._beam))
        candidates: list[tuple[float, int, int, float]] = []
        for row, hypothesis in enumerate(self._alive):
            log_probs = rules.log_probs(logits[row], not hypothesis.tokens)
            total = sum(hypothesis.log_probs)
            # One more than the beam, since one of them may be the end of text.
            for token in _most_probable(log_probs, self._beam + 1):
                candidates.append((total + float(log_probs[token]), row, token, float(log_probs[token])))
        candidates.sort(key=lambda candidate: -candidate[0])
        alive: list[Hypothesis] = []
        parents: list[int] = []
        for _, row, token, log_prob in candidates:
            grown = self._alive[row].said(token, log_prob, attention[row].copy(), self._end_of_text)
            if grown.ended or len(grown.tokens) >= self._limit or find_loop(grown.tokens) is not None:
                self._over.append(grown)
            else:
                alive.append(grown)
                parents.append(row)
            if len(alive) == self._beam:
                break
        self._alive = alive
        return parents + [0] * (self._beam - len(parents))

    def last_tokens(self) -> list[int]:
        """Gives what each row goes on with; rows without a hypothesis go on with the end of text."""
        last = [] if self.is_over else [hypothesis.tokens[-1] for hypothesis in self._alive]
        return last + [self._end_of_text] * (self._beam - len(last))

    def best(self) -> Hypothesis:
        """Gives the hypothesis to take."""
        return max(self._over, key=lambda one: (find_loop(one.tokens) is None, one.average_log_prob))


def _most_probable(log_probs: np.ndarray, count: int) -> Sequence[int]:
    """Gives the tokens that may be said, `count` at most, the most probable first, of equals the lower number."""
    count = min(count, len(log_probs))
    top = np.sort(np.argpartition(-log_probs, count - 1)[:count])
    ordered = top[np.argsort(-log_probs[top], kind="stable")]
    return [int(token) for token in ordered if np.isfinite(log_probs[token])]
