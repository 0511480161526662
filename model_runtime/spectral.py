"""Denoising by a gain on short spectra: the frames, the FFT and the overlap-add around a recurrent mask graph.

The scheme is that of DTLN (Westhausen and Meyer, 2020, https://arxiv.org/abs/2005.07551) when a second graph works
on the frames themselves, and plain short-time spectral masking when there is none.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from model_runtime.calls import Call, States, Steps, split_states, stack, stack_states
from model_runtime.card import SpectralFraming
from model_runtime.graph import Graph


class DenoiseState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a session's denoiser stands; all audio is float32 at the model's rate."""

    # The last window - hop samples before `pending`, then the samples that do not fill a block yet.
    pending: np.ndarray
    # What later frames still add to: [window - hop].
    overlap: np.ndarray
    states: tuple[States, ...]
    # Outputs that lie before the first sample (the delay), still to be dropped.
    skip_samples: int
    received_samples: int
    emitted_samples: int
    # From the next block on audio passes as it is; the graphs' states wait.
    bypassed: bool = False


class SpectralKernel:
    """Rows (audio [context + block], overlap [window - hop], graph states) -> (clean [block], overlap, states)."""

    def __init__(self, framing: SpectralFraming, graphs: Sequence[Graph]) -> None:
        self.framing = framing
        self.graphs = tuple(graphs)
        self.block_samples = framing.hop_samples * framing.frames_per_call
        self.delay_samples = framing.window_samples - framing.hop_samples
        n = framing.window_samples
        # Square root of the periodic Hann window: analysis times synthesis adds up to a constant.
        self._window = (
            np.sqrt(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)) if framing.window == "sqrt_hann" else np.ones(n)
        ).astype(np.float32)
        total = (self._window.astype(np.float64) ** 2).reshape(-1, framing.hop_samples).sum(axis=0)
        self._synthesis = (self._window / np.tile(total, n // framing.hop_samples)).astype(np.float32)
        self._unchanged = self._window * self._synthesis
        self._feature_numbers = [
            np.float32(number) for number in (framing.feature_floor, framing.feature_scale, framing.feature_offset)
        ]
        self._additions = _additions(framing.frames_per_call, n // framing.hop_samples)

    @property
    def most_rows(self) -> int:
        """Rows that a call should have at most."""
        return min(graph.most_rows for graph in self.graphs)

    def initial_states(self) -> tuple[States, ...]:
        """Gives the graph states of one new session."""
        return tuple(graph.initial_states(1) for graph in self.graphs)

    def run(self, rows: Sequence[tuple[np.ndarray, np.ndarray, tuple[States, ...]]]) -> list[tuple]:
        """Cleans one block per row."""
        spectrum = np.fft.rfft(self._frames(stack([row[0] for row in rows])) * self._window)
        states = [stack_states([row[2][g] for row in rows]) for g in range(len(self.graphs))]
        outputs, states[0] = self.graphs[0].run({"features": self._features(spectrum)}, states[0])
        np.multiply(spectrum, outputs["mask"], out=spectrum)
        frames = np.fft.irfft(spectrum, self.framing.window_samples).astype(np.float32, copy=False)
        if len(self.graphs) > 1:
            outputs, states[1] = self.graphs[1].run({"frames": frames}, states[1])
            frames = outputs["frames"]
        frames *= self._synthesis
        clean, overlap = self._overlap_add(frames, stack([row[1] for row in rows]))
        by_row = zip(*[split_states(part, len(rows)) for part in states], strict=True)
        return list(zip(clean, overlap, by_row, strict=True))

    def pass_by(self, audio: np.ndarray, overlap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gives (audio [block], overlap) of one block as if the graphs changed nothing, without running them.

        Only the frames that lie over a switch are of both kinds, so it cross-fades within a window.
        """
        frames = self._frames(audio[None]) * self._unchanged
        passed, rest = self._overlap_add(frames, overlap[None])
        return passed[0], rest[0]

    def _frames(self, audio: np.ndarray) -> np.ndarray:
        """Gives the overlapping frames [n, f, window] of audio [n, context + block], as a view."""
        shape = (len(audio), self.framing.frames_per_call, self.framing.window_samples)
        size = audio.itemsize
        # A tenth of the time of sliding_window_view, which counts in every call.
        return np.ndarray(shape, audio.dtype, audio, strides=(audio.strides[0], self.framing.hop_samples * size, size))

    def _features(self, spectrum: np.ndarray) -> np.ndarray:
        features: np.ndarray = np.abs(spectrum).astype(np.float32, copy=False)
        if self.framing.feature == "log_magnitude":
            floor, scale, offset = self._feature_numbers
            np.maximum(features, floor, out=features)
            np.log(features, out=features)
            features *= scale
            features += offset
        return features

    def _overlap_add(self, frames: np.ndarray, overlap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Adds frames [n, f, window] up behind `overlap`; gives the finished block and what is left over."""
        n, count, window = frames.shape
        hop = self.framing.hop_samples
        kept = window // hop - 1
        # In hops: [n, f + hops of a window - 1, hop].
        total = np.zeros((n, count + kept, hop), np.float32)
        total[:, :kept] = overlap.reshape(n, kept, hop)
        by_hop = frames.reshape(n, count, kept + 1, hop)
        for there, here in self._additions:
            total[:, there] += by_hop[here]
        samples = total.reshape(n, (count + kept) * hop)
        return samples[:, : self.block_samples], samples[:, self.block_samples :]


def _additions(frames: int, hops: int) -> list[tuple[slice, tuple[slice | int, ...]]]:
    """Gives which hops of the sum get which part of the frames [n, f, hops of a window], in the fewest additions.

    A hop gets its frames in their order, whichever way they are cut.
    """
    rows = slice(None)
    if frames <= hops:
        return [(slice(k, k + hops), (rows, k)) for k in range(frames)]
    return [(slice(j, j + frames), (rows, slice(None), j)) for j in reversed(range(hops))]


class Denoiser:
    """The denoise stage of a session: as many clean samples as came in, each in its place."""

    def __init__(self, kernel: SpectralKernel) -> None:
        self.kernel = kernel

    def start(self) -> DenoiseState:
        """Gives the state of a new session."""
        delay = self.kernel.delay_samples
        zeros = np.zeros(delay, np.float32)
        return DenoiseState(zeros, zeros, self.kernel.initial_states(), delay, 0, 0)

    def push(self, state: DenoiseState, samples: np.ndarray) -> Steps[tuple[DenoiseState, list]]:
        """Takes any number of samples; gives pairs (clean, original) of equal length, one per finished block."""
        kernel = self.kernel
        delay, block = kernel.delay_samples, kernel.block_samples
        pending = np.concatenate((state.pending, samples))
        overlap, states, skip = state.overlap, state.states, state.skip_samples
        pairs, emitted, at = [], state.emitted_samples, 0
        while len(pending) - at >= delay + block:
            audio = pending[at : at + delay + block]
            if state.bypassed:
                clean, overlap = kernel.pass_by(audio, overlap)
            else:
                clean, overlap, states = yield Call(kernel, None, (audio, overlap, states))
            at += block
            # The block that is finished lies `delay` samples before the newest one.
            original = audio[:block]
            dropped = min(skip, block)
            skip -= dropped
            if dropped < block:
                pairs.append((clean[dropped:], original[dropped:]))
                emitted += block - dropped
        received = state.received_samples + len(samples)
        return DenoiseState(pending[at:].copy(), overlap, states, skip, received, emitted, state.bypassed), pairs

    def finish(self, state: DenoiseState) -> Steps[tuple[DenoiseState, list]]:
        """Flushes the delay with zeros; afterwards exactly as many samples have come out as went in."""
        missing = state.received_samples - state.emitted_samples
        if not missing:
            return state, []
        block = self.kernel.block_samples
        new_samples = len(state.pending) - self.kernel.delay_samples
        needed = state.skip_samples + missing
        zeros = np.zeros(-(-needed // block) * block - new_samples, np.float32)
        flushed, pairs = yield from self.push(state, zeros)
        kept = []
        for clean, original in pairs:
            kept.append((clean[:missing], original[:missing]))
            missing -= len(kept[-1][0])
        total = state.received_samples
        end = DenoiseState(flushed.pending, flushed.overlap, flushed.states, flushed.skip_samples, total, total)
        return end, [pair for pair in kept if len(pair[0])]
