"""Figures for a denoiser's .tflite file: gain in SI-SDR on people it never heard, time on one thread."""

import time
from pathlib import Path

import numpy as np

from training import denoise_network as net
from training import noise
from training.interpreter import Model
from training.real_speech import load_speech
from training.spectra import analyse, log_features, synthesise

SAMPLE_RATE_HZ = 16000
_SNRS_DB = (0, 5, 10)
_BLOCK_SAMPLES = net.CALL_FRAMES * net.HOP_SAMPLES


def denoise(model: Model, pcm: np.ndarray) -> np.ndarray:
    """Denoised samples, aligned with the input; float32 [N, T] to float32 [N, T]."""
    hop = net.HOP_SAMPLES
    length = -(-(pcm.shape[1] + hop) // _BLOCK_SAMPLES) * _BLOCK_SAMPLES
    padded = np.pad(pcm, ((0, 0), (hop, length - pcm.shape[1])))
    spectra = analyse(padded)
    features = log_features(spectra)
    states = model.initial_states(len(pcm))
    masks = []
    for start in range(0, spectra.shape[1], net.CALL_FRAMES):
        call = features[:, start : start + net.CALL_FRAMES]
        outputs, states = model.call(states, features=call)
        masks.append(outputs["mask"])
    return synthesise(spectra * np.concatenate(masks, axis=1))[:, hop : hop + pcm.shape[1]]


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


def _gain_db(model: Model, clean: np.ndarray, background: np.ndarray, snr_db: float) -> float:
    scale = np.sqrt((clean @ clean) / (background @ background) / 10 ** (snr_db / 10))
    noisy = clean + background * np.float32(scale)
    noisy /= max(1.0, float(np.abs(noisy).max()))
    estimate = denoise(model, noisy[None])[0]
    return si_sdr_db(clean, estimate) - si_sdr_db(clean, noisy)


def _cpu_ms_per_second(model: Model) -> float:
    pcm = 0.05 * np.random.default_rng(1).standard_normal((1, 8 * SAMPLE_RATE_HZ)).astype(np.float32)
    denoise(model, pcm)
    times = []
    for _ in range(5):
        start = time.process_time()
        denoise(model, pcm)
        times.append(time.process_time() - start)
    return 1000.0 * float(np.median(times)) / 8.0


def evaluate(model: Model, shared: Path) -> dict[str, float]:
    """Mean SI-SDR gain in dB at 0, 5 and 10 dB, by noise and over the four that are not speech."""
    speech = load_speech(shared)
    figures = {}
    for kind in ("white", "pink", "hum", "clicks", "babble"):
        gains = [
            _gain_db(model, clean, _noise(kind, len(clean), speech, talker), snr_db)
            for talker, clean in speech.items()
            for snr_db in _SNRS_DB
        ]
        figures[f"{kind}_si_sdr_gain_db"] = round(float(np.mean(gains)), 2)
    four = [figures[f"{kind}_si_sdr_gain_db"] for kind in ("white", "pink", "hum", "clicks")]
    figures["mean_si_sdr_gain_db"] = round(float(np.mean(four)), 2)
    figures["cpu_ms_per_second"] = round(_cpu_ms_per_second(model), 2)
    return figures
