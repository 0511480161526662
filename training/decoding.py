"""Token scores to words by the runtime's own decoders, and words to an error rate."""

import numpy as np

from model_runtime.ctc import START, GreedyDecoder, PrefixBeamDecoder, Tokens
from model_runtime.lexicon import Lexicon
from training.words import LEXICON, TOKENS, WORD_START

_BEAM = 8
_GREEDY = GreedyDecoder()
_BOUND = PrefixBeamDecoder(Lexicon(LEXICON, TOKENS), _BEAM)


def greedy(log_probs: np.ndarray) -> Tokens:
    """The best token of each frame of log_probs [T, tokens], without repeats and blanks."""
    return _GREEDY.finish(_GREEDY.advance(START, log_probs))


def bound(log_probs: np.ndarray) -> Tokens:
    """The likeliest tokens that make whole words of the lexicon, from log_probs [T, tokens]."""
    return _BOUND.finish(_BOUND.advance(START, log_probs))


def words_of(tokens: Tokens) -> list[str]:
    """What the tokens spell, cut at the starts of words."""
    text = "".join(TOKENS[token.id] for token in tokens)
    return [part for part in text.split(WORD_START) if part]


def word_errors(reference: list[str], hypothesis: list[str]) -> int:
    """Insertions, deletions and substitutions between the two."""
    row = list(range(len(hypothesis) + 1))
    for i, wanted in enumerate(reference, 1):
        diagonal, row[0] = row[0], i
        for j, got in enumerate(hypothesis, 1):
            change = diagonal + (wanted != got)
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, change)
    return row[-1]


def error_rate(references: list[list[str]], hypotheses: list[list[str]]) -> float:
    """Word errors over words, in percent."""
    pairs = zip(references, hypotheses, strict=True)
    errors = sum(word_errors(reference, hypothesis) for reference, hypothesis in pairs)
    return 100.0 * errors / sum(len(reference) for reference in references)
