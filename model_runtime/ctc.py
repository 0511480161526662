"""CTC decoding step by step: greedy, and prefix beam search bound to a lexicon.

Prefix beam search after Hannun et al., 2014, "First-Pass Large Vocabulary Continuous Speech Recognition using
Bi-Directional Recurrent DNNs" (https://arxiv.org/abs/1408.2873), without a language model. Both decoders are pure:
`advance` gives a new state, so a decoder's memory is frozen and carried like any other state.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec
import numpy as np

from model_runtime.lexicon import Lexicon

_MINUS_INFINITY = -math.inf
# Tokens less likely than this (natural log) do not extend a hypothesis: nine of ten frames are sure blanks.
TOKEN_PRUNING = -7.0


class Token(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A decoded token: its id, the frame of its peak, its last frame, and its log probability at the peak."""

    id: int
    peak_frame: int
    last_frame: int
    log_prob: float


Tokens = tuple[Token, ...]


class Hypothesis(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One text so far, with the log probabilities of its alignments that end in blank and in its last token."""

    tokens: Tokens
    node: int
    blank: float
    non_blank: float

    def score(self) -> float:
        """Gives the log probability of all alignments together."""
        # Nine of ten end in blanks alone.
        return self.blank if self.non_blank == _MINUS_INFINITY else log_add(self.blank, self.non_blank)


class DecoderState(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=0):
    """Frames seen, the token of the last frame (greedy), and the hypotheses, best first."""

    frames: int
    last_id: int
    hypotheses: tuple[Hypothesis, ...]

    def tokens(self) -> Tokens:
        """Gives the tokens of the best hypothesis."""
        return self.hypotheses[0].tokens


# The state of a new utterance, for both decoders.
START = DecoderState(0, 0, (Hypothesis((), 0, 0.0, _MINUS_INFINITY),))


class _Extension(NamedTuple):
    """A hypothesis with one token more: its score, whose it is (by place), the token, and the lexicon's next node."""

    score: float
    parent: int
    token: int
    log_prob: float
    node: int


class GreedyDecoder:
    """The best token of every frame, repeats merged, blanks (id 0) dropped."""

    def advance(self, state: DecoderState, log_probs: np.ndarray) -> DecoderState:
        """Takes log probabilities [frames, tokens]."""
        tokens = list(state.tokens())
        last_id, frame = state.last_id, state.frames
        for best, row in zip(log_probs.argmax(axis=1).tolist(), log_probs, strict=True):
            if best:
                log_prob = min(float(row[best]), 0.0)
                if best != last_id:
                    tokens.append(Token(best, frame, frame, log_prob))
                else:
                    tokens[-1] = _prolonged(tokens[-1], frame, log_prob)
            last_id = best
            frame += 1
        return DecoderState(frame, last_id, (Hypothesis(tuple(tokens), 0, 0.0, _MINUS_INFINITY),))

    def so_far(self, state: DecoderState) -> Tokens:
        """Gives the tokens of an utterance that goes on."""
        return state.tokens()

    def finish(self, state: DecoderState) -> Tokens:
        """Gives the tokens of the whole utterance."""
        return state.tokens()


class Text(Protocol):
    """A hypothesis of any search: its tokens, and its place in the lexicon."""

    @property
    def tokens(self) -> Tokens:
        """The tokens."""

    @property
    def node(self) -> int:
        """The lexicon's node."""


class Beam(Protocol):
    """The state of any search: its hypotheses, best first."""

    @property
    def hypotheses(self) -> Sequence[Text]:
        """The hypotheses."""


class WholeWords:
    """What a search says that is bound to a lexicon: words, and no parts of them."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon

    def finish(self, state: Beam) -> Tokens:
        """Gives the tokens of the best hypothesis that ends with a whole word, else of the best one cut to one."""
        for hypothesis in state.hypotheses:
            if self._lexicon.is_whole(hypothesis.node):
                return hypothesis.tokens
        return self.so_far(state)

    def so_far(self, state: Beam) -> Tokens:
        """Gives the whole words of the best hypothesis of an utterance that goes on."""
        tokens = state.hypotheses[0].tokens
        return tokens[: self._lexicon.longest_whole([token.id for token in tokens])]


class PrefixBeamDecoder(WholeWords):
    """The most probable texts over all their alignments; with a lexicon, only texts made of its words."""

    def __init__(self, lexicon: Lexicon, beam: int) -> None:
        super().__init__(lexicon)
        self._beam = beam

    def advance(self, state: DecoderState, log_probs: np.ndarray) -> DecoderState:
        """Takes log probabilities [frames, tokens]."""
        hypotheses, frame, silent = state.hypotheses, state.frames, False
        scores = [h.score() for h in hypotheses]
        for row in log_probs.tolist():
            blank = min(row[0], 0.0)
            if max(row[1:]) > TOKEN_PRUNING:
                likely = {i: min(p, 0.0) for i, p in enumerate(row) if i and p > TOKEN_PRUNING}
                if silent:
                    hypotheses, silent = _after_blanks(hypotheses, scores), False
                hypotheses, scores = self._step(hypotheses, scores, blank, likely, frame)
            else:
                scores, silent = [score + blank for score in scores], True
            frame += 1
        return DecoderState(frame, 0, _after_blanks(hypotheses, scores) if silent else hypotheses)

    def _step(
        self,
        hypotheses: tuple[Hypothesis, ...],
        scores: list[float],
        blank: float,
        likely: dict[int, float],
        frame: int,
    ) -> tuple[tuple[Hypothesis, ...], list[float]]:
        """Gives the hypotheses after one frame, best first, and the score of each.

        likely: token -> log probability, of those that are worth a look.
        """
        stayed = [_stayed(h, score, blank, likely, frame) for h, score in zip(hypotheses, scores, strict=True)]
        grown = self._extensions(hypotheses, scores, likely)
        if grown:
            grown = _merged(hypotheses, stayed, grown, frame)
        values = [h.score() for h in stayed]
        values += [extension.score for extension in grown]
        # Reversed, a sort still leaves equals in their order.
        best = sorted(range(len(values)), key=values.__getitem__, reverse=True)[: self._beam]
        count = len(stayed)
        chosen = [stayed[k] if k < count else _grown(hypotheses, grown[k - count], frame) for k in best]
        return tuple(chosen), [values[k] for k in best]

    def _extensions(
        self, hypotheses: tuple[Hypothesis, ...], scores: list[float], likely: dict[int, float]
    ) -> list[_Extension]:
        """Gives what the hypotheses can grow by; most of it does not live to see the next frame."""
        found = []
        floor = max(scores) + 2 * TOKEN_PRUNING
        for i, hypothesis in enumerate(hypotheses):
            followers = self._lexicon.followers(hypothesis.node)
            last = hypothesis.tokens[-1].id if hypothesis.tokens else 0
            for token, log_prob in likely.items():
                if token in followers:
                    value = (hypothesis.blank if token == last else scores[i]) + log_prob
                    if value > floor:
                        found.append(_Extension(value, i, token, log_prob, followers[token]))
        return found


def _after_blanks(hypotheses: tuple[Hypothesis, ...], scores: list[float]) -> tuple[Hypothesis, ...]:
    """Gives the hypotheses with new scores, where nothing but blanks has gone by."""
    pairs = zip(hypotheses, scores, strict=True)
    return tuple([Hypothesis(h.tokens, h.node, score, _MINUS_INFINITY) for h, score in pairs])


def _merged(
    hypotheses: tuple[Hypothesis, ...], stayed: list[Hypothesis], grown: list[_Extension], frame: int
) -> list[_Extension]:
    """Adds the extensions that make a text that is there already to it, in `stayed`; gives the others."""
    texts = [tuple([token.id for token in h.tokens]) for h in hypotheses]
    places = {text: i for i, text in enumerate(texts)}
    new = []
    for extension in grown:
        value, parent, token, log_prob, _ = extension
        known = places.get((*texts[parent], token))
        if known is None:
            new.append(extension)
        else:
            stayed[known] = _joined(stayed[known], Token(token, frame, frame, log_prob), value)
    return new


def _stayed(hypothesis: Hypothesis, score: float, blank: float, likely: dict[int, float], frame: int) -> Hypothesis:
    """Gives a hypothesis whose text stays: by a blank, or by its last token once more."""
    tokens = hypothesis.tokens
    log_prob = likely.get(tokens[-1].id) if tokens else None
    if log_prob is None:
        return Hypothesis(tokens, hypothesis.node, score + blank, _MINUS_INFINITY)
    tokens = (*tokens[:-1], _prolonged(tokens[-1], frame, log_prob))
    return Hypothesis(tokens, hypothesis.node, score + blank, hypothesis.non_blank + log_prob)


def _joined(hypothesis: Hypothesis, last: Token, non_blank: float) -> Hypothesis:
    """Adds alignments that reach the same text with `last` just now; the likelier last token gives the times."""
    tokens = hypothesis.tokens
    if last.log_prob > tokens[-1].log_prob:
        tokens = (*tokens[:-1], last)
    return Hypothesis(tokens, hypothesis.node, hypothesis.blank, log_add(hypothesis.non_blank, non_blank))


def _grown(hypotheses: tuple[Hypothesis, ...], extension: _Extension, frame: int) -> Hypothesis:
    """Gives a hypothesis with one token more."""
    value, parent, token, log_prob, node = extension
    tokens = (*hypotheses[parent].tokens, Token(token, frame, frame, log_prob))
    return Hypothesis(tokens, node, _MINUS_INFINITY, value)


def _prolonged(token: Token, frame: int, log_prob: float) -> Token:
    if log_prob > token.log_prob:
        return Token(token.id, frame, frame, log_prob)
    return Token(token.id, token.peak_frame, frame, token.log_prob)


def log_add(a: float, b: float) -> float:
    """Gives log(exp(a) + exp(b)); minus infinity stands for nothing."""
    if a < b:
        a, b = b, a
    return a if b == _MINUS_INFINITY else a + math.log1p(math.exp(b - a))
