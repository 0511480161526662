"""How near clean audio comes to the truth: SI-SDR, and STOI and PESQ where their packages are installed."""

from importlib.util import find_spec

import numpy as np

from model_runtime.errors import AudioError
from model_runtime.resample import Resampler

_PESQ_RATE_HZ = 16_000
# Below this a recording is digital silence, and a ratio to it is no number.
_SILENCE = 1e-10


def si_sdr_db(truth: np.ndarray, estimate: np.ndarray) -> float:
    """Gives the scale-invariant signal-to-distortion ratio in dB; both float [n], of which the means are taken away.

    Raises:
        AudioError: the truth is silence, or the lengths differ.
    """
    if len(truth) != len(estimate):
        raise AudioError(f"the recordings must be equally long, got {len(truth)} and {len(estimate)} samples")
    truth = np.asarray(truth, np.float64) - np.mean(truth)
    estimate = np.asarray(estimate, np.float64) - np.mean(estimate)
    energy = float(truth @ truth)
    if energy < _SILENCE:
        raise AudioError("the clean recording is silence")
    target = (estimate @ truth) / energy * truth
    distortion = estimate - target
    return float(10 * np.log10((target @ target + _SILENCE) / (distortion @ distortion + _SILENCE)))


def measures(truth: np.ndarray, estimate: np.ndarray, sample_rate_hz: int) -> dict[str, float]:
    """Gives the measures that can be had here: si_sdr_db, stoi (0..1), pesq (wide band, -0.5..4.5).

    Args:
        truth, estimate: float [n], equally long.

    Raises:
        AudioError: the recordings cannot be compared.
    """
    found = {"si_sdr_db": si_sdr_db(truth, estimate)}
    if find_spec("pystoi"):
        from pystoi import stoi

        found["stoi"] = float(stoi(truth, estimate, sample_rate_hz))
    if find_spec("pesq"):
        from pesq import PesqError, pesq

        to_16k = Resampler(sample_rate_hz, _PESQ_RATE_HZ)
        try:
            found["pesq"] = float(pesq(_PESQ_RATE_HZ, to_16k.run(truth), to_16k.run(estimate), "wb"))
        except PesqError as error:
            raise AudioError(f"PESQ: {error}") from error
    return found
