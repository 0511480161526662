"""Graphs on a pretended NPU: what it computes, how it fails, and that the CPU goes on exactly where it stopped."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_runtime.card import PACKAGE_MODELS
from model_runtime.devices import DelegateConfig, DelegateError, DeviceReport, RouteConfig, probe
from model_runtime.errors import ModelError
from model_runtime.graph import Graph, GraphBinding, StatePair

pytestmark = pytest.mark.native

MASK = GraphBinding(
    "mask",
    {"features": "mag"},
    {"mask": "mask"},
    tuple(StatePair(f"{name}_in", name) for name in ("h0", "c0", "h1", "c1")),
)
ROWS = 3
FRAMES = np.abs(np.random.default_rng(0).standard_normal((12, ROWS, 257))).astype(np.float32)

Load = Callable[..., Graph]


@pytest.fixture
def load(shared: Path, delegate_library: Path) -> Load:
    """Loads the batched DTLN on "npu" (delegate options by `options`), or on the CPU alone."""
    folder = shared / "data/models/dtln_batch"
    paths = {name: folder / f"dtlnN_1_{file}.tflite" for name, file in (("float32", "fp32"), ("int8", "int8"))}
    paths["dynamic"] = folder / "dtlnN_1_dynpt.tflite"

    def load_graph(device: str = "npu", options: dict[str, str] | None = None, **route: Any) -> Graph:
        delegates = {"npu": DelegateConfig(str(delegate_library), options or {})}
        return Graph.load(paths, MASK, "step", RouteConfig((device,), delegates, **route))

    return load_graph


def run_all(graph: Graph, frames: np.ndarray = FRAMES) -> tuple[list[np.ndarray], list[str]]:
    """Gives the mask of every frame and the device after it."""
    states = graph.initial_states(frames.shape[1])
    masks, devices = [], []
    for frame in frames:
        outputs, states = graph.run({"features": frame}, states)
        masks.append(outputs["mask"])
        devices.append(graph.device)
    return masks, devices


def test_a_probe_finds_the_delegate(delegate_library: Path) -> None:
    reports = probe(RouteConfig(("npu",), {"npu": DelegateConfig(str(delegate_library))}))
    assert reports[1] == DeviceReport("npu", "", str(delegate_library))


def test_a_float_graph_on_the_delegate_agrees_with_the_cpu(load: Load) -> None:
    masks, devices = run_all(load())
    expected, _ = run_all(load("cpu"))
    assert set(devices) == {"npu"}
    assert np.abs(np.array(masks) - expected).max() < 1e-5
    assert not np.array_equal(masks, expected)


def test_an_int8_graph_on_the_delegate_begins_within_a_step_of_the_cpu(load: Load) -> None:
    graph = load(variants=("int8",))
    masks, _ = run_all(graph, FRAMES[:1])
    expected, _ = run_all(load("cpu", variants=("int8",)), FRAMES[:1])
    assert (graph.device, graph.variant) == ("npu", "int8")
    assert np.abs(np.array(masks) - expected).max() <= 1 / 256


@pytest.mark.parametrize("rows", [1, 8, 37])
def test_every_batch_size_runs_on_the_delegate(load: Load, rows: int) -> None:
    graph = load()
    frames = np.abs(np.random.default_rng(1).standard_normal((2, rows, 257))).astype(np.float32)
    masks, devices = run_all(graph, frames)
    alone, _ = run_all(graph, frames[:, -1:])
    assert devices == ["npu", "npu"]
    assert np.abs(np.array(masks)[:, -1:] - alone).max() < 1e-5


def test_threads_share_a_graph_on_the_delegate(load: Load) -> None:
    graph = load()
    alone, _ = run_all(graph)
    with ThreadPoolExecutor(2) as pool:
        for masks, _ in pool.map(lambda _: run_all(graph), range(8)):
            assert np.array_equal(masks, alone)


@pytest.mark.parametrize("variant", ["float32", "int8"])
@pytest.mark.parametrize("calls", [0, 1, 10, 17])
def test_after_its_death_the_cpu_goes_on_exactly_where_it_stopped(load: Load, variant: str, calls: int) -> None:
    graph = load(options={"die_after": str(calls)}, variants=(variant,))
    masks, devices = run_all(graph)
    healthy, cpu = load(variants=(variant,)), load("cpu", variants=(variant,))
    states = healthy.initial_states(ROWS)
    for frame, mask, device in zip(FRAMES, masks, devices, strict=True):
        outputs, states = (healthy if device == "npu" else cpu).run({"features": frame}, states)
        assert np.array_equal(mask, outputs["mask"])
    assert devices == sorted(devices, reverse=True) and devices[-1] == "cpu"
    assert (graph.reason, graph.variant) == ("delegate_died", variant)


def test_a_death_in_a_later_part_of_a_large_batch_is_made_good_as_well(load: Load) -> None:
    frames = np.abs(np.random.default_rng(2).standard_normal((1, 70, 257))).astype(np.float32)
    graph = load(options={"die_after": "1"})
    masks, devices = run_all(graph, frames)
    expected, _ = run_all(load("cpu"), frames)
    assert devices == ["cpu"]
    assert np.array_equal(masks, expected)


def test_a_death_is_warned_of_once(load: Load, caplog: pytest.LogCaptureFixture) -> None:
    graph = load(options={"die_after": "5"})
    with caplog.at_level(logging.WARNING, "model_runtime"):
        run_all(graph)
    assert len(caplog.records) == 1
    assert "goes on on the CPU: device 'npu': delegate_died: test delegate: told to die" in caplog.text


def test_threads_that_meet_a_death_at_once_all_get_answers(load: Load, caplog: pytest.LogCaptureFixture) -> None:
    expected, _ = run_all(load("cpu"))
    graph = load(options={"die_after": "0"})
    with caplog.at_level(logging.WARNING, "model_runtime"), ThreadPoolExecutor(4) as pool:
        for masks, _ in pool.map(lambda _: run_all(graph), range(8)):
            assert np.array_equal(masks, expected)
    assert len(caplog.records) == 1


def test_a_refusing_route_raises_at_the_death_and_names_the_reason(load: Load) -> None:
    graph = load(options={"die_after": "5"}, on_failure="refuse")
    with pytest.raises(DelegateError) as caught:
        run_all(graph)
    assert (caught.value.reason, caught.value.retriable, graph.device) == ("delegate_died", True, "npu")


def test_after_a_refused_death_the_same_call_can_be_made_again(load: Load) -> None:
    graph, healthy = load(options={"die_after": "3"}, on_failure="refuse"), load()
    features = {"features": FRAMES[0]}
    graph.run(features, graph.initial_states(ROWS))
    with pytest.raises(DelegateError):
        graph.run(features, graph.initial_states(ROWS))
    again, _ = graph.run(features, graph.initial_states(ROWS))
    assert graph.device == "npu"
    assert np.array_equal(again["mask"], healthy.run(features, healthy.initial_states(ROWS))[0]["mask"])


def test_wrong_input_is_no_death(load: Load) -> None:
    graph = load()
    with pytest.raises(ModelError, match=r"input 'features' must have the shape \[3, 257\], got \[3, 9\]"):
        graph.run({"features": FRAMES[0][:, :9]}, graph.initial_states(ROWS))
    assert (graph.device, graph.reason) == ("npu", "")


@pytest.mark.parametrize(
    ("options", "reason", "words"),
    [
        ({"fail_prepare": "1"}, "delegate_prepare_failed", "told to fail at prepare"),
        ({"bogus": "1"}, "delegate_bad_option", "unknown option"),
    ],
)
def test_a_delegate_that_fails_at_load_leaves_the_graph_to_the_cpu(
    load: Load, caplog: pytest.LogCaptureFixture, options: dict[str, str], reason: str, words: str
) -> None:
    graph = load(options=options)
    masks, devices = run_all(graph)
    assert (graph.reason, set(devices)) == (reason, {"cpu"})
    assert np.array_equal(masks, run_all(load("cpu"))[0])
    assert [words in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize(
    ("options", "reason"), [({"fail_prepare": "1"}, "delegate_prepare_failed"), ({"bogus": "1"}, "delegate_bad_option")]
)
def test_a_refusing_route_raises_at_load(load: Load, options: dict[str, str], reason: str) -> None:
    with pytest.raises(DelegateError) as caught:
        load(options=options, on_failure="refuse")
    assert (caught.value.device, caught.value.reason) == ("npu", reason)


@pytest.mark.parametrize("on_failure", ["fallback", "refuse"])
def test_a_delegate_that_takes_nothing_is_told_from_one_that_works(load: Load, on_failure: str) -> None:
    graph = load(variants=("dynamic",), on_failure=on_failure)
    assert (graph.device, graph.reason, graph.variant) == ("cpu", "delegate_took_nothing", "dynamic")
    assert np.array_equal(run_all(graph)[0], run_all(load("cpu", variants=("dynamic",)))[0])


def test_a_failure_at_load_lets_the_cpu_take_its_own_variant(load: Load) -> None:
    own = {"npu": ("int8",)}
    assert load(variants_by_device=own).variant == "int8"
    failed = load(options={"fail_prepare": "1"}, variants_by_device=own)
    assert (failed.variant, failed.device, failed.reason) == ("float32", "cpu", "delegate_prepare_failed")


def test_a_death_keeps_the_variant_to_which_the_states_belong(load: Load) -> None:
    graph = load(options={"die_after": "5"}, variants_by_device={"npu": ("int8",)})
    run_all(graph)
    assert (graph.variant, graph.device) == ("int8", "cpu")


def test_a_missing_library_leaves_the_graph_to_the_next_device_with_the_first_reason(
    shared: Path, delegate_library: Path
) -> None:
    delegates = {"gone": DelegateConfig("/none/libgone.so"), "npu": DelegateConfig(str(delegate_library))}
    path = shared / "data/models/dtln_batch/dtlnN_1_fp32.tflite"
    graph = Graph.load({"float32": path}, MASK, "step", RouteConfig(("gone", "npu", "cpu"), delegates))
    assert (graph.device, graph.reason) == ("npu", "delegate_missing")


@pytest.fixture
def encoder(delegate_library: Path) -> Callable[..., Graph]:
    """Loads the packaged recogniser's encoder, whose rows and frames are open, on "npu"."""
    path = PACKAGE_MODELS / "unison-asr-batch/encoder_float32.tflite"
    binding = GraphBinding("encoder", {"features": "features"}, {"log_probs": "log_probs"})

    def load_encoder(device: str = "npu", **options: str) -> Graph:
        route = RouteConfig((device,), {"npu": DelegateConfig(str(delegate_library), options)})
        return Graph.load({"float32": path}, binding, "step", route)

    return load_encoder


@pytest.mark.parametrize("dynamic", ["0", "1"])
def test_the_packaged_recogniser_runs_on_a_delegate_also_of_fixed_sizes(
    encoder: Callable[..., Graph], dynamic: str
) -> None:
    graph, cpu = encoder(dynamic=dynamic), encoder("cpu")
    for frames in (100, 52):
        features = {"features": np.random.default_rng(5).standard_normal((3, frames, 40)).astype(np.float32)}
        found, expected = graph.run(features)[0]["log_probs"], cpu.run(features)[0]["log_probs"]
        assert found.shape == (3, frames // 4, expected.shape[2]) and graph.device == "npu"
        assert np.abs(found - expected).max() < 1e-3


def test_a_graph_of_open_shapes_whose_delegate_fails_goes_to_the_cpu_at_the_first_call(
    encoder: Callable[..., Graph],
) -> None:
    graph, cpu = encoder(fail_prepare="1"), encoder("cpu")
    features = {"features": np.random.default_rng(5).standard_normal((1, 100, 40)).astype(np.float32)}
    assert np.array_equal(graph.run(features)[0]["log_probs"], cpu.run(features)[0]["log_probs"])
    assert (graph.device, graph.reason) == ("cpu", "delegate_prepare_failed")
