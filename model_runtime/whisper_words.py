"""When words were said: the alignment heads' attention, followed by dynamic time warping."""

import math
from collections.abc import Sequence

import numpy as np

from model_runtime.records import Word
from model_runtime.whisper_decode import Hypothesis
from model_runtime.whisper_features import FRAME_SAMPLES, SAMPLE_RATE_HZ
from model_runtime.whisper_tokens import Tokenizer, is_spoken

# Attention is smoothed over this many frames by its median.
_MEDIAN_FRAMES = 7


def timed_words(
    tokenizer: Tokenizer, hypothesis: Hypothesis, lead: Sequence[np.ndarray], language: str, samples: int
) -> tuple[Word, ...]:
    """Gives the words of a transcript, in order and within the clip.

    Args:
        tokenizer: the model's.
        hypothesis: the transcript.
        lead: attention [heads, T] of the last tokens of its prompt.
        language: what the text is written in.
        samples: length of the clip at 16 kHz.
    """
    frames = -(-samples // FRAME_SAMPLES)
    attention = np.stack([*lead, *hypothesis.attention])
    begins = [*token_frames(attention, len(lead), min(frames, attention.shape[-1])), frames]
    words = []
    for text, first, end in tokenizer.words(hypothesis.tokens, language):
        # Marks have no sound: a full stop would carry the last word into the silence behind it.
        spoken = [token for token in range(first, end) if is_spoken(tokenizer.decode([hypothesis.tokens[token]]))]
        last = spoken[-1] if spoken else end - 1
        start_ms, end_ms = (_ms(int(begins[place]), samples) for place in (first, last + 1))
        confidence = math.exp(sum(hypothesis.log_probs[first:end]) / (end - first))
        words.append(Word(text.strip(), start_ms, end_ms, round(confidence, 4)))
    return tuple(words)


def _ms(frame: int, samples: int) -> int:
    return min(frame * FRAME_SAMPLES, samples) * 1000 // SAMPLE_RATE_HZ


def token_frames(attention: np.ndarray, lead: int, frames: int) -> np.ndarray:
    """Gives the first frame of each token after the lead, int [tokens], ascending; frames are 20 ms.

    Args:
        attention: float32 [tokens, heads, T], the last one that of the end of text.
        lead: tokens of the prompt at its beginning, which steady the norm and get no time.
        frames: how many frames the clip itself has, 1..T.
    """
    heard = attention[:, :, :frames].astype(np.float64)
    heard /= np.maximum(heard.sum(axis=-1, keepdims=True), 1e-30)
    deviation = heard.std(axis=0, keepdims=True)
    scaled = (heard - heard.mean(axis=0, keepdims=True)) / np.maximum(deviation, 1e-10)
    path = warp(-_median(scaled).mean(axis=1)[lead:])
    # The path goes through every token; one begins where it is met first.
    _, first = np.unique(path[:, 0], return_index=True)
    begins: np.ndarray = path[first, 1]
    return begins


def warp(cost: np.ndarray) -> np.ndarray:
    """Gives the cheapest monotonic path through a matrix: int [steps, 2] of (row, column), corner to corner.

    A step goes one row on, one column on, or both; of equally cheap ways both at once is taken, then the column.
    """
    rows, columns = cost.shape
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0.0
    # Cells of an anti-diagonal depend on the two before it alone, so each is computed in one go.
    for diagonal in range(2, rows + columns + 1):
        row = np.arange(max(1, diagonal - columns), min(rows, diagonal - 1) + 1)
        column = diagonal - row
        before = np.minimum(np.minimum(total[row - 1, column - 1], total[row, column - 1]), total[row - 1, column])
        total[row, column] = cost[row - 1, column - 1] + before
    row_now, column_now = rows, columns
    path = []
    while row_now and column_now:
        path.append((row_now - 1, column_now - 1))
        moves = ((row_now - 1, column_now - 1), (row_now, column_now - 1), (row_now - 1, column_now))
        row_now, column_now = min(moves, key=lambda cell: total[cell])
    return np.array(path[::-1], np.int64)


def _median(values: np.ndarray) -> np.ndarray:
    """Gives the running median over the last axis, mirrored at both ends; as it is where that is too short."""
    margin = _MEDIAN_FRAMES // 2
    if values.shape[-1] <= margin:
        return values
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(margin, margin)], mode="reflect")
    smooth: np.ndarray = np.median(np.lib.stride_tricks.sliding_window_view(padded, _MEDIAN_FRAMES, axis=-1), axis=-1)
    return smooth
