"""Audio that shows a quantiser what a running model meets."""

import numpy as np

from training.utterances import Source, make_example

SAMPLE_RATE_HZ = 16000


def calibration_pcm(source: Source, count: int, length: int, seed: int = 31) -> list[np.ndarray]:
    """Training examples, float32 [length] each; the first is digital silence."""
    rng = np.random.default_rng(seed)
    silence = np.zeros(length, np.float32)
    return [silence, *(make_example(rng, source, length).pcm for _ in range(count - 1))]
