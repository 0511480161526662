"""Audio that shows a quantiser what a running model meets."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

from training import stream_network
from training.filterbank import CONTEXT_SAMPLES, features
from training.utterances import Source, load_source, make_example

_SESSIONS = 30
_SESSION_SAMPLES = 51200

SAMPLE_RATE_HZ = 16000


def calibration_pcm(source: Source, count: int, length: int, seed: int = 31) -> list[np.ndarray]:
    """Training examples, float32 [length] each; the first is digital silence."""
    rng = np.random.default_rng(seed)
    silence = np.zeros(length, np.float32)
    return [silence, *(make_example(rng, source, length).pcm for _ in range(count - 1))]


def session_calls(
    cache: Path, shared: Path, step: Callable[..., dict[str, tf.Tensor]]
) -> Iterator[tuple[dict[str, np.ndarray], dict[str, tf.Tensor]]]:
    """Calls of a streaming encoder in the middle of sessions: inputs with states by name, and the outputs.

    Args:
        cache: Where the synthesis is kept.
        shared: The data folder.
        step: Takes ``features`` and the states of `stream_network`.
    """
    compiled = tf.function(step)
    for pcm in calibration_pcm(load_source(cache, shared), _SESSIONS, _SESSION_SAMPLES):
        inputs = features(np.pad(pcm, (CONTEXT_SAMPLES, 0))[None]).numpy()
        states = stream_network.zero_states(1)
        for start in range(0, inputs.shape[1], stream_network.CALL_FEATURES):
            call = {"features": inputs[:, start : start + stream_network.CALL_FEATURES]} | states
            outputs = compiled(**call)
            states = {name: outputs[name[:-3] + "_out"].numpy() for name in states}
            yield call, outputs
