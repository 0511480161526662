"""Two runs of words that overlap, as two recognitions of the same audio do: each word of the overlap once."""

from collections.abc import Sequence
from itertools import takewhile

from model_runtime.records import Word

# The same word, heard twice, lies nearly at the same time; one that was heard as another word nearer still. The second
# bound is below the time from one word to the next, so that a word is never taken for its neighbour.
_SAME_MS = 400
_OTHER_MS = 200
# A pair of the same word outweighs one of different words.
_OTHER_WEIGHT = 0.5


def word_seam(left: Sequence[Word], right: Sequence[Word], middle_ms: int) -> tuple[int, int]:
    """Gives i, j so that left[:i] and right[j:] together have each word once, in order.

    What both have is taken from the side that heard it further from its edge; what only one has, where its half of the
    overlap is.

    Args:
        left, right: words in order, on one time axis.
        middle_ms: of the overlap.
    """
    pairs = _pairs(left, right)
    taken = list(takewhile(lambda pair: _middle(left[pair[0]]) + _middle(right[pair[1]]) < 2 * middle_ms, pairs))
    i, j = (taken[-1][0] + 1, taken[-1][1] + 1) if taken else (0, 0)
    end_i, end_j = pairs[len(taken)] if len(taken) < len(pairs) else (len(left), len(right))
    while i < end_i and _middle(left[i]) < middle_ms:
        i += 1
    while j < end_j and _middle(right[j]) < middle_ms:
        j += 1
    return i, j


def _pairs(left: Sequence[Word], right: Sequence[Word]) -> list[tuple[int, int]]:
    """Gives which words are one and the same, ascending: the alignment of the greatest weight."""
    rows, columns = len(left), len(right)
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in reversed(range(rows)):
        for j in reversed(range(columns)):
            paired = best[i + 1][j + 1] + _weight(left[i], right[j])
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < rows and j < columns:
        weight = _weight(left[i], right[j])
        if weight > 0 and best[i][j] == best[i + 1][j + 1] + weight:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _weight(left: Word, right: Word) -> float:
    """How well two words go together, 0 where they do not."""
    apart_ms = abs(_middle(left) - _middle(right))
    if left.text == right.text:
        return max(0.0, 1 - apart_ms / _SAME_MS)
    return _OTHER_WEIGHT * max(0.0, 1 - apart_ms / _OTHER_MS)


def _middle(word: Word) -> float:
    return (word.start_ms + word.end_ms) / 2
