"""Spoken digits of the Free Spoken Digit Dataset, and strings of them as if said in one go."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
import soxr

from training.clips import Clip
from training.words import DIGITS

SAMPLE_RATE_HZ = 16000
TRAINING_SPEAKERS = ("jackson", "lucas", "nicolas", "theo", "yweweler")
HELD_OUT_SPEAKER = "george"
# Recordings 0 to 4 of everybody stay out of training, as the data set asks.
_FIRST_TRAINING_RECORDING = 5
_FADE_SAMPLES = 80

Recordings = dict[str, list[Clip]]


def _read(path: Path) -> np.ndarray:
    pcm, rate_hz = soundfile.read(path, dtype="float32")
    pcm = np.asarray(soxr.resample(pcm, rate_hz, SAMPLE_RATE_HZ), np.float32)
    return (pcm * (0.5 * 32767 / max(1e-4, float(np.abs(pcm).max())))).astype(np.int16)


def load_recordings(folder: Path, speakers: tuple[str, ...], training: bool) -> Recordings:
    """Single digits by speaker, 16 kHz, scaled to half of full scale.

    Args:
        folder: Holds ``{digit}_{speaker}_{n}.wav``.
        speakers: Whom to load; who is not there is left out.
        training: Leave out the recordings that are kept for evaluation.
    """
    recordings: Recordings = {}
    for path in sorted(folder.glob("*.wav")):
        digit, speaker, number = path.stem.split("_")
        if speaker not in speakers or (training and int(number) < _FIRST_TRAINING_RECORDING):
            continue
        clip = Clip(_read(path), DIGITS[int(digit)], speaker)
        recordings.setdefault(speaker, []).append(clip)
    return recordings


def join(parts: list[np.ndarray], gaps_samples: list[int]) -> tuple[np.ndarray, list[int]]:
    """Parts one after the other with gaps of zeros; a negative gap lets neighbours overlap.

    Args:
        parts: float32 [T] each; their ends are faded over 5 ms.
        gaps_samples: One fewer than parts.

    Returns:
        float32 [T], and the sample at which each part starts.
    """
    fade = np.linspace(0.0, 1.0, _FADE_SAMPLES, dtype=np.float32)
    starts = [0]
    for part, gap in zip(parts[:-1], gaps_samples, strict=True):
        starts.append(max(starts[-1], starts[-1] + len(part) + gap))
    length = max(start + len(part) for start, part in zip(starts, parts, strict=True))
    joined = np.zeros(length, np.float32)
    for start, part in zip(starts, parts, strict=True):
        faded = part.astype(np.float32)
        faded[:_FADE_SAMPLES] *= fade
        faded[-_FADE_SAMPLES:] *= fade[::-1]
        joined[start : start + len(part)] += faded
    return joined, starts


class SpokenString(NamedTuple):
    """Words said in a row.

    Attributes:
        pcm: float32 [T], 16 kHz, about -0.5..0.5.
        words: What is said.
        spans: Of each word, its first sample and the one after its last.
    """

    pcm: np.ndarray
    words: list[str]
    spans: list[tuple[int, int]]


def any_clips(rng: np.random.Generator, clips: list[Clip], count: int) -> list[Clip]:
    """That many of a speaker's clips, the same one more than once perhaps."""
    return [clips[rng.integers(len(clips))] for _ in range(count)]


def word_string(rng: np.random.Generator, clips: list[Clip], count: int, longest_gap_s: float = 0.5) -> SpokenString:
    """Words of one speaker in a row, sometimes run together."""
    return strung_together(rng, any_clips(rng, clips, count), longest_gap_s)


def strung_together(rng: np.random.Generator, chosen: list[Clip], longest_gap_s: float = 0.5) -> SpokenString:
    """Single words in their order, sometimes run together."""
    count = len(chosen)
    gains = 10 ** (rng.uniform(-5, 0, count) / 20)
    parts = [clip.pcm * np.float32(g / 32768) for clip, g in zip(chosen, gains, strict=True)]
    shortest_s = -0.04 if rng.random() < 0.5 else 0.02
    longest_s = longest_gap_s if rng.random() < 0.6 else 0.1
    gaps = rng.uniform(shortest_s, longest_s, count - 1) * SAMPLE_RATE_HZ
    pcm, starts = join(parts, [int(gap) for gap in gaps])
    spans = [(start, start + len(part)) for start, part in zip(starts, parts, strict=True)]
    return SpokenString(pcm, [clip.text for clip in chosen], spans)
