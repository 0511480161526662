"""Training of a recogniser towards any objective; features and their masking are inside the step."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from training.filterbank import CONTEXT_SAMPLES, features
from training.layers import Mode
from training.pool import Bucket, PoolConfig
from training.pool_training import train_on_pool
from training.schedule import Schedule, make_optimiser, remember_statistics
from training.utterances import Example, load_source, make_example
from training.weights import Arrays, Weights, variables


class Batch(NamedTuple):
    """What a recogniser learns from.

    Attributes:
        features: float32 [N, T, 40], T a multiple of 8.
        labels: int32 [N, L], token indices.
        lengths: int32 [N], labels that count.
        frames: int32 [N, T // 4], the token of each frame, -1 where unknown.
    """

    features: tf.Tensor
    labels: tf.Tensor
    lengths: tf.Tensor
    frames: tf.Tensor


# The loss of a batch.
Objective = Callable[[Weights, Batch, Mode], tf.Tensor]

# 40 s of audio a batch.
_BUCKETS = (
    Bucket(length_samples=25600, batch=24, share=1.0),
    Bucket(length_samples=38400, batch=16, share=1.2),
    Bucket(length_samples=57600, batch=12, share=1.2),
    Bucket(length_samples=89600, batch=8, share=0.8),
)
_TIME_MASKS, _TIME_MASK_FRAMES = 1, 12
_BAND_MASKS, _BAND_MASK_BINS = 1, 7


def make_maker(cache: Path, shared: Path) -> Callable[[np.random.Generator, int], Example]:
    """The function that makes one example of a length."""
    source = load_source(cache, shared)
    return lambda rng, length: make_example(rng, source, length)


def _mask(length: int | tf.Tensor, rows: tf.Tensor, widest: int) -> tf.Tensor:
    """float32 [rows, length]: zero on one random stretch of each row."""
    width = tf.random.uniform([rows, 1], 0, widest + 1, tf.int32)
    start = tf.random.uniform([rows, 1], 0, length, tf.int32)
    position = tf.range(length)[None]
    return 1.0 - tf.cast((position >= start) & (position < start + width), tf.float32)


def masked(batch: tf.Tensor) -> tf.Tensor:
    """Features [N, T, M] with random stretches of time and bands of frequency set to zero."""
    rows, frames, bins = tf.shape(batch)[0], tf.shape(batch)[1], batch.shape[2]
    for _ in range(_TIME_MASKS):
        batch *= _mask(frames, rows, _TIME_MASK_FRAMES)[:, :, None]
    for _ in range(_BAND_MASKS):
        batch *= _mask(bins, rows, _BAND_MASK_BINS)[:, None, :]
    return batch


def _padded_labels(batch: list[Example]) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([len(example.tokens) for example in batch], np.int32)
    labels = np.zeros((len(batch), max(1, int(lengths.max()))), np.int32)
    for row, example in zip(labels, batch, strict=True):
        row[: len(example.tokens)] = example.tokens
    return labels, lengths


def train_recogniser(
    objective: Objective, start: Arrays, schedule: Schedule, cache: Path, shared: Path, seed: int
) -> Arrays:
    """Trains a recogniser from the given weights and returns the new ones."""
    weights = variables(start)
    optimiser = make_optimiser(weights)
    trainable = [weight for weight in weights.values() if weight.trainable]

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None]),
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None, None], tf.int32),
        ]
    )
    def step(pcm: tf.Tensor, labels: tf.Tensor, lengths: tf.Tensor, frames: tf.Tensor) -> tf.Tensor:
        mode = Mode(training=True)
        inputs = masked(features(tf.pad(pcm, [[0, 0], [CONTEXT_SAMPLES, 0]])))
        with tf.GradientTape() as tape:
            loss = objective(weights, Batch(inputs, labels, lengths, frames), mode)
        optimiser.apply_gradients(zip(tape.gradient(loss, trainable), trainable, strict=True))
        remember_statistics(weights, mode.updates)
        return loss

    def learn(batch: list[Example]) -> float:
        labels, lengths = _padded_labels(batch)
        pcm = np.stack([example.pcm for example in batch]).astype(np.float32)
        frames = np.stack([example.frames for example in batch])
        return float(step(pcm, labels, lengths, frames))

    config = PoolConfig(_BUCKETS, fresh=0.25, kept=1500, seed=seed)
    return train_on_pool(learn, weights, optimiser, schedule, functools.partial(make_maker, cache, shared), config)
