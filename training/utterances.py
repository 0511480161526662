"""Training examples for the recognisers: words of known order in noise, padded to a fixed length."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from training import augmentation, neural_voices, noise
from training.clips import Clip
from training.fsdd import TRAINING_SPEAKERS, Recordings, SpokenString, any_clips, load_recordings, strung_together
from training.synthesis import cached_clips
from training.words import DIGITS, encode

SAMPLE_RATE_HZ = 16000
FRAME_SAMPLES = 640
UNKNOWN = -1
# A sound is named this long after it is heard, so that a causal model has heard enough of it.
_ANSWER_SAMPLES = 1440
# Speech ends at least this long before the example does, so that a causal model can still answer.
_TAIL_SAMPLES = 5120
_EMPTY_SHARE = 0.03
# Strings put together from single words, and how many of them neural voices speak, where there are any.
_STRINGS_SHARE = 0.6
_NEURAL_SHARE = 0.5
# Recordings of people have digits only: synthetic clips with commands are taken that much more often.
_COMMANDS_AGAIN = 3
_MOST_SEGMENTS = 4
_TRIES = 8
# A digit with the pause after it, about.
_DIGIT_SAMPLES = 9000


class Source(NamedTuple):
    """What examples are made of.

    Attributes:
        words: Clips of one or several words by espeak-ng and flite.
        recordings: Single digits by people.
        neural: Single words by neural voices; empty where the synthesiser is not installed.
        speech: Sentences, int16 [T] each.
    """

    words: list[Clip]
    recordings: Recordings
    neural: Recordings
    speech: list[np.ndarray]


class Example(NamedTuple):
    """One example.

    Attributes:
        pcm: float32 [T], 16 kHz, -1..1.
        tokens: What is said.
        frames: int32 [T / 640], the token that each frame is part of, blank (0) between words, -1 where unknown.
    """

    pcm: np.ndarray
    tokens: list[int]
    frames: np.ndarray


def load_source(cache: Path, shared: Path) -> Source:
    """Everything that may be trained on."""
    recordings = load_recordings(shared / "data" / "fsdd", TRAINING_SPEAKERS, training=True)
    neural = neural_voices.cached_speakers(cache)
    sentences = [clip.pcm for clip in cached_clips(cache, "sentences") + neural_voices.cached_sentences(cache)]
    words = cached_clips(cache, "words")
    commands = [clip for clip in words if not set(clip.text.split()) <= set(DIGITS)]
    return Source(words + _COMMANDS_AGAIN * commands, recordings, neural, sentences)


def one_speaker(rng: np.random.Generator, source: Source) -> list[Clip]:
    """The single words of one person or of one neural voice."""
    neural = source.neural and rng.random() < _NEURAL_SHARE
    speakers = list((source.neural if neural else source.recordings).values())
    return speakers[rng.integers(len(speakers))]


def _tightly_cut(rng: np.random.Generator, clip: Clip) -> Clip:
    """The clip, perhaps with ends cut off; never a command: "go" and "no" without their onsets are "oh"."""
    if not set(clip.text.split()) <= set(DIGITS):
        return clip
    return clip._replace(pcm=augmentation.cut_ends(rng, clip.pcm))


def _segment(rng: np.random.Generator, source: Source, room_samples: int) -> SpokenString:
    """Words that probably fit into the room; without spans where it is not known which sounds are which word."""
    if rng.random() < _STRINGS_SHARE:
        most = max(1, min(6, int(room_samples / _DIGIT_SAMPLES)))
        clips = one_speaker(rng, source)
        chosen = any_clips(rng, clips, int(rng.integers(1, most + 1)))
        return strung_together(rng, [_tightly_cut(rng, clip) for clip in chosen])
    for _ in range(_TRIES):
        clip = source.words[rng.integers(len(source.words))]
        if len(clip.pcm) < room_samples:
            break
    clip = _tightly_cut(rng, clip)
    words = clip.text.split()
    spans = [(0, len(clip.pcm))] if len(words) == 1 else []
    return SpokenString(clip.pcm * np.float32(1 / 32768), words, spans)


def _speech(rng: np.random.Generator, source: Source, room_samples: int) -> list[tuple[int, SpokenString]]:
    """Segments that fit into the room there is, each with the sample at which it starts."""
    placed: list[tuple[int, SpokenString]] = []
    used = 0
    for _ in range(_TRIES):
        start = used + int(rng.uniform(0.05, 0.4) * SAMPLE_RATE_HZ)
        segment = _segment(rng, source, room_samples - start)
        if start + len(segment.pcm) > room_samples:
            continue
        pcm = augmentation.vary_speech(rng, segment.pcm)
        if start + len(pcm) > room_samples:
            continue
        tempo = len(pcm) / len(segment.pcm)
        spans = [(int(first * tempo), int(last * tempo)) for first, last in segment.spans]
        pcm = pcm * np.float32(10 ** (rng.uniform(-6, 0) / 20) * 0.5 / (np.abs(pcm).max() + 1e-6))
        placed.append((start, SpokenString(pcm, segment.words, spans)))
        used = start + len(pcm)
        if len(placed) >= _MOST_SEGMENTS or rng.random() < 0.4:
            break
    return placed


def _mark(frames: np.ndarray, first: int, last: int, token: int) -> None:
    begin, end = ((sample + _ANSWER_SAMPLES) // FRAME_SAMPLES for sample in (first, last))
    frames[begin:end] = token


def _frame_tokens(frames: np.ndarray, start: int, segment: SpokenString) -> None:
    """Writes a segment's tokens, half of a word's span each, or -1 where they are not known."""
    if not segment.spans:
        _mark(frames, start, start + len(segment.pcm), UNKNOWN)
    for word, (first, last) in zip(segment.words, segment.spans, strict=False):
        middle = (first + last) // 2
        onset, rime = encode([word])
        _mark(frames, start + first, start + middle, onset)
        _mark(frames, start + middle, start + last, rime)


def _with_noise(rng: np.random.Generator, source: Source, pcm: np.ndarray, end: int) -> np.ndarray:
    """Noise at 2 to 40 dB under the speech, for all of the example or to a little after the speech."""
    if rng.random() < 0.9:
        background = noise.any_noise(rng, len(pcm), source.speech)
        background = noise.at_snr(pcm, background, float(rng.uniform(2, 40)))
        if rng.random() < 0.4:
            background[min(len(pcm), end + int(rng.integers(0, 3200))) :] = 0.0
        if rng.random() < 0.15:
            background[: int(rng.integers(0, 4000))] = 0.0
        pcm = pcm + background
    return pcm


def make_example(rng: np.random.Generator, source: Source, length: int) -> Example:
    """One example of exactly that many samples."""
    pcm = np.zeros(length, np.float32)
    frames = np.zeros(length // FRAME_SAMPLES, np.int32)
    words: list[str] = []
    end = length
    if rng.random() >= _EMPTY_SHARE:
        placed = _speech(rng, source, length - _TAIL_SAMPLES)
        used = placed[-1][0] + len(placed[-1][1].pcm) if placed else 0
        lead = int(rng.integers(0, max(1, length - _TAIL_SAMPLES - used)))
        end = lead + used
        for start, segment in placed:
            pcm[lead + start : lead + start + len(segment.pcm)] = segment.pcm
            _frame_tokens(frames, lead + start, segment)
            words += segment.words
    heard = _with_noise(rng, source, pcm, end)
    heard *= np.float32(10 ** (rng.uniform(-38, 0) / 20) / (np.abs(heard).max() + 1e-4))
    if rng.random() < 0.2:
        heard += np.float32(rng.normal(0.0, 0.01))
    if rng.random() < 0.6:
        heard = np.round(heard * np.float32(32767)) / np.float32(32768)
    return Example(np.clip(heard, -1.0, 1.0), encode(words), frames)
