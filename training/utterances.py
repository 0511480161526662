"""Training examples for the recognisers: words of known order in noise, padded to a fixed length."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from training import augmentation, noise
from training.clips import Clip
from training.fsdd import TRAINING_SPEAKERS, Recordings, digit_string, load_recordings
from training.synthesis import cached_clips
from training.words import encode

SAMPLE_RATE_HZ = 16000
# Speech ends at least this long before the example does, so that a causal model can still answer.
_TAIL_SAMPLES = 5120
_EMPTY_SHARE = 0.03
_FSDD_SHARE = 0.5
_MOST_SEGMENTS = 4


class Source(NamedTuple):
    """What examples are made of."""

    words: list[Clip]
    recordings: Recordings
    speech: list[np.ndarray]


class Example(NamedTuple):
    """One example: pcm float32 [T], 16 kHz, -1..1, and the indices of its tokens."""

    pcm: np.ndarray
    tokens: list[int]


def load_source(cache: Path, shared: Path) -> Source:
    """Everything that may be trained on."""
    recordings = load_recordings(shared / "data" / "fsdd", TRAINING_SPEAKERS, training=True)
    sentences = [clip.pcm for clip in cached_clips(cache, "sentences")]
    return Source(cached_clips(cache, "words"), recordings, sentences)


def _segment(rng: np.random.Generator, source: Source) -> tuple[np.ndarray, list[str]]:
    if rng.random() < _FSDD_SHARE:
        speakers = list(source.recordings.values())
        clips = speakers[rng.integers(len(speakers))]
        pcm, words = digit_string(rng, clips, int(rng.choice((1, 1, 2, 3, 4, 5, 6))))
    else:
        clip = source.words[rng.integers(len(source.words))]
        pcm, words = clip.pcm * np.float32(1 / 32768), clip.text.split()
    return augmentation.vary_speech(rng, pcm), words


def _speech(rng: np.random.Generator, source: Source, room_samples: int) -> tuple[np.ndarray, list[str]]:
    """Segments that fit into the room there is, with pauses between them."""
    parts: list[np.ndarray] = []
    words: list[str] = []
    used = 0
    for _ in range(12):
        pcm, said = _segment(rng, source)
        gap = int(rng.uniform(0.05, 0.6) * SAMPLE_RATE_HZ)
        if used + gap + len(pcm) > room_samples:
            continue
        pcm = pcm * np.float32(10 ** (rng.uniform(-6, 0) / 20) * 0.5 / (np.abs(pcm).max() + 1e-6))
        parts += [np.zeros(gap, np.float32), pcm]
        words += said
        used += gap + len(pcm)
        if len(parts) // 2 >= _MOST_SEGMENTS or rng.random() < 0.4:
            break
    return np.concatenate(parts) if parts else np.zeros(0, np.float32), words


def _with_noise(rng: np.random.Generator, source: Source, pcm: np.ndarray, end: int) -> np.ndarray:
    """Noise at -3 to 40 dB under the speech, for all of the example or to a little after the speech."""
    if rng.random() < 0.9:
        background = noise.any_noise(rng, len(pcm), source.speech)
        background = noise.at_snr(pcm, background, float(rng.uniform(-2, 35)))
        if rng.random() < 0.4:
            background[min(len(pcm), end + int(rng.integers(0, 3200))) :] = 0.0
        if rng.random() < 0.15:
            background[: int(rng.integers(0, 4000))] = 0.0
        pcm = pcm + background
    return pcm


def make_example(rng: np.random.Generator, source: Source, length: int) -> Example:
    """One example of exactly that many samples."""
    pcm = np.zeros(length, np.float32)
    words: list[str] = []
    end = length
    if rng.random() >= _EMPTY_SHARE:
        speech, words = _speech(rng, source, length - _TAIL_SAMPLES)
        spare = length - _TAIL_SAMPLES - len(speech)
        start = int(rng.integers(0, max(1, spare)))
        end = start + len(speech)
        pcm[start:end] = speech
    pcm = _with_noise(rng, source, pcm, end)
    peak = np.float32(10 ** (rng.uniform(-38, 0) / 20) / (np.abs(pcm).max() + 1e-4))
    pcm = pcm * peak
    if rng.random() < 0.2:
        pcm = pcm + np.float32(rng.normal(0.0, 0.01))
    if rng.random() < 0.6:
        pcm = np.round(pcm * 32767) / 32768
    return Example(np.clip(pcm, -1.0, 1.0).astype(np.float32), encode(words))
