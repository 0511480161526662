"""TFLiteModelHandlerNumpy: one graph of a card behind RunInference, against the graph itself."""

from collections.abc import Callable
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.ml.inference.base import RunInference
from apache_beam.testing.util import assert_that

from model_runtime import ConfigError, ModelError, RouteConfig
from model_runtime.card import load_card
from model_runtime.graph import Graph
from transforms.tflite_model_handler_numpy import TFLiteModelHandlerNumpy


@pytest.fixture
def vad() -> Graph:
    card = load_card("unison-vad")
    (binding,) = card.graphs
    return Graph.load(card.paths(binding.role), binding, card.signature)


@pytest.fixture
def blocks(vad: Graph) -> np.ndarray:
    """Three blocks of noise: float32 [3, block]."""
    return np.random.default_rng(3).uniform(-1, 1, (3, *vad.input_shape("samples")[1:])).astype(np.float32)


def test_rows_are_those_of_the_graph(vad: Graph, blocks: np.ndarray) -> None:
    outputs, _ = vad.run({"samples": blocks}, vad.initial_states(3))

    def check(found: list[Any]) -> None:
        assert [prediction.model_id for prediction in found] == ["unison-vad:1:float32"] * 3
        for prediction in found:
            (place,) = np.flatnonzero((blocks == prediction.example).all(axis=1))
            np.testing.assert_array_equal(prediction.inference["speech"], outputs["speech"][place])

    with beam.Pipeline() as pipeline:
        found = pipeline | beam.Create(list(blocks)) | RunInference(TFLiteModelHandlerNumpy("unison-vad"))
        assert_that(found, check)


def test_states_go_on_where_the_last_example_has_left_them(vad: Graph, blocks: np.ndarray) -> None:
    model = TFLiteModelHandlerNumpy("unison-vad").load_model()
    outputs: dict[str, np.ndarray] = {}
    expected, states = {}, vad.initial_states(1)
    for block in blocks:
        memory = {name: array for name, array in outputs.items() if name != "speech"}
        (outputs,) = model.run([{"samples": block, **memory}])
        expected, states = vad.run({"samples": block[None]}, states)
    np.testing.assert_array_equal(outputs["speech"], expected["speech"][0])
    (fresh,) = model.run([blocks[2]])
    assert not np.array_equal(fresh["speech"], outputs["speech"])


def test_rows_of_different_lengths_can_share_a_batch() -> None:
    model = TFLiteModelHandlerNumpy("unison-asr-batch", "features").load_model()
    clips = [np.random.default_rng(n).uniform(-1, 1, n).astype(np.float32) for n in (8240, 16_240, 8241)]
    together, alone = model.run(clips), [model.run([clip])[0] for clip in clips]
    for mine, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(mine["features"], other["features"])


@pytest.mark.parametrize("variant", ["float32", "int8"])
def test_arrays_are_float_whatever_the_graph_is(variant: str) -> None:
    route = RouteConfig(variants=(variant,))
    model = TFLiteModelHandlerNumpy("unison-denoise", route=route).load_model()
    card = load_card("unison-denoise")
    graph = Graph.load(card.paths("mask"), card.graphs[0], card.signature, route)
    (outputs,) = model.run([np.zeros(graph.input_shape("features")[1:], np.float32)])
    assert outputs["mask"].dtype == np.float32


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (lambda block: {"sample": block}, r"must have \['samples'\] .* got \['sample'\]"),
        (lambda block: block[:-1], "input 'samples' must have the shape"),
    ],
)
def test_an_example_that_does_not_fit_is_refused(
    blocks: np.ndarray, example: Callable[[np.ndarray], Any], message: str
) -> None:
    model = TFLiteModelHandlerNumpy("unison-vad").load_model()
    with pytest.raises(ModelError, match=message):
        model.run([example(blocks[0])])


def test_a_card_of_several_graphs_needs_one_named() -> None:
    for graph in (None, "mask"):
        with pytest.raises(ConfigError, match=r"graph must be one of \['features', 'encoder'\], got"):
            TFLiteModelHandlerNumpy("unison-asr-batch", graph).load_model()


def test_bytes_are_those_of_all_arrays(blocks: np.ndarray) -> None:
    handler = TFLiteModelHandlerNumpy("unison-vad")
    assert handler.get_num_bytes([blocks[0], {"samples": blocks[1], "h": np.zeros(2, np.float32)}]) == (
        2 * blocks[0].nbytes + 8
    )
