"""What the recognisers are tested on: people, voices and an accent that training never heard."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from training import noise
from training.fsdd import HELD_OUT_SPEAKER, load_recordings, word_string
from training.synthesis import cached_clips

SAMPLE_RATE_HZ = 16000
_LEAD_SAMPLES = 4800
# Silence after the last word, as the runtime's flush gives it.
_TAIL_SAMPLES = 6400
_STRINGS = 300
_LONGEST_STRING = 6


class Utterance(NamedTuple):
    """One test utterance.

    Attributes:
        pcm: float32 [T], 16 kHz, -1..1, with silence before and after.
        words: What is said.
        end: Sample at which the speech ends.
    """

    pcm: np.ndarray
    words: list[str]
    end: int


def _placed(rng: np.random.Generator, speech: np.ndarray, words: list[str]) -> Utterance:
    speech = speech * np.float32(0.3 / (np.abs(speech).max() + 1e-6))
    pcm = np.pad(speech, (_LEAD_SAMPLES, _TAIL_SAMPLES))
    pcm += np.float32(1e-4) * rng.standard_normal(len(pcm)).astype(np.float32)
    loud = np.flatnonzero(np.abs(speech) > 0.01)
    return Utterance(pcm, words, _LEAD_SAMPLES + int(loud[-1]) + 1)


def person_strings(shared: Path) -> list[Utterance]:
    """300 strings of 1 to 6 digits by the speaker who is not in training, gaps of 20 to 500 ms."""
    rng = np.random.default_rng(2024)
    folder = shared / "data" / "fsdd"
    clips = load_recordings(folder, (HELD_OUT_SPEAKER,), training=False)[HELD_OUT_SPEAKER]
    utterances = []
    for index in range(_STRINGS):
        string = word_string(rng, clips, 1 + index % _LONGEST_STRING)
        utterances.append(_placed(rng, string.pcm, string.words))
    return utterances


def synthetic(cache: Path, part: str) -> list[Utterance]:
    """The utterances of a held-out part of the synthesis."""
    rng = np.random.default_rng(2025)
    clips = cached_clips(cache, part)
    return [_placed(rng, clip.pcm / np.float32(32768), clip.text.split()) for clip in clips]


def noisy(utterances: list[Utterance], snr_db: float) -> list[Utterance]:
    """The same in white, pink, hum and click noise by turns."""
    rng = np.random.default_rng(2026)
    kinds = (noise.white, noise.pink, noise.hum, noise.clicks)
    result = []
    for index, utterance in enumerate(utterances):
        background = kinds[index % len(kinds)](rng, len(utterance.pcm))
        background = noise.at_snr(utterance.pcm, background, snr_db)
        result.append(utterance._replace(pcm=utterance.pcm + background))
    return result


def only_noise(seconds: int) -> list[Utterance]:
    """Noise of every kind without any speech, 10 s each, quiet and loud."""
    rng = np.random.default_rng(2027)
    result = []
    for _ in range(seconds // 10):
        background = noise.any_noise(rng, 10 * SAMPLE_RATE_HZ)
        level = np.float32(10 ** (rng.uniform(-50, -15) / 20))
        result.append(Utterance(np.clip(background * level, -1, 1), [], 0))
    return result


def all_sets(cache: Path, shared: Path) -> dict[str, list[Utterance]]:
    """Every set that there is data for, by the name that its figures have in a card."""
    strings, voices = person_strings(shared), synthetic(cache, "held_out_voices")
    sets = {
        "person": strings,
        "person_10db": noisy(strings, 10.0),
        "voices": voices,
        "voices_10db": noisy(voices, 10.0),
        "accent": synthetic(cache, "held_out_accent"),
        "recorded_voice": synthetic(cache, "held_out_recorded"),
    }
    return {name: utterances for name, utterances in sets.items() if utterances}
