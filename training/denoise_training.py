"""Training of the denoiser: signal-to-distortion of the waveform and a little of its compressed magnitudes."""

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from training import denoise_network as net
from training.layers import Mode
from training.pool import Bucket, PoolConfig
from training.pool_training import train_on_pool
from training.scenes import Scene, make_scene
from training.schedule import Schedule, make_optimiser
from training.utterances import load_source
from training.weights import Arrays, Weights, variables

_BUCKETS = (Bucket(length_samples=40960, batch=12, share=1.0),)
_LONGEST_PAUSE_S = 0.5
_MAGNITUDE_WEIGHT = 20.0


def make_maker(cache: Path, shared: Path) -> Callable[[np.random.Generator, int], Scene]:
    """The function that makes one example of a length."""
    source = load_source(cache, shared)
    return lambda rng, length: make_scene(rng, source, length, _LONGEST_PAUSE_S, with_babble=True)


def spectrum(pcm: tf.Tensor) -> tf.Tensor:
    """complex64 [N, T, 257] of samples [N, S]."""
    frames = tf.signal.frame(pcm, net.WINDOW_SAMPLES, net.HOP_SAMPLES)
    return tf.signal.rfft(frames * net.window())


def waveform(spectra: tf.Tensor) -> tf.Tensor:
    """Samples of spectra [N, T, 257], without the first and last hop, where windows do not overlap."""
    frames = tf.signal.irfft(spectra) * net.window()
    return tf.signal.overlap_and_add(frames, net.HOP_SAMPLES)[:, net.HOP_SAMPLES : -net.HOP_SAMPLES]


def denoised(weights: Weights, pcm: tf.Tensor) -> tf.Tensor:
    """Spectra after masking, complex64 [N, T, 257], of noisy samples [N, S]."""
    noisy = spectrum(pcm)
    states = [tf.zeros([tf.shape(pcm)[0], net.UNITS]) for _ in net.STATES]
    mask, _ = net.network(weights, net.log_magnitude(tf.abs(noisy)), states, Mode(training=True))
    return noisy * tf.cast(mask, tf.complex64)


def distortion_loss(noisy: tf.Tensor, clean: tf.Tensor, estimate: tf.Tensor) -> tf.Tensor:
    """Negative signal-to-distortion ratio in dB, bounded at 30; the noise left over where there is no speech."""
    signal = tf.reduce_sum(tf.square(clean), axis=1)
    error = tf.reduce_sum(tf.square(estimate - clean), axis=1)
    total = tf.reduce_sum(tf.square(noisy), axis=1) + 1e-6
    ratio = (signal + 0.01 * total) / (error + 1e-3 * signal + 1e-3 * total)
    return -tf.reduce_mean(10.0 / np.log(10.0) * tf.math.log(ratio))


def train_denoiser(start: Arrays, schedule: Schedule, cache: Path, shared: Path, seed: int) -> Arrays:
    """Trains from the given weights and returns the new ones."""
    weights = variables(start)
    optimiser = make_optimiser(weights)
    trainable = list(weights.values())
    hop = net.HOP_SAMPLES

    @tf.function(input_signature=[tf.TensorSpec([None, _BUCKETS[0].length_samples])] * 2)
    def step(noisy: tf.Tensor, clean: tf.Tensor) -> tf.Tensor:
        # Level is no cue to speech, so the loss sees every example equally loud.
        level = 0.1 / (tf.math.reduce_std(noisy, axis=1, keepdims=True) + 1e-5)
        with tf.GradientTape() as tape:
            estimate = denoised(weights, noisy) * tf.cast(level[:, :, None], tf.complex64)
            target = spectrum(clean * level)
            compressed = tf.pow(tf.abs(estimate) + 1e-4, 0.3) - tf.pow(tf.abs(target) + 1e-4, 0.3)
            inner = slice(hop, -hop)
            loss = distortion_loss((noisy * level)[:, inner], (clean * level)[:, inner], waveform(estimate))
            loss += _MAGNITUDE_WEIGHT * tf.reduce_mean(tf.square(compressed))
        optimiser.apply_gradients(zip(tape.gradient(loss, trainable), trainable, strict=True))
        return loss

    def learn(batch: list[Scene]) -> float:
        noisy, clean = (np.stack(list(part)) for part in zip(*batch, strict=True))
        return float(step(noisy, clean))

    config = PoolConfig(_BUCKETS, fresh=0.25, kept=2000, seed=seed)
    return train_on_pool(learn, weights, optimiser, schedule, functools.partial(make_maker, cache, shared), config)
