"""Search for transcripts row by row: the best token each time, or drawn tokens."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from model_runtime.whisper_guards import find_loop
from model_runtime.whisper_rules import TokenRules


class Hypothesis(NamedTuple):
    """Tokens so far, timestamps among them, without the end of text.

    log_probs: one per token, and that of the end of text where it was reached.
    attention: of the alignment heads, [heads, T], when each of log_probs was said.
    """

    tokens: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    attention: tuple[np.ndarray, ...] = ()
    ended: bool = False

    def said(self, token: int, log_prob: float, attention: np.ndarray, end_of_text: int) -> "Hypothesis":
        """Gives the hypothesis with one more token."""
        ended = token == end_of_text
        tokens = self.tokens if ended else (*self.tokens, token)
        return Hypothesis(tokens, (*self.log_probs, log_prob), (*self.attention, attention), ended)

    def loop(self, end_of_text: int) -> int | None:
        """Gives how many tokens there are up to the end of a loop's first round, None where the end is no loop.

        Timestamps do not count: they go on where a text does not.
        """
        places = [place for place, token in enumerate(self.tokens) if token < end_of_text]
        end = find_loop([self.tokens[place] for place in places])
        return None if end is None else places[end - 1] + 1

    def cut(self, tokens: int) -> "Hypothesis":
        """Gives the hypothesis up to so many tokens, as if it had ended there."""
        return Hypothesis(self.tokens[:tokens], self.log_probs[: tokens + 1], self.attention[: tokens + 1], True)

    @property
    def average_log_prob(self) -> float:
        """The mean over the tokens and the end of text, which counts as one even where it was not reached."""
        return sum(self.log_probs) / (len(self.tokens) + 1)


class Steps(Protocol):
    """What a search needs of a decoding: see whisper_model.Decoding."""

    def take(self, tokens: np.ndarray) -> None:
        """Takes a text that goes before, int32 [length]."""

    def step(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Takes one token per row; gives logits [n, V] and attention [n, heads, T]."""

    def keep(self, rows: Sequence[int]) -> None:
        """Goes on with these rows."""


class Prefix(NamedTuple):
    """A decoding after its prompt: logits [n, V] of the first token, and the attention that led to it."""

    logits: np.ndarray
    attention: np.ndarray


def feed(steps: Steps, prompts: np.ndarray, start: int = 0) -> list[Prefix]:
    """Gives what each token of the prompts, int32 [n, length], from place `start` on leads to; all begin alike."""
    if start:
        steps.take(prompts[0, :start])
    return [Prefix(*steps.step(tokens)) for tokens in prompts.T[start:]]


def search_rows(
    steps: Steps,
    prefix: Prefix,
    rules: TokenRules,
    end_of_text: int,
    limit: int,
    temperature: float = 0.0,
    draws: Sequence["np.random.Generator"] = (),
) -> list[Hypothesis]:
    """Gives one hypothesis per row, of at most `limit` tokens; a row that has begun to loop is left at that.

    Args:
        steps: a decoding that has taken its prompt.
        prefix: what the prompt's last token led to.
        rules: what may be said.
        end_of_text: the token that ends a transcript.
        limit: tokens of a transcript.
        temperature: 0 takes the most probable token; above, one is drawn with probabilities to the power of
            1 / temperature.
        draws: a generator per row, where tokens are drawn.
    """
    found = [Hypothesis()] * len(prefix.logits)
    under_way = list(range(len(found)))
    # Rows of the decoding -> rows of the result; those that have ended go on until enough of them have.
    places = list(under_way)
    logits, attention = prefix
    while True:
        following = np.full(len(places), end_of_text, np.int32)
        for place, row in enumerate(places):
            if row not in under_way:
                continue
            log_probs = rules.log_probs(logits[place], found[row].tokens)
            scores = log_probs
            if temperature > 0:
                # The largest of scores with Gumbel noise is a draw from their softmax.
                scores = log_probs / np.float32(temperature) + draws[row].gumbel(size=len(log_probs))
            token = following[place] = int(scores.argmax())
            found[row] = found[row].said(int(token), float(log_probs[token]), attention[place].copy(), end_of_text)
        under_way = [row for row in under_way if not is_over(found[row], end_of_text, limit)]
        if not under_way:
            return found
        if 2 * len(under_way) <= len(places):
            kept = [place for place, row in enumerate(places) if row in under_way]
            steps.keep(kept)
            places, following = [places[place] for place in kept], following[kept]
        logits, attention = steps.step(following)


def is_over(hypothesis: Hypothesis, end_of_text: int, limit: int) -> bool:
    """Tells whether a hypothesis does not go on: it has ended, is as long as may be, or loops."""
    return hypothesis.ended or len(hypothesis.tokens) >= limit or hypothesis.loop(end_of_text) is not None
