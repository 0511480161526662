"""Whisper's encoder, cross keys and values, prompt and decoder step as functions that export with every size open.

Letters of shapes: N batch, T frames after the encoder's stride, D width, H heads of 64, S places in the cache, V
tokens. Reshapes hold constants and one -1 at most and nothing asks for a size, so that all tensors are static once
the inputs are resized; XNNPACK leaves graphs alone where they are not. Values are kept as [.., 64, S], since a matmul
with both operands that way round copies nothing.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from training.export import Graph
from training.whisper_weights import HEAD_WIDTH, Arrays, layers

_EPSILON = 1e-5
_SCALE = HEAD_WIDTH**-0.5


class WhisperNetwork:
    """The three graphs over one set of weights.

    Args:
        arrays: As training.whisper_weights names them.
        alignment_layers: The decoder layers whose cross attention comes out of the decoder.
        int8_embedding: Hold the decoder's embedding as int8 with a scale per token; the converter would leave it
            float32.
    """

    def __init__(self, arrays: Arrays, alignment_layers: list[int], int8_embedding: bool = False) -> None:
        self.tokens, self.width = arrays["decoder/embedding"].shape
        self.heads = self.width // HEAD_WIDTH
        self.mel_bins = arrays["encoder/conv1/weight"].shape[1]
        self.decoder_layers = layers(arrays, "decoder")
        self.alignment_layers = alignment_layers
        self._arrays = arrays
        self._encoder_layers = layers(arrays, "encoder")
        self._int8_embedding = int8_embedding

    def encoder(self, mel: tf.Tensor, positions: tf.Tensor) -> dict[str, tf.Tensor]:
        """Log-mel [N, mel, 2 T] and positions [N, T, D] to ``features`` [N, T, D]."""
        x = tf.expand_dims(tf.transpose(mel, (0, 2, 1)), 1)
        x = self._conv(self._conv(x, "encoder/conv1", 1), "encoder/conv2", 2)
        x = tf.squeeze(x, 1) + positions
        for layer in range(self._encoder_layers):
            name = f"encoder/{layer}"
            h = self._norm(x, f"{name}/self/norm")
            query, key, value = (
                tf.split(self._dense(h, f"{name}/self/{part}"), self.heads, -1) for part in ("query", "key", "value")
            )
            # One head at a time: the scores of all of them at once would need 54 MB for tiny.
            heads = [
                tf.matmul(tf.nn.softmax(tf.matmul(q * _SCALE, k, transpose_b=True)), v)
                for q, k, v in zip(query, key, value, strict=True)
            ]
            x += self._dense(tf.concat(heads, -1), f"{name}/self/out")
            x = self._feed(x, f"{name}/feed")
        return {"features": self._norm(x, "encoder/norm")}

    def cross(self, features: tf.Tensor) -> dict[str, tf.Tensor]:
        """Features to ``cross_keys_<i>`` [N, H, T, 64] and ``cross_values_<i>`` [N, H, 64, T] of each layer."""
        outputs = {}
        for layer in range(self.decoder_layers):
            keys, values = (
                tf.stack(tf.split(self._dense(features, f"decoder/{layer}/cross/{part}"), self.heads, -1), 1)
                for part in ("key", "value")
            )
            outputs[f"cross_keys_{layer}"] = keys
            outputs[f"cross_values_{layer}"] = tf.transpose(values, (0, 1, 3, 2))
        return outputs

    def decoder(
        self, token: tf.Tensor, position: tf.Tensor, mask: tf.Tensor, **cache: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """One token per row.

        Args:
            token: int32 [N, 1].
            position: int32 [N, 1].
            mask: [N, 1, 1, S], 0 for places in use, -1e9 for others.
            **cache: ``keys_<i>`` [N, H, S, 64] and ``values_<i>`` [N, H, 64, S] of the tokens before, and what
                `cross` gave.

        Returns:
            ``logits`` [N, V], ``new_keys_<i>`` [N, H, 1, 64] and ``new_values_<i>`` [N, H, 64, 1] for the caller to
            put into the cache, ``attention_<i>`` [N, H, 1, T] of the alignment layers.
        """
        x = self._embedded(token) + tf.gather(tf.constant(self._arrays["decoder/positions"]), position)
        outputs = {}
        for layer in range(self.decoder_layers):
            name = f"decoder/{layer}"
            h = self._norm(x, f"{name}/self/norm")
            query = self._head_rows(self._dense(h, f"{name}/self/query")) * _SCALE
            key = self._head_rows(self._dense(h, f"{name}/self/key"))
            value = self._head_rows(self._dense(h, f"{name}/self/value"))
            before = tf.matmul(query, cache[f"keys_{layer}"], transpose_b=True) + mask
            here = tf.reduce_sum(query * key, -1, keepdims=True)
            weights = tf.nn.softmax(tf.concat([here, before], -1))
            context = tf.matmul(weights[..., 1:], cache[f"values_{layer}"], transpose_b=True) + weights[..., :1] * value
            x += self._dense(tf.reshape(context, (-1, 1, self.width)), f"{name}/self/out")
            outputs[f"new_keys_{layer}"] = key
            outputs[f"new_values_{layer}"] = tf.reshape(value, (-1, self.heads, HEAD_WIDTH, 1))
            query = self._head_rows(self._dense(self._norm(x, f"{name}/cross/norm"), f"{name}/cross/query")) * _SCALE
            weights = tf.nn.softmax(tf.matmul(query, cache[f"cross_keys_{layer}"], transpose_b=True))
            context = tf.matmul(weights, cache[f"cross_values_{layer}"], transpose_b=True)
            x += self._dense(tf.reshape(context, (-1, 1, self.width)), f"{name}/cross/out")
            x = self._feed(x, f"{name}/feed")
            if layer in self.alignment_layers:
                outputs[f"attention_{layer}"] = weights
        x = tf.reshape(self._norm(x, "decoder/norm"), (-1, self.width))
        outputs["logits"] = tf.matmul(x, tf.constant(self._arrays["decoder/embedding"]), transpose_b=True)
        return outputs

    def prompt(
        self, token: tf.Tensor, position: tf.Tensor, mask: tf.Tensor, **cross: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """The first L tokens of one row in one go: what they leave in the cache, and nothing of what they lead to.

        A graph of its own: with the rows open as well as the tokens, heads could not be taken apart without asking for
        a size.

        Args:
            token: int32 [1, L].
            position: int32 [1, L].
            mask: [1, 1, L, L], 0 for the tokens that a token follows and for itself, -1e9 for others.
            **cross: What `cross` gave, without the last layer's.

        Returns:
            ``new_keys_<i>`` [1, H, L, 64] and ``new_values_<i>`` [1, H, 64, L] of each layer.
        """
        x = self._embedded(token) + tf.gather(tf.constant(self._arrays["decoder/positions"]), position)
        outputs = {}
        for layer in range(self.decoder_layers):
            name = f"decoder/{layer}"
            h = self._norm(x, f"{name}/self/norm")
            key, value = (self._token_heads(self._dense(h, f"{name}/self/{part}")) for part in ("key", "value"))
            outputs[f"new_keys_{layer}"] = key
            outputs[f"new_values_{layer}"] = tf.transpose(value, (0, 1, 3, 2))
            if layer == self.decoder_layers - 1:
                break
            query = self._token_heads(self._dense(h, f"{name}/self/query")) * _SCALE
            weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) + mask)
            x += self._dense(self._joined(tf.matmul(weights, value)), f"{name}/self/out")
            query = self._token_heads(self._dense(self._norm(x, f"{name}/cross/norm"), f"{name}/cross/query")) * _SCALE
            weights = tf.nn.softmax(tf.matmul(query, cross[f"cross_keys_{layer}"], transpose_b=True))
            context = tf.matmul(weights, cross[f"cross_values_{layer}"], transpose_b=True)
            x += self._dense(self._joined(context), f"{name}/cross/out")
            x = self._feed(x, f"{name}/feed")
        return outputs

    def graphs(self) -> dict[str, Graph]:
        """The exportable graph of each role."""
        spec, width, heads = tf.TensorSpec, self.width, self.heads
        step = {
            "token": spec([None, 1], tf.int32, "token"),
            "position": spec([None, 1], tf.int32, "position"),
            "mask": spec([None, 1, 1, None], tf.float32, "mask"),
        }
        for layer in range(self.decoder_layers):
            for prefix in ("", "cross_"):
                for part, shape in (("keys", [heads, None, HEAD_WIDTH]), ("values", [heads, HEAD_WIDTH, None])):
                    name = f"{prefix}{part}_{layer}"
                    step[name] = spec([None, *shape], tf.float32, name)
        encoder = {
            "mel": spec([None, self.mel_bins, None], tf.float32, "mel"),
            "positions": spec([None, None, width], tf.float32, "positions"),
        }
        cross = {"features": spec([None, None, width], tf.float32, "features")}
        prompt = {
            "token": spec([1, None], tf.int32, "token"),
            "position": spec([1, None], tf.int32, "position"),
            "mask": spec([1, 1, None, None], tf.float32, "mask"),
        }
        for layer in range(self.decoder_layers - 1):
            prompt[f"cross_keys_{layer}"] = spec([1, heads, None, HEAD_WIDTH], tf.float32, f"cross_keys_{layer}")
            prompt[f"cross_values_{layer}"] = spec([1, heads, HEAD_WIDTH, None], tf.float32, f"cross_values_{layer}")
        roles: dict[str, tuple[Callable[..., dict[str, tf.Tensor]], dict[str, tf.TensorSpec]]] = {
            "encoder": (self.encoder, encoder),
            "cross": (self.cross, cross),
            "decoder": (self.decoder, step),
            "prompt": (self.prompt, prompt),
        }
        return {role: Graph(function, inputs) for role, (function, inputs) in roles.items()}

    def outputs(self, role: str) -> list[str]:
        """The names of a graph's outputs."""
        every = range(self.decoder_layers)
        if role == "encoder":
            return ["features"]
        if role == "cross":
            return [f"cross_{part}_{layer}" for layer in every for part in ("keys", "values")]
        cache = [f"new_{part}_{layer}" for layer in every for part in ("keys", "values")]
        if role == "prompt":
            return cache
        return ["logits", *cache, *[f"attention_{layer}" for layer in self.alignment_layers]]

    def _dense(self, x: tf.Tensor, name: str) -> tf.Tensor:
        weight = np.ascontiguousarray(self._arrays[f"{name}/weight"].T)
        return tf.matmul(x, tf.constant(weight)) + tf.constant(self._arrays[f"{name}/bias"])

    def _norm(self, x: tf.Tensor, name: str) -> tf.Tensor:
        centred = x - tf.reduce_mean(x, -1, keepdims=True)
        variance = tf.reduce_mean(centred * centred, -1, keepdims=True)
        scaled = centred * tf.math.rsqrt(variance + _EPSILON)
        return scaled * self._arrays[f"{name}/gamma"] + self._arrays[f"{name}/beta"]

    def _feed(self, x: tf.Tensor, name: str) -> tf.Tensor:
        hidden = tf.nn.gelu(self._dense(self._norm(x, f"{name}/norm"), f"{name}/up"), approximate=False)
        return x + self._dense(hidden, f"{name}/down")

    def _conv(self, x: tf.Tensor, name: str, stride: int) -> tf.Tensor:
        kernel = tf.constant(np.transpose(self._arrays[f"{name}/weight"], (2, 1, 0))[None])
        # One frame of zeros on both sides; SAME would put both behind where the stride is 2.
        x = tf.pad(x, [[0, 0], [0, 0], [1, 1], [0, 0]])
        x = tf.nn.conv2d(x, kernel, [1, 1, stride, 1], "VALID") + self._arrays[f"{name}/bias"]
        return tf.nn.gelu(x, approximate=False)

    def _head_rows(self, x: tf.Tensor) -> tf.Tensor:
        """[N, 1, D] -> [N, H, 1, 64]."""
        return tf.reshape(x, (-1, self.heads, 1, HEAD_WIDTH))

    def _token_heads(self, x: tf.Tensor) -> tf.Tensor:
        """[1, L, D] -> [1, H, L, 64]."""
        return tf.transpose(tf.reshape(x, (1, -1, self.heads, HEAD_WIDTH)), (0, 2, 1, 3))

    def _joined(self, x: tf.Tensor) -> tf.Tensor:
        """[1, H, L, 64] -> [1, L, D]."""
        return tf.reshape(tf.transpose(x, (0, 2, 1, 3)), (1, -1, self.width))

    def _embedded(self, token: tf.Tensor) -> tf.Tensor:
        embedding = self._arrays["decoder/embedding"]
        if not self._int8_embedding:
            return tf.gather(tf.constant(embedding), token)
        scale = np.maximum(np.abs(embedding).max(axis=1, keepdims=True) / 127, 1e-8).astype(np.float32)
        stored = np.clip(np.rint(embedding / scale), -127, 127).astype(np.int8)
        return tf.cast(tf.gather(tf.constant(stored), token), tf.float32) * tf.gather(tf.constant(scale), token)
