"""Figures for any denoiser's card: gain in SI-SDR on people that no training heard, time on one thread.

``python -m training.denoise_evaluation FOLDER [VARIANT]`` prints them, for a card that is not the project's own too.
"""

import sys
import time
from pathlib import Path

import numpy as np

from model_runtime.devices import RouteConfig
from model_runtime.engine import SpeechEngine
from model_runtime.recipe import DenoiseConfig, Recipe
from model_runtime.records import Enhanced
from training import noise
from training.real_speech import load_speech

SAMPLE_RATE_HZ = 16000
_SNRS_DB = (0, 5, 10)
_NOISES = ("white", "pink", "hum", "clicks")


def _denoise(engine: SpeechEngine, clips: list[np.ndarray]) -> list[np.ndarray]:
    """Denoised samples, float32 [T] each as long as what came in."""
    heard = [[event.pcm for event in events if isinstance(event, Enhanced)] for events in engine.run(clips)]
    return [np.frombuffer(b"".join(pieces), "<f4") for pieces in heard]


def si_sdr_db(clean: np.ndarray, estimate: np.ndarray) -> float:
    """Scale-invariant signal-to-distortion ratio of float32 [T] arrays."""
    target = (estimate @ clean) / (clean @ clean) * clean
    distortion = estimate - target
    return float(10 * np.log10((target @ target) / (distortion @ distortion + 1e-12)))


def _noise(kind: str, length: int, speech: dict[str, np.ndarray], talker: str) -> np.ndarray:
    rng = np.random.default_rng(len(talker) * 1000 + length)
    if kind == "babble":
        others = [(pcm * 32767).astype(np.int16) for name, pcm in speech.items() if name != talker]
        return noise.babble(rng, length, others, least=4)
    make = {"white": noise.white, "pink": noise.pink, "hum": noise.hum, "clicks": noise.clicks}
    return make[kind](rng, length)


def _noisy(clean: np.ndarray, background: np.ndarray, snr_db: float) -> np.ndarray:
    scale = np.sqrt((clean @ clean) / (background @ background) / 10 ** (snr_db / 10))
    mixed = clean + background * np.float32(scale)
    return np.asarray(mixed / max(1.0, float(np.abs(mixed).max())))


def _mean_gain_db(engine: SpeechEngine, kind: str, speech: dict[str, np.ndarray]) -> float:
    pairs = [
        (clean, _noisy(clean, _noise(kind, len(clean), speech, talker), snr_db))
        for talker, clean in speech.items()
        for snr_db in _SNRS_DB
    ]
    estimates = _denoise(engine, [noisy for _, noisy in pairs])
    gains = [
        si_sdr_db(clean, estimate) - si_sdr_db(clean, noisy)
        for (clean, noisy), estimate in zip(pairs, estimates, strict=True)
    ]
    return float(np.mean(gains))


def _cpu_ms_per_second(engine: SpeechEngine) -> float:
    pcm = 0.05 * np.random.default_rng(1).standard_normal(8 * SAMPLE_RATE_HZ).astype(np.float32)
    _denoise(engine, [pcm])
    times = []
    for _ in range(5):
        start = time.process_time()
        _denoise(engine, [pcm])
        times.append(time.process_time() - start)
    return 1000.0 * float(np.median(times)) / 8.0


def evaluate(folder: Path, variant: str, shared: Path) -> dict[str, float]:
    """Mean SI-SDR gain in dB at 0, 5 and 10 dB, by noise and over the four that are not speech; CPU time.

    Args:
        folder: Holds the card.
        variant: One of the card's variants.
        shared: The data folder.
    """
    recipe = Recipe("measured", denoise=DenoiseConfig(str(folder)))
    engine = SpeechEngine.load(recipe, RouteConfig(variants=(variant,)))
    speech = load_speech(shared)
    gains_db = {kind: _mean_gain_db(engine, kind, speech) for kind in (*_NOISES, "babble")}
    figures = {f"{kind}_si_sdr_gain_db": round(gain_db, 2) for kind, gain_db in gains_db.items()}
    figures["mean_si_sdr_gain_db"] = round(float(np.mean([gains_db[kind] for kind in _NOISES])), 2)
    return figures | {"cpu_ms_per_second": round(_cpu_ms_per_second(engine), 2)}


if __name__ == "__main__":
    print(evaluate(Path(sys.argv[1]), *(sys.argv[2:] or ["float32"]), shared=Path("../shared")))
