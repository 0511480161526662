"""Graphs that run: exact against the bare interpreter, split, padded, shared by threads, carried over a fork."""

import multiprocessing
import pickle
import re
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from model_runtime.card import PACKAGE_MODELS
from model_runtime.devices import RouteConfig
from model_runtime.errors import ConfigError, ModelError
from model_runtime.graph import Graph, GraphBinding, StatePair, batch_parts
from model_runtime.tflite import RUNTIME, Interpreter

LSTM = tuple(StatePair(f"{name}_in", name) for name in ("h0", "c0", "h1", "c1"))
MASK = GraphBinding("mask", {"features": "mag"}, {"mask": "mask"}, LSTM)
UNSIGNED = GraphBinding("mask", {"features": "input_2"}, {"mask": "Identity"}, (StatePair("input_3", "Identity_1"),))
SILERO = GraphBinding(
    "vad",
    {"samples": "audio"},
    {"speech": "speech_prob"},
    (StatePair("state_h_in", "state_h"), StatePair("state_c_in", "state_c")),
)
KEYWORD = GraphBinding("keyword", {"features": "input_1"}, {"scores": "Identity"})

FBANK = PACKAGE_MODELS / "unison-asr-stream/fbank.tflite"

Load = Callable[..., Graph]


@pytest.fixture
def load(shared: Path) -> Load:
    def load_graph(name: str, binding: GraphBinding, signature: str | None = None, **route: object) -> Graph:
        path = shared / f"data/models/{name}.tflite"
        return Graph.load({"only": path}, binding, signature, RouteConfig(variants=("only",), **route))

    return load_graph


@pytest.fixture
def mask(load: Load) -> Graph:
    return load("dtln_batch/dtlnN_1_fp32", MASK, "step")


def magnitudes(rows: int, seed: int = 0) -> np.ndarray:
    return np.abs(np.random.default_rng(seed).standard_normal((rows, 257))).astype(np.float32)


def test_dtln_without_signatures_equals_the_bare_interpreter_over_ten_frames(shared: Path, load: Load) -> None:
    graph = load("dtln/model_1", UNSIGNED)
    bare = Interpreter(model_path=str(shared / "data/models/dtln/model_1.tflite"))
    bare.allocate_tensors()
    states, state = graph.initial_states(1), np.zeros((1, 2, 128, 2), np.float32)
    for frame in range(10):
        features = magnitudes(1, frame)[None]
        outputs, states = graph.run({"features": features}, states)
        bare.set_tensor(0, features)
        bare.set_tensor(1, state)
        bare.invoke()
        state = bare.get_tensor(69)
        assert np.array_equal(outputs["mask"], bare.get_tensor(66))
        assert np.array_equal(states[0], state)


def test_int8_tensors_are_quantised_by_the_parameters_of_the_file(shared: Path, load: Load) -> None:
    graph = load("dtln_batch/dtlnN_1_int8", MASK, "step")
    runner = Interpreter(str(shared / "data/models/dtln_batch/dtlnN_1_int8.tflite")).get_signature_runner("step")
    features = magnitudes(1)
    outputs, states = graph.run({"features": features}, graph.initial_states(1))
    stored = np.clip(np.rint(features / np.float32(0.45830702781677246)) - 128, -128, 127).astype(np.int8)
    zero_points = {"h0_in": -1, "c0_in": 23, "h1_in": -1, "c1_in": -34}
    zeros = {name: np.full((1, 128), zero_point, np.int8) for name, zero_point in zero_points.items()}
    expected = runner(mag=stored, **zeros)
    assert np.array_equal(outputs["mask"], (expected["mask"].astype(np.float32) + 128) * np.float32(0.00390625))
    assert all(
        np.array_equal(state, expected[name]) for state, name in zip(states, ("h0", "c0", "h1", "c1"), strict=True)
    )


def test_initial_int8_states_hold_the_zero_point(load: Load) -> None:
    states = load("dtln_batch/dtlnN_1_int8", MASK, "step").initial_states(2)
    assert [(state.shape, state.dtype.name, int(state[0, 0]), int(np.ptp(state))) for state in states] == [
        ((2, 128), "int8", zero_point, 0) for zero_point in (-1, 23, -1, -34)
    ]


