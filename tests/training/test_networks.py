"""The networks as they are trained compute what the exported steps compute, call by call."""

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="the networks are TensorFlow functions")

import tensorflow as tf

from training import batch_network, denoise_network, stream_network, vad_network
from training.layers import Mode
from training.weights import Arrays, fold_norms

RNG = np.random.default_rng(5)
FEATURES = RNG.standard_normal((2, 160, 40)).astype(np.float32)


def shaken(arrays: Arrays) -> Arrays:
    """Fresh weights with norms that are not the identity."""
    moved = ("/gamma", "/beta", "/mean", "/variance")
    return {
        name: array + np.float32(0.2) * RNG.random(array.shape, np.float32) if name.endswith(moved) else array
        for name, array in arrays.items()
    }


@pytest.fixture(scope="module")
def stream_weights() -> Arrays:
    return shaken(stream_network.initialise(3))


def by_calls(weights: Arrays) -> np.ndarray:
    states = stream_network.zero_states(2)
    frames = []
    for start in range(0, FEATURES.shape[1], stream_network.CALL_FEATURES):
        part = FEATURES[:, start : start + stream_network.CALL_FEATURES]
        outputs = stream_network.step(weights, part, **states)
        frames.append(outputs["log_probs"].numpy())
        states = {name: outputs[name[:-3] + "_out"] for name in states}
    return np.concatenate(frames, axis=1)


def test_streaming_by_calls_is_the_whole_utterance_at_once(stream_weights: Arrays) -> None:
    whole = tf.nn.log_softmax(stream_network.whole(stream_weights, FEATURES)).numpy()
    np.testing.assert_allclose(by_calls(stream_weights), whole, atol=1e-4)


def test_streaming_looks_no_further_than_its_call(stream_weights: Arrays) -> None:
    changed = FEATURES.copy()
    changed[:, 80:] += 1.0
    before, after = (stream_network.whole(stream_weights, x).numpy() for x in (FEATURES, changed))
    np.testing.assert_allclose(after[:, :20], before[:, :20], atol=1e-5)


def test_folded_norms_change_nothing(stream_weights: Arrays) -> None:
    folded = fold_norms(stream_weights)
    assert not [name for name in folded if name.endswith("/gamma")]
    whole, same = (stream_network.whole(w, FEATURES).numpy() for w in (stream_weights, folded))
    np.testing.assert_allclose(same, whole, atol=1e-4)


def test_training_mode_offers_statistics_for_every_norm(stream_weights: Arrays) -> None:
    mode = Mode(training=True)
    stream_network.whole(stream_weights, FEATURES, mode)
    running = {name for name in stream_weights if name.endswith(("/mean", "/variance"))}
    assert set(mode.updates) == running


def test_batch_network_begins_with_the_streaming_one(stream_weights: Arrays) -> None:
    arrays = batch_network.from_stream(stream_weights, seed=1)
    extra = {name for name in arrays if name not in stream_weights}
    assert {name.split("/")[0] for name in extra} == {
        f"block{i}" for i in range(stream_network.SIZE.blocks, batch_network.SIZE.blocks)
    }
    front = arrays["front1/kernel"]
    np.testing.assert_array_equal(front[:5], stream_weights["front1/kernel"])
    assert not front[5:].any()


def test_batch_network_gives_a_frame_for_four_features() -> None:
    arrays = batch_network.initialise(2)
    for frames in (50, 160):
        logits = batch_network.network(arrays, FEATURES[:, :frames])
        assert logits.shape == (2, frames // 4, 37)


def test_denoiser_by_calls_is_the_whole_recording_at_once() -> None:
    arrays = denoise_network.initialise(4)
    features = RNG.standard_normal((2, 12, denoise_network.BINS)).astype(np.float32)
    zeros = [np.zeros((2, denoise_network.UNITS), np.float32) for _ in denoise_network.STATES]
    whole, _ = denoise_network.network(arrays, features, zeros, Mode(training=True))
    masks, states = [], zeros
    for start in range(0, 12, 4):
        mask, states = denoise_network.network(arrays, features[:, start : start + 4], states)
        masks.append(mask.numpy())
    np.testing.assert_allclose(np.concatenate(masks, axis=1), whole.numpy(), atol=1e-5)


def test_detector_by_calls_is_the_whole_recording_at_once() -> None:
    arrays = vad_network.initialise(4)
    pcm = 0.1 * RNG.standard_normal((2, 3840)).astype(np.float32)
    whole = tf.sigmoid(vad_network.whole(arrays, pcm, Mode(training=True))).numpy()
    padded = np.pad(pcm, ((0, 0), (240, 0)))
    states = {f"{k}_in": np.zeros((2, *s), np.float32) for k, s in vad_network.state_shapes().items()}
    speech = []
    for start in range(0, 3840, 1280):
        outputs = vad_network.step(arrays, padded[:, start : start + 1520], **states)
        speech.append(outputs["speech"].numpy())
        states = {name: outputs[name[:-3] + "_out"] for name in states}
    np.testing.assert_allclose(np.concatenate(speech, axis=1), whole, atol=1e-4)
