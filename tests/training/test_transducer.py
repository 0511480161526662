"""The transducer's loss is the sum over its alignments, and its exported steps compute what was trained."""

from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="the networks are TensorFlow functions")

import tensorflow as tf

from training import stream_network, transducer_network
from training.layers import Mode
from training.transducer_loss import transducer_loss
from training.weights import Arrays, fold_norms

RNG = np.random.default_rng(11)


def by_alignments(log_probs: np.ndarray, labels: list[int]) -> float:
    """Minus the log of the sum over every choice of frames that say the labels, one each."""
    frames = log_probs.shape[0]
    paths = []
    for spoken in combinations(range(frames), len(labels)):
        said, score = 0, 0.0
        for frame in range(frames):
            token = labels[said] if frame in spoken else 0
            score += log_probs[frame, said, token]
            said += frame in spoken
        paths.append(score)
    return -float(np.logaddexp.reduce(paths))


def test_the_loss_sums_over_all_alignments() -> None:
    log_probs = tf.nn.log_softmax(RNG.standard_normal((3, 5, 4, 6)).astype(np.float32)).numpy()
    labels = np.array([[3, 1, 5], [2, 0, 0], [0, 0, 0]], np.int32)
    lengths = np.array([3, 1, 0], np.int32)
    expected = [by_alignments(log_probs[i], labels[i, :n].tolist()) for i, n in enumerate(lengths)]
    loss = float(transducer_loss(tf.constant(log_probs), tf.constant(labels), tf.constant(lengths)))
    assert loss == pytest.approx(np.mean(expected), abs=1e-4)


@pytest.fixture(scope="module")
def weights() -> Arrays:
    arrays = transducer_network.initialise(stream_network.initialise(3), 4)
    return {k: v + np.float32(0.1) * RNG.random(v.shape, np.float32) for k, v in arrays.items()}


def test_folded_steps_say_what_the_whole_says_at_every_frame_and_text(weights: Arrays) -> None:
    features = RNG.standard_normal((2, 32, 40)).astype(np.float32)
    labels = RNG.integers(1, 37, (2, 5)).astype(np.int32)
    whole = transducer_network.whole(fold_norms(weights), features, labels, Mode(training=True)).numpy()
    folded, states, encodings = fold_norms(weights), stream_network.zero_states(2), []
    for start in range(0, 32, stream_network.CALL_FEATURES):
        part = features[:, start : start + stream_network.CALL_FEATURES]
        outputs = transducer_network.encoder_step(folded, part, **states)
        encodings.append(outputs["encoding"].numpy())
        states = {name: outputs[name[:-3] + "_out"] for name in states}
    encoding, memory = np.concatenate(encodings, axis=1), transducer_network.zero_memory(2)
    for place in range(6):
        token = labels[:, place - 1 : place] if place else np.zeros((2, 1), np.int32)
        outputs = transducer_network.predictor_step(folded, token, memory)
        memory = outputs["memory_out"].numpy()
        for frame in range(8):
            joined = transducer_network.joiner_step(folded, encoding[:, frame], outputs["prediction"])
            np.testing.assert_allclose(joined["log_probs"].numpy(), whole[:, frame, place], atol=1e-3)