def test_a_state_is_requantised_when_it_goes_in_with_another_scale_than_it_came_out(
    shared: Path, load: Load, tmp_path: Path
) -> None:
    original = shared / "data/models/dtln_batch/dtlnN_1_int8.tflite"
    scale = struct.pack("<f", 2.8524203300476074)
    assert original.read_bytes().count(scale) == 1
    stretched = tmp_path / "stretched.tflite"
    stretched.write_bytes(original.read_bytes().replace(scale, struct.pack("<f", 1.5 * 2.8563413619995117)))
    graph = Graph.load({"float32": stretched}, MASK, "step")
    before = list(graph.initial_states(1))
    before[1] = np.arange(-64, 64, dtype=np.int8)[None]
    _, states = graph.run({"features": np.zeros((1, 257), np.float32)}, tuple(before))
    runner = Interpreter(str(stretched)).get_signature_runner("step")
    stored = dict(zip(("h0_in", "c0_in", "h1_in", "c1_in"), before, strict=True))
    came_out = runner(mag=np.full((1, 257), -128, np.int8), **stored)
    assert len(np.unique(came_out["c0"])) > 50
    assert np.array_equal(states[1], np.rint((came_out["c0"].astype(np.float32) - 23) / 1.5).astype(np.int8) + 23)
    assert np.array_equal(states[0], came_out["h0"])


@pytest.mark.parametrize(
    ("name", "binding", "signature", "width"),
    [("dtln_batch/dtlnN_1_fp32", MASK, "step", 257), ("silero/silero16k_fp32", SILERO, "serving_default", 576)],
)
@pytest.mark.parametrize("rows", [1, 2, 6, 8, 37])
def test_rows_of_a_batch_equal_single_rows_bit_for_bit(
    load: Load, name: str, binding: GraphBinding, signature: str, width: int, rows: int
) -> None:
    graph = load(name, binding, signature)
    (role,) = binding.inputs
    data = np.random.default_rng(1).random((2, rows, width), np.float32)
    states = graph.initial_states(rows)
    singles = [graph.initial_states(1)] * rows
    for frame in data:
        outputs, states = graph.run({role: frame}, states)
        for row in range(rows):
            single, singles[row] = graph.run({role: frame[row : row + 1]}, singles[row])
            assert all(np.array_equal(outputs[key][row : row + 1], value) for key, value in single.items())
    for row in range(rows):
        assert all(np.array_equal(a[row : row + 1], b) for a, b in zip(states, singles[row], strict=True))


def test_open_dimensions_may_change_from_call_to_call() -> None:
    binding = GraphBinding("features", {"samples": "samples"}, {"features": "features"})
    graph = Graph.load({"float32": FBANK}, binding, "step")
    samples = np.random.default_rng(4).uniform(-0.1, 0.1, (2, 16000)).astype(np.float32)
    whole, _ = graph.run({"samples": samples})
    assert graph.input_shape("samples") == (-1, -1) and whole["features"].shape[:2] == (2, 98)
    for start in (0, 10, 50):
        part, _ = graph.run({"samples": samples[:, start * 160 : start * 160 + 400 + 7 * 160]})
        assert np.array_equal(part["features"], whole["features"][:, start : start + 8])


def test_a_graph_of_batch_one_takes_any_number_of_rows(load: Load) -> None:
    graph = load("dtln/model_1", UNSIGNED)
    features = magnitudes(3)[:, None]
    outputs, states = graph.run({"features": features}, graph.initial_states(3))
    assert outputs["mask"].shape == (3, 1, 257) and states[0].shape == (3, 2, 128, 2)
    last, _ = graph.run({"features": features[2:]}, graph.initial_states(1))
    assert np.array_equal(outputs["mask"][2:], last["mask"])


