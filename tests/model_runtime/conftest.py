"""Engines and audio for the tests of model_runtime."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from model_runtime import Audio, RouteConfig, SpeechEngine
from model_runtime.decode import decode_file
from model_runtime.recipe import Recipe

ROOT = Path(__file__).resolve().parents[2]


@cache
def cached_engine(recipe: str | Recipe, variant: str, threads: int, defer: bool) -> SpeechEngine:
    # The toy Whisper has nothing else than float16.
    variants = (variant, "float32", "float16")
    return SpeechEngine.load(recipe, RouteConfig(variants=variants, threads=threads), defer)


@pytest.fixture(scope="session")
def engine() -> Callable[..., SpeechEngine]:
    """Gives engines by recipe, preferred variant, threads and whether it defers; each is loaded once."""

    def load(
        recipe: str | Recipe = "streaming", variant: str = "float32", threads: int = 1, defer: bool = False
    ) -> SpeechEngine:
        return cached_engine(recipe, variant, threads, defer)

    return load


@pytest.fixture(scope="session")
def samples() -> list[Audio]:
    """The project's own recordings, in the order of their names."""
    return [decode_file(path) for path in sorted((ROOT / "samples").iterdir()) if path.suffix in (".wav", ".flac")]


@pytest.fixture(scope="session")
def digits(samples: list[Audio]) -> np.ndarray:
    """One of them at 16 kHz: float32 [n], two or more utterances."""
    return next(audio.samples for audio in samples if audio.sample_rate_hz == 16_000)


@pytest.fixture(scope="session")
def third_party(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of third-party models, each with its card from docs/cards beside its files."""
    folder = tmp_path_factory.mktemp("models")
    for name, source in (("dtln", "dtln"), ("silero-vad", "silero")):
        shutil.copytree(ROOT / "docs" / "cards" / name, folder / name)
        for file in (shared / "data" / "models" / source).glob("*.tflite"):
            shutil.copy(file, folder / name)
    return folder
