"""The streaming recipe written out as one plain loop over bare interpreters: no session, no state to freeze, no checks.

It makes the engine's model calls on the same audio, so it is the limit that the engine is measured by. It is told where
utterances end, though: its recogniser never hears the silence that tells the engine so.
"""

from collections.abc import Generator, Sequence
from pathlib import Path

import numpy as np

from model_runtime.card import ModelCard, ProbabilityFraming, SpectralFraming, StreamingFraming, load_card
from model_runtime.graph_binding import BoundGraph, bind_graph
from model_runtime.graph_file import read_graph_file
from model_runtime.tflite import make_interpreter

Span = tuple[int, int]
# Told how many samples have come, gives new tokens.
Stage = Generator[list[int], int, None]
_CHUNK_SAMPLES = 1_600


class Bare:
    """One interpreter and the indexes of its tensors."""

    def __init__(self, card: ModelCard, role: str, variant: str) -> None:
        binding = next(graph for graph in card.graphs if graph.role == role)
        path = Path(card.folder) / card.variants[variant][role]
        bound: BoundGraph = bind_graph(read_graph_file(path), binding, card.signature)
        ports = bound.inputs + bound.state_inputs
        self.inputs = [port.tensor_index for port in ports]
        self.outputs = [port.tensor_index for port in bound.outputs + bound.state_outputs]
        self.numbers = bound.inputs[0].numbers, bound.outputs[0].numbers
        self.zeros = [port.numbers.zeros((1, *port.shape[1:])) for port in bound.state_inputs]
        self.interpreter = make_interpreter(path, 1, [], None)
        self.shape: tuple[int, ...] = ()

    def __call__(self, values: np.ndarray, states: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
        source, result = self.numbers
        arrays = [source.quantize(values) if source.scale else values, *states]
        if arrays[0].shape != self.shape:
            for index, array in zip(self.inputs, arrays, strict=True):
                self.interpreter.resize_tensor_input(index, array.shape)
            self.interpreter.allocate_tensors()
            self.shape = arrays[0].shape
        for index, array in zip(self.inputs, arrays, strict=True):
            self.interpreter.set_tensor(index, array)
        self.interpreter.invoke()
        output, *new_states = [self.interpreter.get_tensor(index) for index in self.outputs]
        return (result.dequantize(output) if result.scale else output), new_states


class PlainLoop:
    """denoise, vad and streaming asr of the packaged models over audio that comes in chunks of 100 ms."""

    def __init__(self, variant: str) -> None:
        denoise, vad, asr = (load_card(name) for name in ("unison-denoise", "unison-vad", "unison-asr-stream"))
        available = [variant if variant in card.variants else "float32" for card in (denoise, vad, asr)]
        self._mask = Bare(denoise, "mask", available[0])
        self._vad = Bare(vad, "vad", available[1])
        self._features = Bare(asr, "features", available[2])
        self._encoder = Bare(asr, "encoder", available[2])
        self._spectral = denoise.framing_as(SpectralFraming)
        self._probability = vad.framing_as(ProbabilityFraming)
        self._ctc = asr.framing_as(StreamingFraming)

    def run(self, audio: np.ndarray, spans: Sequence[Span]) -> list[int]:
        """Cleans audio (float32 [n], 16 kHz), judges all of it, recognises the spans; gives the best tokens."""
        stages = [self.denoise(audio), self.judge(audio), self.recognise(audio, spans)]
        tokens: list[int] = []
        for stage in stages:
            next(stage)
        for now in range(_CHUNK_SAMPLES, len(audio) + 1, _CHUNK_SAMPLES):
            for stage in stages:
                tokens += stage.send(now)
        return tokens

    def denoise(self, audio: np.ndarray) -> Stage:
        framing = self._spectral
        n, hop, frames = framing.window_samples, framing.hop_samples, framing.frames_per_call
        window = np.sqrt(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)).astype(np.float32)
        delay, block = n - hop, frames * hop
        padded = np.concatenate((np.zeros(delay, np.float32), audio))
        states: list[np.ndarray] = self._mask.zeros
        overlap, clean, at = np.zeros(delay, np.float32), [], 0
        now = yield []
        while True:
            while at + block <= now:
                cut = np.lib.stride_tricks.as_strided(padded[at:], (frames, n), (hop * 4, 4))
                spectrum = np.fft.rfft(cut * window)
                magnitude = np.abs(spectrum)
                if framing.feature == "log_magnitude":
                    floored = np.log(np.maximum(magnitude, framing.feature_floor))
                    magnitude = floored * framing.feature_scale + framing.feature_offset
                mask, states = self._mask(magnitude[None].astype(np.float32), states)
                pieces = np.fft.irfft(spectrum * mask[0], n) * window
                total = np.zeros(block + delay, np.float32)
                total[:delay] = overlap
                for k in range(frames):
                    total[k * hop : k * hop + n] += pieces[k]
                clean.append(total[:block])
                overlap = total[block:]
                at += block
            now = yield []

    def judge(self, audio: np.ndarray) -> Stage:
        framing = self._probability
        padded = np.concatenate((np.zeros(framing.context_samples, np.float32), audio))
        states, at = self._vad.zeros, 0
        length = framing.context_samples + framing.block_samples
        now = yield []
        while True:
            while at + framing.block_samples <= now:
                _, states = self._vad(padded[None, at : at + length], states)
                at += framing.block_samples
            now = yield []

    def recognise(self, audio: np.ndarray, spans: Sequence[Span]) -> Stage:
        framing = self._ctc
        padded = np.concatenate((np.zeros(framing.context_samples, np.float32), audio))
        length = framing.context_samples + framing.block_samples
        now = yield []
        for at, end in spans:
            states, last, tokens = self._encoder.zeros, 0, []
            while at + framing.block_samples <= end:
                while at + framing.block_samples > now:
                    now = yield tokens
                    tokens = []
                features, _ = self._features(padded[None, at : at + length], ())
                log_probs, states = self._encoder(features, states)
                for token in log_probs[0].argmax(axis=1).tolist():
                    if token and token != last:
                        tokens.append(token)
                    last = token
                at += framing.block_samples
        while True:
            yield []
