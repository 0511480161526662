"""CTC decoding step by step: greedy, and prefix beam search bound to a lexicon.

Prefix beam search after Hannun et al., 2014, "First-Pass Large Vocabulary Continuous Speech Recognition using
Bi-Directional Recurrent DNNs" (https://arxiv.org/abs/1408.2873), without a language model. Both decoders are pure:
`advance` gives a new state, so a decoder's memory is frozen and carried like any other state.
"""

import math
from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np

from model_runtime.lexicon import Lexicon

_MINUS_INFINITY = -math.inf
# Tokens less likely than this (natural log) do not extend a hypothesis: nine of ten frames are sure blanks.
TOKEN_PRUNING = -7.0


class Token(msgspec.Struct, frozen=True, array_like=True):
    """A decoded token: its id, the frame of its peak, its last frame, and its log probability at the peak."""

    id: int
    peak_frame: int
    last_frame: int
    log_prob: float


Tokens = tuple[Token, ...]


class Hypothesis(msgspec.Struct, frozen=True, array_like=True):
    """One text so far, with the log probabilities of its alignments that end in blank and in its last token."""

    tokens: Tokens
    node: int
    blank: float
    non_blank: float

    def score(self) -> float:
        """Gives the log probability of all alignments together."""
        return log_add(self.blank, self.non_blank)


class DecoderState(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """Frames seen, the token of the last frame (greedy), and the hypotheses, best first."""

    frames: int
    last_id: int
    hypotheses: tuple[Hypothesis, ...]

    def tokens(self) -> Tokens:
        """Gives the tokens of the best hypothesis."""
        return self.hypotheses[0].tokens


# The state of a new utterance, for both decoders.
START = DecoderState(0, 0, (Hypothesis((), 0, 0.0, _MINUS_INFINITY),))


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
        hypotheses, frame = state.hypotheses, state.frames
        for row in log_probs.tolist():
            candidates = [(i, min(p, 0.0)) for i, p in enumerate(row) if i and p > TOKEN_PRUNING]
            hypotheses = self._step(hypotheses, min(row[0], 0.0), candidates, frame)
            frame += 1
        return DecoderState(frame, 0, hypotheses)

    def _step(
        self, hypotheses: tuple[Hypothesis, ...], blank: float, candidates: list[tuple[int, float]], frame: int
    ) -> tuple[Hypothesis, ...]:
        scores = [h.score() for h in hypotheses]
        if not candidates:
            pairs = zip(hypotheses, scores, strict=True)
            return tuple([Hypothesis(h.tokens, h.node, score + blank, _MINUS_INFINITY) for h, score in pairs])
        stayed = [_stayed(h, score, blank, candidates, frame) for h, score in zip(hypotheses, scores, strict=True)]
        texts = {tuple([token.id for token in h.tokens]): i for i, h in enumerate(hypotheses)}
        # Plain tuples until the beam is chosen: most extensions do not live to see the next frame.
        extended: list[tuple[float, int, int, float, int]] = []
        floor = max(scores) + 2 * TOKEN_PRUNING
        for text, i in texts.items():
            hypothesis, score = hypotheses[i], scores[i]
            last = text[-1] if text else 0
            followers = self._lexicon.followers(hypothesis.node)
            for token, log_prob in candidates:
                value = (hypothesis.blank if token == last else score) + log_prob
                if value > floor and token in followers:
                    known = texts.get((*text, token))
                    if known is None:
                        extended.append((value, i, token, log_prob, followers[token]))
                    else:
                        stayed[known] = _joined(stayed[known], Token(token, frame, frame, log_prob), value)
        ranked: list[tuple[float, Hypothesis | None, int]] = [(h.score(), h, -1) for h in stayed]
        ranked += [(entry[0], None, k) for k, entry in enumerate(extended)]
        ranked.sort(key=lambda entry: -entry[0])
        return tuple([h or _grown(hypotheses, extended[k], frame) for _, h, k in ranked[: self._beam]])


def _stayed(
    hypothesis: Hypothesis, score: float, blank: float, candidates: list[tuple[int, float]], frame: int
) -> Hypothesis:
    """Gives a hypothesis whose text stays: by a blank, or by its last token once more."""
    tokens, non_blank = hypothesis.tokens, _MINUS_INFINITY
    if tokens:
        last = tokens[-1]
        for token, log_prob in candidates:
            if token == last.id:
                non_blank = hypothesis.non_blank + log_prob
                if log_prob > last.log_prob:
                    tokens = (*tokens[:-1], Token(token, frame, frame, log_prob))
                else:
                    tokens = (*tokens[:-1], Token(token, last.peak_frame, frame, last.log_prob))
    return Hypothesis(tokens, hypothesis.node, score + blank, non_blank)


def _joined(hypothesis: Hypothesis, last: Token, non_blank: float) -> Hypothesis:
    """Adds alignments that reach the same text with `last` just now; the likelier last token gives the times."""
    tokens = hypothesis.tokens
    if last.log_prob > tokens[-1].log_prob:
        tokens = (*tokens[:-1], last)
    return Hypothesis(tokens, hypothesis.node, hypothesis.blank, log_add(hypothesis.non_blank, non_blank))


def _grown(hypotheses: tuple[Hypothesis, ...], extension: tuple[float, int, int, float, int], frame: int) -> Hypothesis:
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
