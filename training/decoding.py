"""Token scores to words, and words to an error rate: the simplest forms, for evaluation."""

import numpy as np

from training.words import LEXICON, TOKENS, WORD_START

_WORDS = {"".join(pieces).removeprefix(WORD_START): word for word, pieces in LEXICON.items()}


def greedy(log_probs: np.ndarray) -> list[tuple[int, int]]:
    """The best token of each frame with repeats and blanks removed.

    Args:
        log_probs: [T, tokens], blank first.

    Returns:
        (token, frame) of each spike, in order of time.
    """
    best = log_probs.argmax(axis=1)
    previous = np.concatenate([[0], best[:-1]])
    frames = np.flatnonzero((best != previous) & (best != 0))
    return [(int(best[frame]), int(frame)) for frame in frames]


def words_of(tokens: list[int]) -> list[str]:
    """The words that the tokens spell; what is not a word of the lexicon is kept as it is spelt."""
    text = "".join(TOKENS[token] for token in tokens)
    spelt = [part for part in text.split(WORD_START) if part]
    return [_WORDS.get(part, part) for part in spelt]


def greedy_words(log_probs: np.ndarray) -> list[str]:
    """`words_of` the `greedy` tokens."""
    return words_of([token for token, _ in greedy(log_probs)])


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
