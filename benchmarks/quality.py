"""Measures all recognisers on speech that no training heard, clean and in noise, and writes docs/quality.md.

    python -m benchmarks.quality [--shared ../shared] [--output docs/quality.md] [--models NAME:VARIANT ...]

Models of 21 words hear strings of digits by one person; Whisper hears read sentences. Needs the extra `evaluate`;
models that have not been imported are left out. Each model runs in a process of its own, whose memory is its own.
"""

import argparse
import multiprocessing
import resource
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.read_speech import load_recordings, words
from model_runtime import Final, Recipe, RouteConfig, SpeechEngine
from model_runtime.card import USER_MODELS
from model_runtime.recipe import AsrConfig, DenoiseConfig, EndpointConfig
from pipelines.text_errors import word_errors
from training import asr_sets

ROOT = Path(__file__).resolve().parents[1]
RATE_HZ = 16_000
_DIGIT_STRINGS = 120
_THREADS = 2
MODELS = (
    "unison-asr-stream:float32",
    "unison-asr-stream:int8",
    "unison-asr-transducer:float32",
    "unison-asr-transducer:int8",
    "unison-asr-batch:float32",
    "unison-asr-batch:int8",
    "whisper-tiny.en:float32",
    "whisper-tiny.en:float16",
    "whisper-tiny.en:dynamic",
    "whisper-base:float16",
    "whisper-base:dynamic",
)


class Clip(NamedTuple):
    """Speech, float32 [n] at 16 kHz, and what is said."""

    pcm: np.ndarray
    text: str


class Condition(NamedTuple):
    """How the speech is heard: noise at so many dB below it (None: clean), and whether it is cleaned first."""

    snr_db: float | None
    denoised: bool


CONDITIONS = tuple(Condition(snr_db, denoised) for snr_db in (None, 10.0, 0.0) for denoised in (False, True))


class Figures(NamedTuple):
    """word_errors: percent, by condition; factor: wall clock per second of clean audio; memory_mb: peak, all in all."""

    word_errors: list[float]
    factor: float
    memory_mb: float


def load_clips(model: str, shared: Path) -> list[Clip]:
    """Gives what a model is measured on."""
    if not model.startswith("whisper"):
        strings = asr_sets.person_strings(shared)[:_DIGIT_STRINGS]
        return [Clip(string.pcm, " ".join(string.words)) for string in strings]
    return [Clip(recording.samples, recording.text) for recording in load_recordings(shared) if recording.is_read]


def in_noise(clips: list[Clip], snr_db: float | None) -> list[np.ndarray]:
    """Gives the clips in white, pink, hum and click noise by turns."""
    if snr_db is None:
        return [clip.pcm for clip in clips]
    plain = [asr_sets.Utterance(clip.pcm, [], len(clip.pcm)) for clip in clips]
    return [np.clip(utterance.pcm, -1, 1) for utterance in asr_sets.noisy(plain, snr_db)]


def measure(model: str, variant: str, shared: Path) -> Figures:
    """Measures one variant of a model in this process."""
    clips = load_clips(model, shared)
    references = [" ".join(words(clip.text)) for clip in clips]
    rates, factor = [], 0.0
    for condition in CONDITIONS:
        denoise = DenoiseConfig("unison-denoise", emit=False) if condition.denoised else None
        endpoint = EndpointConfig(29_000, 29_000, 29_000)
        recipe = Recipe("quality", denoise, None, AsrConfig(model, partial_interval_ms=0), endpoint)
        engine = SpeechEngine.load(recipe, RouteConfig(variants=(variant, "float32"), threads=_THREADS))
        heard = in_noise(clips, condition.snr_db)
        start = time.perf_counter()
        texts = [_text(engine, pcm) for pcm in heard]
        if condition == CONDITIONS[0]:
            factor = (time.perf_counter() - start) * RATE_HZ / sum(map(len, heard))
        rates.append(100 * (word_errors(references, texts).rate or 0.0))
    return Figures(rates, factor, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _text(engine: SpeechEngine, pcm: np.ndarray) -> str:
    (events,) = engine.run([pcm], batch_size=1)
    return " ".join(words(" ".join(event.text for event in events if isinstance(event, Final))))


def table(figures: dict[str, Figures]) -> str:
    """Gives the figures as a Markdown table."""
    heads = [f"{_name(c)}{', denoised' if c.denoised else ''}" for c in CONDITIONS]
    lines = [f"| | {' | '.join(heads)} | real-time factor | memory, MB |", "|---" * (len(heads) + 3) + "|"]
    for model, found in figures.items():
        rates = " | ".join(f"{rate:.1f}" for rate in found.word_errors)
        lines.append(f"| {model.replace(':', ' ')} | {rates} | {found.factor:.3f} | {found.memory_mb:.0f} |")
    return "\n".join(lines)


def _name(condition: Condition) -> str:
    return "clean" if condition.snr_db is None else f"{condition.snr_db:.0f} dB"


def main() -> int:
    """Measures, prints and writes the page."""
    parser = argparse.ArgumentParser("python -m benchmarks.quality", description=__doc__)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "quality.md")
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    options = parser.parse_args()
    figures: dict[str, Figures] = {}
    context = multiprocessing.get_context("spawn")
    for name in options.models:
        model, _, variant = name.partition(":")
        packaged = ROOT / "model_runtime" / "models" / model
        if not packaged.is_dir() and not (USER_MODELS / model / "card.yaml").is_file():
            print(f"{model} is left out: it is not there")
            continue
        with context.Pool(1) as pool:
            figures[name] = pool.apply(measure, (model, variant, options.shared))
        print(name, figures[name], flush=True)
    digits = {name: found for name, found in figures.items() if not name.startswith("whisper")}
    sentences = {name: found for name, found in figures.items() if name.startswith("whisper")}
    page = f"{_INTRODUCTION}\n### Strings of digits\n\n{table(digits)}\n\n### Read sentences\n\n{table(sentences)}\n"
    options.output.write_text(page, encoding="utf-8")
    return 0


_INTRODUCTION = f"""# Quality

Written by `python -m benchmarks.quality`: word errors in percent on people whom no training heard. Digits:
{_DIGIT_STRINGS} strings of 1 to 6 digits by `george` of the Free Spoken Digit Dataset. Sentences: 7 recordings of read
English, 117 words (LibriVox, LibriSpeech, a speech), so a word is 0.9 %. Noise is white, pink, hum and clicks by turns.
Real-time factor: wall clock per second of audio, {_THREADS} threads, one clip at a time. Memory: the peak of a process
that has run all columns.
"""

if __name__ == "__main__":
    raise SystemExit(main())
