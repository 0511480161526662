"""Transcripts with timestamps: the segments that they make, and the text without them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from model_runtime.whisper_decode import Hypothesis

_TIMESTAMP_MS = 20


class Segment(NamedTuple):
    """A part of a transcript as the model itself timed it; ms since the clip's first sample."""

    text: str
    start_ms: int
    end_ms: int


def segments_of(
    tokens: Sequence[int], first_timestamp: int, decode: Callable[[Sequence[int]], str], length_ms: int
) -> tuple[Segment, ...]:
    """Gives the texts between timestamps, none of them empty; what has no end reaches to that of the clip."""
    segments = []
    start_ms, first = 0, 0
    for place in range(len(tokens) + 1):
        ended = place == len(tokens)
        if not ended and tokens[place] < first_timestamp:
            continue
        now_ms = length_ms if ended else min((tokens[place] - first_timestamp) * _TIMESTAMP_MS, length_ms)
        text = decode(tokens[first:place]).strip()
        if text:
            segments.append(Segment(text, start_ms, now_ms))
        start_ms, first = now_ms, place + 1
    return tuple(segments)


def without_timestamps(hypothesis: Hypothesis, first_timestamp: int) -> Hypothesis:
    """Gives the hypothesis with its text alone; the end of text keeps its place behind it."""
    places = [place for place, token in enumerate(hypothesis.tokens) if token < first_timestamp]
    kept = [*places, *range(len(hypothesis.tokens), len(hypothesis.log_probs))]
    return Hypothesis(
        tuple(hypothesis.tokens[place] for place in places),
        tuple(hypothesis.log_probs[place] for place in kept),
        tuple(hypothesis.attention[place] for place in kept),
        hypothesis.ended,
    )
