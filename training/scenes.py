"""Training examples for the denoiser and the voice detector: speech with pauses, alone and in noise."""

from typing import NamedTuple

import numpy as np

from training import augmentation, noise
from training.fsdd import word_string
from training.utterances import Source, one_speaker

SAMPLE_RATE_HZ = 16000
_SILENT_SHARE = 0.06
_CLEAN_SHARE = 0.06


class Scene(NamedTuple):
    """One example, float32 [T] each, 16 kHz, -1..1.

    Attributes:
        noisy: What the model hears.
        clean: The speech in it, at the same level.
    """

    noisy: np.ndarray
    clean: np.ndarray


def _speech(rng: np.random.Generator, source: Source) -> np.ndarray:
    kind = rng.random()
    if kind < 0.5:
        pcm = source.speech[rng.integers(len(source.speech))]
        first = int(rng.integers(0, max(1, len(pcm) - SAMPLE_RATE_HZ)))
        part = pcm[first : first + 4 * SAMPLE_RATE_HZ] * np.float32(1 / 32768)
    elif kind < 0.75:
        part = source.words[rng.integers(len(source.words))].pcm * np.float32(1 / 32768)
    else:
        part = word_string(rng, one_speaker(rng, source), int(rng.integers(1, 6))).pcm
    return augmentation.vary_speech(rng, part)


def clean_speech(rng: np.random.Generator, source: Source, length: int, longest_pause_s: float) -> np.ndarray:
    """Speech by several voices with pauses between them, each at half of full scale or down to -12 dB of that."""
    scene = np.zeros(length, np.float32)
    position = int(rng.uniform(-1.0, longest_pause_s) * SAMPLE_RATE_HZ)
    while position < length:
        part = _speech(rng, source)
        part *= np.float32(10 ** (rng.uniform(-12, 0) / 20) * 0.5 / (np.abs(part).max() + 1e-6))
        first, last = max(0, position), min(length, position + len(part))
        if last > first:
            scene[first:last] = part[first - position : last - position]
        position = last + int(rng.uniform(0.05, longest_pause_s) * SAMPLE_RATE_HZ)
    return scene


def make_scene(
    rng: np.random.Generator, source: Source, length: int, longest_pause_s: float, with_babble: bool
) -> Scene:
    """One example of exactly that many samples, at -6 to 25 dB and any level."""
    clean = clean_speech(rng, source, length, longest_pause_s)
    if rng.random() < _SILENT_SHARE:
        clean *= 0.0
    noisy = clean.copy()
    if rng.random() >= _CLEAN_SHARE:
        speech = source.speech if with_babble else None
        noisy += noise.at_snr(clean, noise.any_noise(rng, length, speech), float(rng.uniform(-6, 25)))
    gain = np.float32(10 ** (rng.uniform(-36, 0) / 20) / (np.abs(noisy).max() + 1e-3))
    return Scene(noisy * gain, clean * gain)
