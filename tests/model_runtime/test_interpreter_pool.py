"""Interpreters leased to one caller at a time."""

from pathlib import Path

import numpy as np
import pytest

from model_runtime import interpreter_pool
from model_runtime.graph_binding import BoundGraph, GraphBinding, bind_graph
from model_runtime.graph_file import read_graph_file
from model_runtime.interpreter_pool import InterpreterPool, PrepareError

FEATURES = [np.zeros((1, 49, 10, 1), np.float32)]


@pytest.fixture
def bound(shared: Path) -> BoundGraph:
    file = read_graph_file(shared / "data/models/mlcommons/kws_ref_model_float32.tflite")
    return bind_graph(file, GraphBinding("keyword", {"features": "input_1"}, {"scores": "Identity"}), None)


def test_a_lane_that_came_back_is_leased_again(bound: BoundGraph) -> None:
    pool = InterpreterPool(bound, 1)
    lane = pool.lease(1)
    pool.give_back(1, lane)
    assert pool.lease(1) is lane


def test_two_callers_at_once_get_two_lanes(bound: BoundGraph) -> None:
    pool = InterpreterPool(bound, 1)
    assert pool.lease(1) is not pool.lease(1)


def test_batch_sizes_do_not_share_lanes(bound: BoundGraph) -> None:
    pool = InterpreterPool(bound, 1)
    lane = pool.lease(1)
    pool.give_back(1, lane)
    assert pool.lease(2) is not lane


def test_a_lane_is_resized_when_the_shape_changes(bound: BoundGraph) -> None:
    lane = InterpreterPool(bound, 1).lease(1)
    one = lane.call(FEATURES)[0]
    four = lane.call([np.repeat(FEATURES[0], 4, axis=0)])[0]
    assert four.shape == (4, 12)
    assert np.array_equal(four[3:], one)


def test_a_read_only_input_is_read_once_and_others_each_time(bound: BoundGraph) -> None:
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal((1, 49, 10, 1)).astype(np.float32) for _ in range(3)]
    wanted = [InterpreterPool(bound, 1).lease(1).call([array])[0] for array in inputs]
    for array in inputs:
        array.setflags(write=False)
    lane = InterpreterPool(bound, 1).lease(1)
    order = (0, 0, 1, 0, 2, 2)
    assert [np.array_equal(lane.call([inputs[i]])[0], wanted[i]) for i in order] == [True] * len(order)
    # What is written behind its back shows that the array was not read again.
    inputs[2].setflags(write=True)
    inputs[2][:] = inputs[0]
    assert np.array_equal(lane.call([inputs[2]])[0], wanted[2])
    assert np.array_equal(lane.call([inputs[2]])[0], wanted[2])
    assert np.array_equal(lane.call([inputs[2].copy()])[0], wanted[0])


def test_a_read_only_input_is_read_again_after_a_resize(bound: BoundGraph) -> None:
    one = np.random.default_rng(3).standard_normal((1, 49, 10, 1)).astype(np.float32)
    one.setflags(write=False)
    lane = InterpreterPool(bound, 1).lease(1)
    wanted = lane.call([one])[0]
    lane.call([np.zeros((2, 49, 10, 1), np.float32)])
    assert np.array_equal(lane.call([one])[0], wanted)


def test_a_model_that_the_runtime_cannot_resize_gives_a_prepare_error(shared: Path) -> None:
    file = read_graph_file(shared / "data/models/tflite_micro/micro_speech_quantized.tflite")
    bound = bind_graph(file, GraphBinding("keyword", {"x": "Reshape_1"}, {"y": "labels_softmax"}), None)
    with pytest.raises(PrepareError) as caught:
        InterpreterPool(bound, 1).lease(1).prepare([(1, 7)])
    assert caught.value.reason == "delegate_prepare_failed"


def test_a_fork_leaves_the_parents_lanes_alone_and_alive(bound: BoundGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter_pool, "_abandoned", [])
    pool = InterpreterPool(bound, 1)
    lane = pool.lease(1)
    pool.give_back(1, lane)
    interpreter_pool._after_fork()
    assert pool.lease(1) is not lane
    assert {1: [lane]} in interpreter_pool._abandoned


def test_a_fork_while_the_lock_is_held_does_not_block_the_child(bound: BoundGraph) -> None:
    pool = InterpreterPool(bound, 1)
    with pool._lock:
        interpreter_pool._after_fork()
        assert pool.lease(1).call(FEATURES)[0].shape == (1, 12)


def test_a_cleared_pool_makes_new_lanes(bound: BoundGraph) -> None:
    pool = InterpreterPool(bound, 1)
    lane = pool.lease(1)
    pool.give_back(1, lane)
    pool.clear()
    assert pool.lease(1) is not lane


def test_a_pool_is_retired_by_the_first_caller_alone_and_takes_nothing_back(bound: BoundGraph) -> None:
    pool = InterpreterPool(bound, 1)
    lane = pool.lease(1)
    assert [pool.retire(), pool.retire()] == [True, False]
    pool.give_back(1, lane)
    assert pool.lease(1) is not lane
