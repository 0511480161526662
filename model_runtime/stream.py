"""A recording as the engine hears it: of any length, block by block."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from model_runtime.audio import Audio, check_samples
from model_runtime.records import Event


class Stream(NamedTuple):
    """A recording that is read while it is heard.

    blocks: float32 [n], -1..1, of any sizes, one after the other; take: is given the events as they come, in order.
    """

    sample_rate_hz: int
    blocks: Iterable[np.ndarray]
    take: Callable[[list[Event]], None]


def whole_clip(clip: Audio | np.ndarray, sample_rate_hz: int, take: Callable[[list[Event]], None]) -> Stream:
    """Gives a clip in one block; one without a rate has `sample_rate_hz`.

    Raises:
        AudioError: samples that check_samples refuses.
    """
    samples, rate_hz = clip if isinstance(clip, Audio) else (clip, sample_rate_hz)
    return Stream(rate_hz, (check_samples(samples),), take)
