"""The event time of a session's samples, whatever pauses its sender makes. Knows no Beam."""

from typing import NamedTuple

# Senders' clocks jitter; what differs by less is taken to follow on.
_JITTER_MS = 200
_MOST_ANCHORS = 16


class Anchor(NamedTuple):
    """From this sample on audio follows on without a pause: its position, and its capture time (Unix ms)."""

    samples: int
    event_ms: int


def place_chunk(anchors: list[Anchor], samples: int, event_ms: int, rate_hz: int) -> list[Anchor]:
    """Gives the anchors of a session whose next chunk begins at position `samples`, captured at `event_ms`.

    A function of the chunks alone. The newest 16 are kept, which is as many pauses back as an event can be looked up.
    """
    if anchors and abs(event_time_ms(anchors, samples, rate_hz) - event_ms) <= _JITTER_MS:
        return anchors
    return [*anchors, Anchor(samples, event_ms)][-_MOST_ANCHORS:]


def event_time_ms(anchors: list[Anchor], samples: int, rate_hz: int) -> int:
    """Gives the capture time of the sample at a position; there must be an anchor."""
    before = [anchor for anchor in anchors if anchor.samples <= samples]
    anchor = before[-1] if before else anchors[0]
    return anchor.event_ms + (samples - anchor.samples) * 1000 // rate_hz