@pytest.mark.parametrize(
    ("rows", "sizes", "parts"),
    [
        (3, (1, 2, 4, 8), [(3, 4)]),
        (5, (1, 2, 4, 8), [(4, 4), (1, 1)]),
        (6, (1, 2, 4, 8), [(6, 8)]),
        (9, (1, 2, 4, 8, 16), [(8, 8), (1, 1)]),
        (37, (1, 2, 4, 8, 16, 32), [(32, 32), (4, 4), (1, 1)]),
        (5, (1,), [(1, 1)] * 5),
        (2, (4,), [(2, 4)]),
        (6, (4,), [(4, 4), (2, 4)]),
    ],
)
def test_rows_are_dealt_out_over_batch_sizes_with_little_padding(
    rows: int, sizes: tuple[int, ...], parts: list[tuple[int, int]]
) -> None:
    assert list(batch_parts(rows, sizes)) == parts


def test_batch_sizes_of_the_card_are_the_only_ones_used(shared: Path) -> None:
    path = shared / "data/models/mlcommons/kws_ref_model.tflite"
    four = Graph.load({"float32": path}, KEYWORD, batch_sizes=(4,))
    any_size = Graph.load({"float32": path}, KEYWORD)
    features = np.random.default_rng(2).random((6, 49, 10, 1), np.float32) * 100
    expected, _ = any_size.run({"features": features})
    assert np.array_equal(four.run({"features": features})[0]["scores"], expected["scores"])


def test_results_are_not_touched_by_later_calls(mask: Graph) -> None:
    first, states = mask.run({"features": magnitudes(1)}, mask.initial_states(1))
    kept = first["mask"].copy(), [state.copy() for state in states]
    mask.run({"features": magnitudes(1, 9)}, states)
    assert np.array_equal(first["mask"], kept[0])
    assert all(np.array_equal(a, b) for a, b in zip(states, kept[1], strict=True))


def test_outputs_are_bound_by_name_and_not_by_order(shared: Path, load: Load) -> None:
    turned = GraphBinding("mask", MASK.inputs, MASK.outputs, tuple(reversed(LSTM)))
    features = {"features": magnitudes(1)}
    graph, other = load("dtln_batch/dtlnN_1_fp32", MASK, "step"), load("dtln_batch/dtlnN_1_fp32", turned, "step")
    states, turned_states = graph.initial_states(1), other.initial_states(1)
    for _ in range(3):
        outputs, states = graph.run(features, states)
        turned_outputs, turned_states = other.run(features, turned_states)
    assert np.array_equal(outputs["mask"], turned_outputs["mask"])
    assert all(np.array_equal(a, b) for a, b in zip(states, reversed(turned_states), strict=True))


def test_two_threads_get_the_answers_of_one(mask: Graph) -> None:
    def answers(seed: int) -> list[np.ndarray]:
        states = mask.initial_states(1)
        found = []
        for call in range(400):
            outputs, states = mask.run({"features": magnitudes(1, seed + call)}, states)
            found.append(outputs["mask"])
        return found

    alone = [answers(0), answers(1000)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(answers, [0, 1000]))
    assert np.array_equal(alone, together)


def _run_in_child(graph: Graph, features: np.ndarray, queue: "multiprocessing.Queue[np.ndarray]") -> None:
    queue.put(graph.run({"features": features})[0]["scores"])


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_makes_its_own_interpreters(load: Load) -> None:
    graph = load("mlcommons/kws_ref_model_float32", KEYWORD, threads=4)
    features = np.random.default_rng(3).random((8, 49, 10, 1), np.float32)
    expected = graph.run({"features": features})[0]["scores"]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_run_in_child, args=(graph, features, queue), daemon=True)
    child.start()
    try:
        assert np.array_equal(queue.get(timeout=30), expected)
    finally:
        child.kill()
        child.join()


def test_pickling_says_where_to_load_instead(mask: Graph) -> None:
    with pytest.raises(TypeError, match=r"a Graph cannot be pickled: it holds interpreters; load it where it is used"):
        pickle.dumps(mask)


