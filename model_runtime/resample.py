"""Resampling by soxr that gives byte for byte the same output whatever the chunks.

soxr's own stream object cannot be frozen. So audio is cut into blocks at fixed positions, each is resampled by itself
with its neighbours on both sides, and the state is the samples that the next block needs. Both sides reach past
soxr's filter, so the output is soxr's of the whole recording within rounding (6e-8).
"""

from math import gcd
from typing import NamedTuple

import numpy as np

from model_runtime.audio import check_sample_rate

# A longer block costs less and answers later; neighbours of 10 ms (at the lower rate) already reach past the filter.
_BLOCK_MS = 40
_SIDE_SAMPLES = 240


class ResamplerState(NamedTuple):
    """Where a resampler stands. pending: float32 [k], the input from the left side of the next block on."""

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
        divisor = gcd(from_hz, to_hz)
        # Blocks and sides are whole periods, so every block begins at the same phase of the filter.
        period_in, period_out = from_hz // divisor, to_hz // divisor
        periods = max(1, from_hz * _BLOCK_MS // 1000 // period_in)
        self._block_in, self._block_out = periods * period_in, periods * period_out
        side_periods = -(-_SIDE_SAMPLES * from_hz // min(from_hz, to_hz) // period_in)
        self._side_in, self._side_out = side_periods * period_in, side_periods * period_out
        if from_hz != to_hz:
            # Takes a tenth of the time that a process of the batch job needs to start, and most never resample.
            import soxr

            self._resample = soxr.resample

    def initial_state(self) -> ResamplerState:
        """The state before the first sample."""
        side = 0 if self.from_hz == self.to_hz else self._side_in
        return ResamplerState(np.zeros(side, np.float32), 0, 0)

    def push(self, state: ResamplerState, samples: np.ndarray) -> tuple[ResamplerState, np.ndarray]:
        """Takes samples (float32 [n], n may be 0), gives what can be computed of the output: float32 [m]."""
        received = state.received_samples + len(samples)
        if self.from_hz == self.to_hz:
            return ResamplerState(state.pending, received, received), samples
        pending, out = self._blocks(np.concatenate((state.pending, samples)))
        return ResamplerState(pending, received, state.emitted_samples + len(out)), out

    def flush(self, state: ResamplerState) -> tuple[ResamplerState, np.ndarray]:
        """Gives the rest of the output (silence follows the last sample) and the state of a new stream."""
        if self.from_hz == self.to_hz:
            return self.initial_state(), np.zeros(0, np.float32)
        missing = -(-state.received_samples * self.to_hz // self.from_hz) - state.emitted_samples
        needed = -(-missing // self._block_out) * self._block_in + 2 * self._side_in
        padding = np.zeros(max(0, needed - len(state.pending)), np.float32)
        _, out = self._blocks(np.concatenate((state.pending, padding)))
        return self.initial_state(), out[:missing]

    def run(self, samples: np.ndarray) -> np.ndarray:
        """Resamples a whole recording: float32 [n] -> float32 [ceil(n * to / from)]."""
        state, head = self.push(self.initial_state(), samples)
        _, tail = self.flush(state)
        return np.concatenate((head, tail))

    def _blocks(self, audio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Resamples all blocks that have both sides; gives what is left and the output."""
        length, outputs, at = self._block_in + 2 * self._side_in, [np.zeros(0, np.float32)], 0
        while len(audio) - at >= length:
            resampled = self._resample(audio[at : at + length], self.from_hz, self.to_hz)
            outputs.append(resampled[self._side_out : self._side_out + self._block_out])
            at += self._block_in
        return audio[at:].copy(), np.concatenate(outputs)
