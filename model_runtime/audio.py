"""Audio as the product knows it: mono float32 samples with a rate, checked at the door and the same on all paths."""

from typing import NamedTuple

import numpy as np

from model_runtime.errors import AudioError

MIN_SAMPLE_RATE_HZ = 8_000
MAX_SAMPLE_RATE_HZ = 192_000
MAX_ABSOLUTE_SAMPLE = 8.0

# A mix under 5 % of its loudest channel means that the channels are each other's negative.
_CANCELLED_SHARE = 0.05
# Channels below -60 dB, or fewer samples than these, are too little to tell antiphase from chance.
_JUDGED_RMS = 1e-3
_JUDGED_SAMPLES = 64


class Audio(NamedTuple):
    """Mono sound. samples: float32 [n], -1..1."""

    samples: np.ndarray
    sample_rate_hz: int

    @property
    def duration_s(self) -> float:
        """How long it lasts, in seconds."""
        return len(self.samples) / self.sample_rate_hz


def check_sample_rate(sample_rate_hz: int) -> int:
    """Gives the rate back as an int.

    Raises:
        AudioError: it is not a whole number of 8000..192000.
    """
    if isinstance(sample_rate_hz, bool) or sample_rate_hz != int(sample_rate_hz):
        raise AudioError(f"sample_rate_hz must be a whole number, got {sample_rate_hz!r}")
    if not MIN_SAMPLE_RATE_HZ <= sample_rate_hz <= MAX_SAMPLE_RATE_HZ:
        raise AudioError(f"sample_rate_hz must be {MIN_SAMPLE_RATE_HZ}..{MAX_SAMPLE_RATE_HZ}, got {sample_rate_hz}")
    return int(sample_rate_hz)


def check_samples(samples: np.ndarray) -> np.ndarray:
    """Gives the samples as contiguous float32 [n], -1..1; values within 1..8 in size are clipped.

    Music and resampled speech overshoot 1 and are still sound; what is beyond 8 is integers that were never scaled,
    or rubbish. The array is only copied when something has to change.

    Args:
        samples: float [n].

    Raises:
        AudioError: integers, more than one dimension, NaN, Inf or |x| > 8; names index and value.
    """
    array = np.asarray(samples)
    if array.ndim != 1:
        raise AudioError(f"samples must have one dimension [n], got shape {list(array.shape)}")
    if array.dtype != np.float32:
        if array.dtype.kind != "f":
            raise AudioError(f"samples must be floating point -1..1, got {array.dtype}")
        # 1e30 as float64 is kept until the bound is checked; an overflow to Inf is refused as well.
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
    array = np.ascontiguousarray(array)
    if array.size == 0:
        return array
    # The methods of the same name take twice as long: they are Python around this.
    low, high = float(np.minimum.reduce(array)), float(np.maximum.reduce(array))
    if not (low >= -MAX_ABSOLUTE_SAMPLE and high <= MAX_ABSOLUTE_SAMPLE):
        _refuse_samples(array)
    if low < -1.0 or high > 1.0:
        array = np.clip(array, -1.0, 1.0)
    return array


def downmix(samples: np.ndarray) -> np.ndarray:
    """Gives the mean of the channels: float [n, channels] -> float32 [n].

    Raises:
        AudioError: no channels, or channels that cancel each other, as a mean of them would be silence.
    """
    downmix = Downmix()
    mixed = downmix.mix(samples)
    downmix.check()
    return mixed


class Downmix:
    """The mean of channels that come piece by piece; whether they cancel each other is known when all have come."""

    def __init__(self) -> None:
        self._samples = 0
        # Sums of squares: of each channel, and of the mix.
        self._channels: np.ndarray | float = 0.0
        self._mix = 0.0

    def mix(self, samples: np.ndarray) -> np.ndarray:
        """Gives the mean of the channels: float [n, channels] -> float32 [n].

        Raises:
            AudioError: no channels.
        """
        if samples.ndim != 2 or samples.shape[1] < 1:
            raise AudioError(f"samples must be [n, channels] with 1 channel or more, got shape {list(samples.shape)}")
        if samples.shape[1] == 1:
            return np.ascontiguousarray(samples[:, 0], dtype=np.float32)
        # By channel: a mean over rows of two is ten times as slow.
        channels = np.ascontiguousarray(samples.T, dtype=np.float64)
        mix = channels.sum(axis=0) / len(channels)
        self._samples += len(mix)
        # Not np.dot: above 10,000 samples it starts BLAS threads, which cost 10 ms on a busy machine.
        self._channels = self._channels + np.array([np.square(channel).sum() for channel in channels])
        self._mix += float(np.square(mix).sum())
        return np.asarray(mix, dtype=np.float32)

    def check(self) -> None:
        """Judges all that was mixed.

        Raises:
            AudioError: the channels cancel each other, as their mean is silence.
        """
        if self._samples < _JUDGED_SAMPLES:
            return
        channels = np.atleast_1d(self._channels)
        loudest, mixed = (float(np.sqrt(power / self._samples)) for power in (channels.max(), self._mix))
        if _JUDGED_RMS <= loudest < np.inf and mixed < _CANCELLED_SHARE * loudest:
            raise AudioError(
                f"the {len(channels)} channels cancel each other (antiphase): the mix has RMS {mixed:.4f}, the "
                f"loudest channel {loudest:.4f}; send one of the channels"
            )


def _refuse_samples(array: np.ndarray) -> None:
    wrong = ~(np.abs(array) <= MAX_ABSOLUTE_SAMPLE)
    index = int(np.argmax(wrong))
    raise AudioError(
        f"samples must be finite and within -{MAX_ABSOLUTE_SAMPLE:g}..{MAX_ABSOLUTE_SAMPLE:g}: sample {index} of "
        f"{array.size} is {float(array[index]):g} ({int(wrong.sum())} such samples)"
    )
