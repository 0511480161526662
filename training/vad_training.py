"""Training of the voice detector against the energy of the speech before noise was added."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from scipy.ndimage import binary_closing, binary_opening

from training import vad_network as net
from training.filterbank import HOP_SAMPLES
from training.layers import Mode
from training.pool import Bucket, PoolConfig
from training.pool_training import train_on_pool
from training.scenes import make_scene
from training.schedule import Schedule, make_optimiser
from training.utterances import load_source
from training.weights import Arrays, variables

_LENGTH = 76800
_BUCKETS = (Bucket(length_samples=_LENGTH, batch=8, share=1.0),)
_LONGEST_PAUSE_S = 2.0
_THRESHOLD_DB = 33.0
_LONGEST_CLOSURE_FRAMES = 9
_SHORTEST_SPEECH_FRAMES = 3


class Example(NamedTuple):
    """pcm float32 [T], 16 kHz, and whether there is speech in each 10 ms, bool [T / 160]."""

    pcm: np.ndarray
    speech: np.ndarray


def speech_frames(clean: np.ndarray) -> np.ndarray:
    """Where a clean recording has speech.

    Frames within 33 dB of the loud ones count; pauses up to 80 ms are filled, blips under 30 ms dropped.

    Args:
        clean: float32 [T].

    Returns:
        bool [T / 160].
    """
    frames = clean[: len(clean) // HOP_SAMPLES * HOP_SAMPLES].reshape(-1, HOP_SAMPLES)
    energy = np.mean(np.square(frames - frames.mean(axis=1, keepdims=True)), axis=1)
    if energy.max() < 1e-10:
        return np.zeros(len(energy), bool)
    loud = np.percentile(energy[energy > 1e-4 * energy.max()], 90)
    active = energy > loud * 10 ** (-_THRESHOLD_DB / 10)
    closed = binary_closing(np.pad(active, 10), np.ones(_LONGEST_CLOSURE_FRAMES))[10:-10]
    return np.asarray(binary_opening(closed, np.ones(_SHORTEST_SPEECH_FRAMES)))


def make_maker(cache: Path, shared: Path) -> Callable[[np.random.Generator, int], Example]:
    """The function that makes one example of a length."""
    source = load_source(cache, shared)

    def make(rng: np.random.Generator, length: int) -> Example:
        scene = make_scene(rng, source, length, _LONGEST_PAUSE_S, with_babble=False)
        noisy = scene.noisy
        if rng.random() < 0.3:
            noisy = noisy + np.float32(rng.normal(0.0, 0.02))
        if rng.random() < 0.2:
            first = int(rng.integers(0, length))
            rest = speech_frames(scene.clean)[first // HOP_SAMPLES :]
            last = first + int(np.argmax(rest)) * HOP_SAMPLES if rest.any() else length
            noisy[first:last] = 0.0
        return Example(np.clip(noisy, -1, 1), speech_frames(scene.clean))

    return make


def train_detector(start: Arrays, schedule: Schedule, cache: Path, shared: Path, seed: int) -> Arrays:
    """Trains from the given weights and returns the new ones."""
    weights = variables(start)
    optimiser = make_optimiser(weights)
    trainable = list(weights.values())

    @tf.function(input_signature=[tf.TensorSpec([None, _LENGTH]), tf.TensorSpec([None, _LENGTH // HOP_SAMPLES])])
    def step(pcm: tf.Tensor, speech: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            losses = tf.nn.sigmoid_cross_entropy_with_logits(speech, net.whole(weights, pcm, Mode(training=True)))
            loss = tf.reduce_mean(losses)
        optimiser.apply_gradients(zip(tape.gradient(loss, trainable), trainable, strict=True))
        return loss

    def learn(batch: list[Example]) -> float:
        speech = np.stack([example.speech for example in batch]).astype(np.float32)
        return float(step(np.stack([example.pcm for example in batch]).astype(np.float32), speech))

    config = PoolConfig(_BUCKETS, fresh=0.25, kept=2000, seed=seed)
    return train_on_pool(learn, weights, optimiser, schedule, functools.partial(make_maker, cache, shared), config)
