"""Where speech was heard against where there is some, in time."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

Span = tuple[int, int]


class SpeechErrors(NamedTuple):
    """Sums in ms. rate: missed and false speech / speech, None without speech."""

    speech_ms: int
    missed_ms: int
    false_ms: int

    @property
    def rate(self) -> float | None:
        """Wrong time for each ms of speech."""
        return (self.missed_ms + self.false_ms) / self.speech_ms if self.speech_ms else None


def speech_errors(reference: Iterable[Span], heard: Iterable[Span], collar_ms: int = 0) -> SpeechErrors:
    """Compares spans [start_ms, end_ms) of one recording; those of a side may overlap.

    Args:
        collar_ms: time on both sides of each border of the reference that does not count, as people set borders
            differently.
    """
    truth, answer = _joined(reference), _joined(heard)
    free = _joined((border - collar_ms, border + collar_ms) for span in truth for border in span) if collar_ms else []
    counted = _without(truth, free)
    return SpeechErrors(
        _length(counted), _length(_without(counted, answer)), _length(_without(_without(answer, truth), free))
    )


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > start:
            joined.append((start, end))
    return joined


def _without(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """The parts of spans that lie in none of the others; both are sorted and do not overlap."""
    return [part for span in spans for part in _cut(span, others)]


def _cut(span: Span, others: Sequence[Span]) -> Iterator[Span]:
    at, end = span
    for start, stop in others:
        if stop <= at:
            continue
        if start >= end:
            break
        if start > at:
            yield at, start
        at = stop
    if at < end:
        yield at, end


def _length(spans: Iterable[Span]) -> int:
    return sum(end - start for start, end in spans)
