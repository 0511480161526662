"""Whisper's graphs: a clip is heard once, then decoders go on token by token over a cache of their own."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from model_runtime.graph import Graph, batch_parts
from model_runtime.tflite import ROWS_ARE_INDEPENDENT
from model_runtime.whisper_features import FRAME_SAMPLES, log_mel, sinusoids
from model_runtime.whisper_framing import WhisperFraming

# Places in the cache grow in these steps, at the same token whatever the batch, so that batches change no result.
_CACHE_SIZES = (64, 128, 256)
_UNUSED = np.float32(-1e9)


class Heard(NamedTuple):
    """What the decoder hears of one window: its cross keys and values by tensor name, each [1, ...]."""

    tensors: dict[str, np.ndarray]


class _Part(NamedTuple):
    """Rows of a batch that go through the decoder in one call; the last may be there more than once."""

    rows: np.ndarray
    taken: int
    heard: dict[str, np.ndarray]


class WhisperModel:
    """The graphs of one card. Holds nothing of any clip.

    Windows are encoded one by one: the encoder gains nothing from a batch on a CPU, and needs 50 MB per row.
    """

    def __init__(
        self, framing: WhisperFraming, encoder: Graph, cross: Graph, decoder: Graph, prompt: Graph | None = None
    ) -> None:
        """Without `prompt`, a text that goes before is taken token by token, as a transcript is."""
        self.framing = framing
        self.decoder = decoder
        self.prompt = prompt
        self._encoder = encoder
        self._cross = cross
        self._width = encoder.input_shape("positions")[2]

    def hear(self, clip: np.ndarray, window_samples: int) -> Heard:
        """Encodes a clip (float32 [n], 16 kHz) padded to a window."""
        mel = log_mel(clip, window_samples, self.framing.mel_bins)
        positions = sinusoids(window_samples // FRAME_SAMPLES, self._width)
        features, _ = self._encoder.run({"mel": mel[None], "positions": positions[None]})
        return Heard(self._cross.run(features)[0])

    def decode(self, heard: Sequence[Heard]) -> "Decoding":
        """Begins a decoding with one row per element; windows must be of one size."""
        return Decoding(self, heard)


class Decoding:
    """Rows that are decoded side by side, each with its cache; all have got equally many tokens."""

    def __init__(self, model: WhisperModel, heard: Sequence[Heard]) -> None:
        self._graph = model.decoder
        self._prompt = model.prompt
        self._framing = model.framing
        self._heard = list(heard)
        self._position = 0
        self._mask = np.zeros((1, 1, 1, 0), np.float32)
        names = [name for name in model.decoder.input_names if name.startswith(("keys_", "values_"))]
        shapes = {name: [max(size, 0) for size in model.decoder.input_shape(name)[1:]] for name in names}
        self._cache = {name: np.zeros((len(heard), *shape), np.float32) for name, shape in shapes.items()}
        self._parts = self._split()

    def take(self, tokens: np.ndarray) -> None:
        """Takes the text that goes before, int32 [length], the same for all rows; it must come first."""
        if self._prompt is None:
            for token in tokens:
                self.step(np.full(len(self._heard), token, np.int32))
            return
        length = len(tokens)
        self._grow(length)
        mask = np.triu(np.full((1, 1, length, length), _UNUSED), k=1)
        inputs = {"token": tokens[None], "position": np.arange(length, dtype=np.int32)[None], "mask": mask}
        # Rows that hear the same thing, such as those of a beam, make the same of it.
        taken: dict[int, dict[str, np.ndarray]] = {}
        for row, heard in enumerate(self._heard):
            if id(heard) not in taken:
                needed = {name: heard.tensors[name] for name in self._prompt.input_names if name not in inputs}
                taken[id(heard)] = self._prompt.run({**inputs, **needed})[0]
            for name, cache in self._cache.items():
                new = taken[id(heard)][f"new_{name}"][0]
                if name.startswith("keys"):
                    cache[row, :, :length] = new
                else:
                    cache[row, :, :, :length] = new
        self._mask[..., :length] = 0
        self._position = length

    def step(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Takes one token per row, int32 [n]; gives logits [n, V] and the alignment heads' attention [n, heads, T]."""
        self._grow(self._position + 1)
        logits, attention = [], []
        for part in self._parts:
            outputs = self._run(part, tokens)
            logits.append(outputs["logits"][: part.taken])
            heads = [
                outputs[f"attention_{layer}"][: part.taken, head, 0] for layer, head in self._framing.alignment_heads
            ]
            attention.append(np.stack(heads, axis=1))
            for name, cache in self._cache.items():
                new = outputs[f"new_{name}"][: part.taken]
                rows = part.rows[: part.taken]
                if name.startswith("keys"):
                    cache[rows, :, self._position] = new[:, :, 0]
                else:
                    cache[rows, :, :, self._position] = new[:, :, :, 0]
        self._mask[..., self._position] = 0
        self._position += 1
        return np.concatenate(logits), np.concatenate(attention)

    def keep(self, rows: Sequence[int]) -> None:
        """Goes on with these rows alone; one may be there more than once, and hears what it heard."""
        heard = [self._heard[row] for row in rows]
        self._cache = {name: cache[list(rows)] for name, cache in self._cache.items()}
        if [id(one) for one in heard] != [id(one) for one in self._heard]:
            self._heard = heard
            self._parts = self._split()

    def _run(self, part: _Part, tokens: np.ndarray) -> dict[str, np.ndarray]:
        size = len(part.rows)
        inputs = {
            "token": tokens[part.rows, None],
            "position": np.full((size, 1), self._position, np.int32),
            "mask": np.repeat(self._mask, size, axis=0),
            **part.heard,
            **{name: cache[part.rows] for name, cache in self._cache.items()},
        }
        return self._graph.run(inputs)[0]

    def _split(self) -> list[_Part]:
        """Makes parts of the decoder's own batch sizes, so that what is heard is copied into it once, not per step."""
        parts, first = [], 0
        sizes = self._graph.batch_sizes if ROWS_ARE_INDEPENDENT else (1,)
        for taken, size in batch_parts(len(self._heard), sizes):
            rows = np.minimum(np.arange(first, first + size), first + taken - 1)
            one = self._heard[first].tensors
            tensors = one if size == 1 else {n: np.concatenate([self._heard[r].tensors[n] for r in rows]) for n in one}
            for tensor in tensors.values():
                tensor.setflags(write=False)
            parts.append(_Part(rows, taken, tensors))
            first += taken
        return parts

    def _grow(self, needed: int) -> None:
        """Makes room for so many tokens."""
        if needed <= self._mask.shape[-1]:
            return
        size = next((size for size in _CACHE_SIZES if size >= needed), self._framing.max_tokens)
        more = size - self._mask.shape[-1]
        self._mask = np.concatenate([self._mask, np.full((1, 1, 1, more), _UNUSED)], axis=-1)
        for name, cache in self._cache.items():
            axis = 2 if name.startswith("keys") else 3
            room = np.zeros((*cache.shape[:axis], more, *cache.shape[axis + 1 :]), np.float32)
            self._cache[name] = np.concatenate([cache, room], axis=axis)
