"""Resampling that gives byte for byte the same output whatever the chunks: the state is samples and two counts.

A Kaiser-windowed sinc (100 dB, flat to 0.92 of the lower Nyquist frequency) is laid out as small matrices, one per
group of output samples; every output is one fixed-shape product at a fixed input position, so chunk borders cannot
be seen. soxr gives no state that can be frozen, and one soxr call per 10 ms block costs 20 times as much.
"""

from functools import lru_cache
from math import gcd
from typing import NamedTuple

import numpy as np

from model_runtime.audio import check_sample_rate

# Half the filter's length in samples of the lower rate: 5 ms at 16 kHz, which is also the look-ahead.
_HALF_WIDTH = 80
_KAISER_BETA = 10.06
# Middle of the transition band; the band is 0.16 of Nyquist wide on both sides together.
_CUTOFF = 0.96
_BLOCK_MS = 10
# OpenBLAS starts threads (and may change the order of sums) for a product of 9,216 weights or more.
_GROUP_WEIGHTS = 9_000
_GROUP_OUTPUTS = 16


class ResamplerState(NamedTuple):
    """Where a resampler stands. pending: float32 [k], the input from the look-back of the next block on."""

    pending: np.ndarray
    received_samples: int
    emitted_samples: int


class Resampler:
    """Turns one rate into another. Holds no stream: `push` and `flush` take a state and give a new one.

    The output of n samples has ceil(n * to_hz / from_hz) samples in total, sample j at time j / to_hz.
    Equal rates pass through.
    """

    def __init__(self, from_hz: int, to_hz: int) -> None:
        self.from_hz = check_sample_rate(from_hz)
        self.to_hz = check_sample_rate(to_hz)
        self._filter = None if from_hz == to_hz else _design(self.from_hz, self.to_hz)

    def initial_state(self) -> ResamplerState:
        """The state before the first sample."""
        look_back = self._filter.half_samples if self._filter is not None else 0
        return ResamplerState(np.zeros(look_back, np.float32), 0, 0)

    def push(self, state: ResamplerState, samples: np.ndarray) -> tuple[ResamplerState, np.ndarray]:
        """Takes samples (float32 [n], n may be 0), gives what can be computed of the output: float32 [m]."""
        received = state.received_samples + len(samples)
        if self._filter is None:
            return ResamplerState(state.pending, received, received), samples
        pending, out = self._filter.run(np.concatenate((state.pending, samples)))
        return ResamplerState(pending, received, state.emitted_samples + len(out)), out

    def flush(self, state: ResamplerState) -> tuple[ResamplerState, np.ndarray]:
        """Gives the rest of the output (silence follows the last sample) and the state of a new stream."""
        if self._filter is None:
            return self.initial_state(), np.zeros(0, np.float32)
        missing = -(-state.received_samples * self.to_hz // self.from_hz) - state.emitted_samples
        blocks = -(-missing // self._filter.block_out)
        needed = blocks * self._filter.block_in + 2 * self._filter.half_samples
        padding = np.zeros(max(0, needed - len(state.pending)), np.float32)
        _, out = self._filter.run(np.concatenate((state.pending, padding)))
        return self.initial_state(), out[:missing]

    def run(self, samples: np.ndarray) -> np.ndarray:
        """Resamples a whole recording: float32 [n] -> float32 [ceil(n * to / from)]."""
        state, head = self.push(self.initial_state(), samples)
        _, tail = self.flush(state)
        return np.concatenate((head, tail))


class _Filter(NamedTuple):
    """weights: float32 [groups, outputs, taps]; group g reads `taps` samples from g * group_step on."""

    weights: np.ndarray
    half_samples: int
    block_in: int
    block_out: int
    group_step: int

    def run(self, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Computes all whole blocks of the samples, gives what is left and the output."""
        blocks = max(0, (len(samples) - 2 * self.half_samples) // self.block_in)
        if blocks == 0:
            return samples, np.zeros(0, np.float32)
        groups, _, taps = self.weights.shape
        # The last group's window may reach past the block by the rounding of group_step; its weights there are 0.
        reach = (blocks - 1) * self.block_in + (groups - 1) * self.group_step + taps
        padded = np.concatenate((samples, np.zeros(max(0, reach - len(samples)), np.float32)))
        step = padded.itemsize
        windows = np.lib.stride_tricks.as_strided(
            padded,
            shape=(blocks, groups, taps, 1),
            strides=(self.block_in * step, self.group_step * step, step, step),
            writeable=False,
        )
        out = np.matmul(self.weights, windows).reshape(blocks, -1)[:, : self.block_out]
        return samples[blocks * self.block_in :].copy(), np.ascontiguousarray(out).reshape(-1)


# Worst case (rates without a common divisor) a filter has 120 MB; ordinary ones have 0.3 MB.
@lru_cache(maxsize=16)
def _design(from_hz: int, to_hz: int) -> _Filter:
    divisor = gcd(from_hz, to_hz)
    period_in, period_out = from_hz // divisor, to_hz // divisor
    periods = max(1, round(_BLOCK_MS * from_hz / 1000 / period_in))
    block_in, block_out = periods * period_in, periods * period_out
    half = -(-_HALF_WIDTH * max(from_hz, to_hz) // to_hz) if from_hz > to_hz else _HALF_WIDTH
    group_outputs = _GROUP_OUTPUTS
    while (
        group_outputs > 1 and group_outputs * (2 * half + 2 * group_outputs * period_in // period_out) > _GROUP_WEIGHTS
    ):
        group_outputs //= 2
    groups = -(-block_out // group_outputs)
    group_step = (group_outputs * period_in) // period_out
    # Where group g truly begins, in input samples; whole steps fall behind it by up to `lag`.
    begins = (np.arange(groups, dtype=np.int64) * group_outputs * period_in) // period_out
    lag = int((begins - np.arange(groups) * group_step).max())
    taps = 2 * half + lag + -(-group_outputs * period_in // period_out) + 1
    weights = np.zeros((groups, group_outputs, taps), np.float32)
    for group in range(groups):
        outputs = np.arange(group * group_outputs, min((group + 1) * group_outputs, block_out))
        # Window sample i of this group is input sample (i - half) of the block plus the group's start.
        inputs = group * group_step + np.arange(taps) - half
        distance = outputs[:, None] * (period_in / period_out) - inputs[None, :]
        weights[group, : len(outputs)] = _kernel(distance, half)
    return _Filter(weights, half, block_in, block_out, group_step)


def _kernel(distance: np.ndarray, half: int) -> np.ndarray:
    """The windowed sinc at distances in input samples, each row summing to 1 so that a constant stays itself."""
    inside = np.abs(distance) < half
    window = np.i0(_KAISER_BETA * np.sqrt(np.where(inside, 1.0 - np.square(distance / half), 0.0)))
    kernel = np.where(inside, np.sinc(distance * _CUTOFF * _HALF_WIDTH / half) * window, 0.0)
    return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))