def test_an_input_smaller_than_the_models_window_is_refused_before_the_interpreter_sees_it(load: Load) -> None:
    graph = load("silero/silero16k_fp32", SILERO, "serving_default")
    with pytest.raises(ModelError, match=r"input 'samples' must have the shape \[1, 576\], got \[1, 64\]"):
        graph.run({"samples": np.zeros((1, 64), np.float32)}, graph.initial_states(1))
    outputs, _ = graph.run({"samples": np.zeros((1, 576), np.float32)}, graph.initial_states(1))
    assert outputs["speech"].shape == (1, 1)


def test_no_rows_are_refused(mask: Graph) -> None:
    with pytest.raises(ModelError, match="graph 'mask' needs at least one row, got 0"):
        mask.run({"features": magnitudes(0)}, mask.initial_states(0))


def test_more_states_than_rows_are_refused(mask: Graph) -> None:
    with pytest.raises(ModelError, match=r"input 'h0_in' must have the shape \[3, 128\], got \[5, 128\]"):
        mask.run({"features": magnitudes(3)}, mask.initial_states(5))


def test_states_of_another_type_are_refused(mask: Graph) -> None:
    states = tuple(state.astype(np.int8) for state in mask.initial_states(1))
    with pytest.raises(ModelError, match=r"graph 'mask' cannot be computed: .*INT8"):
        mask.run({"features": magnitudes(1)}, states)


def test_float64_inputs_are_cast(mask: Graph) -> None:
    wide, _ = mask.run({"features": magnitudes(1).astype(np.float64)}, mask.initial_states(1))
    expected, _ = mask.run({"features": magnitudes(1)}, mask.initial_states(1))
    assert np.array_equal(wide["mask"], expected["mask"])


def test_input_shapes_are_told_with_open_dimensions(mask: Graph, load: Load) -> None:
    assert mask.input_shape("features") == (-1, 257)
    assert load("dtln/model_1", UNSIGNED).input_shape("features") == (1, 1, 257)


def test_a_closed_graph_makes_new_interpreters_when_it_is_used_again(mask: Graph) -> None:
    expected, _ = mask.run({"features": magnitudes(1)}, mask.initial_states(1))
    mask.close()
    assert np.array_equal(mask.run({"features": magnitudes(1)}, mask.initial_states(1))[0]["mask"], expected["mask"])


def test_the_route_chooses_the_variant(shared: Path) -> None:
    folder = shared / "data/models/dtln_batch"
    paths = {"float32": folder / "dtlnN_1_fp32.tflite", "int8": folder / "dtlnN_1_int8.tflite"}
    graph = Graph.load(paths, MASK, "step", RouteConfig(variants=("float16", "int8", "float32")))
    assert (graph.variant, graph.device, graph.reason) == ("int8", "cpu", "")
    assert graph.initial_states(1)[0].dtype == np.int8


def test_a_variant_that_the_model_lacks_is_refused(mask: Graph, shared: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape("none of ['float32'] is in the model's ['int8']")):
        Graph.load({"int8": shared / "data/models/dtln_batch/dtlnN_1_int8.tflite"}, MASK, "step")


def test_a_file_that_is_refused_is_refused_at_load(shared: Path) -> None:
    binding = GraphBinding("vad", {"features": "input_audio"}, {"speech": "dense"})
    with pytest.raises(ModelError, match=r"vad\.tflite: the model keeps state in variables inside"):
        Graph.load({"float32": shared / "data/models/microwakeword/vad.tflite"}, binding, "serving_default")


@pytest.mark.skipif(RUNTIME.name != "tflite-runtime", reason="ai-edge-litert knows FULLY_CONNECTED version 12")
def test_an_operator_newer_than_the_runtime_is_refused_at_load(load: Load) -> None:
    states = tuple(StatePair(f"{name}_in", f"{name}_out") for name in ("conv1", "conv2", "conv3", "gru"))
    binding = GraphBinding("encoder", {"features": "features"}, {"logits": "logits"}, states)
    with pytest.raises(ModelError, match=r"FCv12\.tflite: an operator is newer than tflite-runtime 2\.14\.0 knows"):
        load("negative/asr_step_dyn_tf221_FCv12", binding, "step")
