"""Speech by espeak-ng (and flite, where installed): the clips that training and evaluation draw from.

``python -m training.synthesis --cache DIR`` fills the cache; other commands do it when it is empty.
"""

import argparse
import random
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soxr

from training import voices
from training.clips import Clip, load_clips, save_clips
from training.sentences import SENTENCES
from training.words import DIGITS, WORDS

SAMPLE_RATE_HZ = 16000
DEFAULT_CACHE = Path.home() / ".cache" / "unison-speech" / "training"


class _Job(NamedTuple):
    text: str
    spoken: str
    voice: str
    speed: int
    pitch: int
    gap: int


class _Part(NamedTuple):
    clips: int
    seed: int
    kind: str
    accents: tuple[str, ...]
    variants: tuple[str, ...]
    flite: tuple[str, ...]


_TRAIN = (voices.TRAINING_ACCENTS, voices.TRAINING_VARIANTS, voices.TRAINING_FLITE_VOICES)
PARTS = {
    "words": _Part(9000, 1, "words", *_TRAIN),
    "sentences": _Part(1400, 2, "sentences", *_TRAIN),
    "held_out_voices": _Part(300, 3, "words", voices.TRAINING_ACCENTS, voices.HELD_OUT_VARIANTS, ()),
    "held_out_accent": _Part(200, 4, "words", (voices.HELD_OUT_ACCENT,), voices.HELD_OUT_VARIANTS, ()),
    "held_out_recorded": _Part(150, 5, "words", (), (), voices.HELD_OUT_FLITE_VOICES),
}
# Share of the clips that flite speaks in parts that have both.
_FLITE_SHARE = 0.2


def _text(rng: random.Random, kind: str) -> tuple[str, str]:
    if kind == "sentences":
        sentence = rng.choice(SENTENCES)
        return sentence, sentence
    pool = DIGITS if rng.random() < 0.4 else WORDS
    words = [rng.choice(pool) for _ in range(rng.choice((1, 1, 2, 3, 4, 5)))]
    separator = rng.choice((" ", " ", ", ", ". "))
    return " ".join(words), separator.join(words)


def _jobs(part: _Part) -> list[_Job]:
    rng = random.Random(part.seed)
    flite_share = 0.0 if not part.flite else _FLITE_SHARE if part.variants else 1.0
    jobs = []
    for _ in range(part.clips):
        text, spoken = _text(rng, part.kind)
        speed, pitch, gap = rng.randint(105, 250), rng.randint(10, 95), rng.choice((0, 0, 0, 2, 6))
        if rng.random() < flite_share:
            voice = "flite:" + rng.choice(part.flite)
        else:
            voice = f"{rng.choice(part.accents)}+{rng.choice(part.variants)}"
        jobs.append(_Job(text, spoken, voice, speed, pitch, gap))
    return jobs


def _command(job: _Job) -> list[str]:
    if job.voice.startswith("flite:"):
        stretch = f"duration_stretch={175 / job.speed:.3f}"
        voice = job.voice.removeprefix("flite:")
        return ["flite", "-voice", voice, "--setf", stretch, "-t", job.spoken, "-o", "/dev/stdout"]
    numbers = ("-s", str(job.speed), "-p", str(job.pitch), "-g", str(job.gap))
    return ["espeak-ng", "-v", job.voice, *numbers, "--stdout", job.spoken]


def _decode(wav: bytes) -> np.ndarray:
    """Samples of a RIFF file from a pipe, whose length fields are not to be trusted."""
    data = wav.index(b"data") + 8
    rate_hz = int.from_bytes(wav[24:28], "little")
    pcm = np.frombuffer(wav[data : data + (len(wav) - data) // 2 * 2], "<i2").astype(np.float32)
    return np.asarray(soxr.resample(pcm, rate_hz, SAMPLE_RATE_HZ), np.float32)


def speak(job: _Job) -> Clip:
    """The job's text spoken, trimmed of digital silence and scaled to half of full scale."""
    run = subprocess.run(_command(job), capture_output=True, check=True)
    pcm = _decode(run.stdout)
    pcm *= 0.5 * 32767 / max(1.0, float(np.abs(pcm).max()))
    loud = np.flatnonzero(np.abs(pcm) > 40)
    pcm = pcm[loud[0] : loud[-1] + 1] if len(loud) else pcm[:0]
    return Clip(pcm.astype(np.int16), job.text, job.voice)


def say(spoken: str, voice: str, speed: int = 150, pitch: int = 50) -> Clip:
    """One utterance by one espeak-ng voice, such as ``en-us+f2``."""
    return speak(_Job(spoken, spoken, voice, speed, pitch, 0))


def synthesise(name: str) -> list[Clip]:
    """All clips of one part of `PARTS`; the same on every run."""
    jobs = _jobs(PARTS[name])
    if not shutil.which("flite"):
        jobs = [job for job in jobs if not job.voice.startswith("flite:")]
    with ThreadPoolExecutor(2) as executor:
        clips = list(executor.map(speak, jobs))
    return [clip for clip in clips if len(clip.pcm) >= SAMPLE_RATE_HZ // 10]


def cached_clips(cache: Path, name: str, make: Callable[[str], list[Clip]] = synthesise) -> list[Clip]:
    """The clips of a part, from the cache where it has them."""
    path = cache / f"{name}.npz"
    if not path.exists():
        save_clips(path, make(name))
    return load_clips(path)


def main(argv: list[str] | None = None) -> None:
    """Fills the cache."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    options = parser.parse_args(argv)
    for name in PARTS:
        clips = cached_clips(options.cache, name)
        seconds = sum(len(clip.pcm) for clip in clips) / SAMPLE_RATE_HZ
        print(f"{name}: {len(clips)} clips, {seconds / 60:.1f} minutes")


if __name__ == "__main__":
    main()
