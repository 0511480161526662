"""Training of a recogniser: CTC over pieces of words, features and their masking inside the step."""

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from training.filterbank import CONTEXT_SAMPLES, features
from training.layers import Mode
from training.pool import Bucket, Pool, PoolConfig
from training.schedule import Schedule, make_optimiser, remember_statistics, run
from training.utterances import Example, load_source, make_example
from training.weights import Arrays, Weights, values, variables

Network = Callable[[Weights, tf.Tensor, Mode], tf.Tensor]

# 40 s of audio a batch.
_BUCKETS = (
    Bucket(length_samples=25600, batch=24, share=1.0),
    Bucket(length_samples=38400, batch=16, share=1.2),
    Bucket(length_samples=57600, batch=12, share=1.2),
    Bucket(length_samples=89600, batch=8, share=0.8),
)
# Weights of the loss by frames: where words are still to be found, and later.
FIND_WORDS, REFINE = 0.3, 0.03
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


def ctc_loss(logits: tf.Tensor, labels: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Mean loss of a batch.

    Args:
        logits: [N, T, tokens], blank first.
        labels: int32 [N, L], token indices.
        lengths: int32 [N], labels that count.
    """
    # The kernel wants the blank last and refuses rows without labels, whose only path is all blanks.
    rolled = tf.concat([logits[..., 1:], logits[..., :1]], axis=-1)
    blanks = -tf.reduce_sum(tf.nn.log_softmax(logits)[..., 0], axis=1)
    labels = tf.maximum(labels, 1)
    places = tf.where(tf.sequence_mask(tf.maximum(lengths, 1), tf.shape(labels)[1]))
    shape = tf.shape(labels, out_type=tf.int64)
    sparse = tf.SparseTensor(places, tf.gather_nd(labels, places) - 1, shape)
    frames = tf.fill([tf.shape(logits)[0]], tf.shape(logits)[1])
    losses = tf.compat.v1.nn.ctc_loss(sparse, rolled, frames, time_major=False, ignore_longer_outputs_than_inputs=True)
    return tf.reduce_mean(tf.where(lengths == 0, blanks, losses))


def frame_loss(logits: tf.Tensor, frames: tf.Tensor) -> tf.Tensor:
    """Mean over a batch of the summed cross-entropy of frames whose token is known.

    Args:
        logits: [N, T, tokens].
        frames: int32 [N, T], -1 where unknown.
    """
    known = tf.cast(frames >= 0, tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(frames, 0), logits)
    return tf.reduce_mean(tf.reduce_sum(losses * known, axis=1))


def _padded_labels(batch: list[Example]) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([len(example.tokens) for example in batch], np.int32)
    labels = np.zeros((len(batch), max(1, int(lengths.max()))), np.int32)
    for row, example in zip(labels, batch, strict=True):
        row[: len(example.tokens)] = example.tokens
    return labels, lengths


def train_recogniser(
    network: Network,
    start: Arrays,
    schedule: Schedule,
    cache: Path,
    shared: Path,
    seed: int,
    frame_weight: float,
) -> Arrays:
    """Trains a recogniser from the given weights and returns the new ones.

    The cross-entropy of frames, weighted by `frame_weight`, shows the model where words lie; CTC alone takes
    thousands of steps to find that out.
    """
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
            logits = network(weights, inputs, mode)
            loss = ctc_loss(logits, labels, lengths)
            if frame_weight:
                loss += frame_weight * frame_loss(logits, frames)
        optimiser.apply_gradients(zip(tape.gradient(loss, trainable), trainable, strict=True))
        remember_statistics(weights, mode.updates)
        return loss

    tf.random.set_seed(seed)
    config = PoolConfig(_BUCKETS, fresh=0.25, kept=1500, seed=seed)
    pool = Pool(functools.partial(make_maker, cache, shared), config)

    def train() -> float:
        batch = pool.batch()
        labels, lengths = _padded_labels(batch)
        pcm = np.stack([example.pcm for example in batch]).astype(np.float32)
        frames = np.stack([example.frames for example in batch])
        return float(step(pcm, labels, lengths, frames))

    try:
        run(schedule, weights, optimiser, train)
    finally:
        pool.close()
    return values(weights)
