"""Our names bound to a file's tensors."""

from pathlib import Path

import pytest

from model_runtime.errors import ModelError
from model_runtime.graph_binding import BoundGraph, GraphBinding, StatePair, bind_graph
from model_runtime.graph_file import GraphFile, TensorInfo, read_graph_file

STATES = tuple(StatePair(f"{name}_in", name) for name in ("h0", "c0", "h1", "c1"))
MASK = GraphBinding("mask", {"features": "mag"}, {"mask": "mask"}, STATES)


@pytest.fixture
def dtln(shared: Path) -> GraphFile:
    return read_graph_file(shared / "data/models/dtln_batch/dtlnN_1_int8.tflite")


@pytest.fixture
def unsigned(shared: Path) -> GraphFile:
    return read_graph_file(shared / "data/models/dtln/model_1.tflite")


def refused(file: GraphFile, binding: GraphBinding, signature: str | None = "step") -> str:
    with pytest.raises(ModelError) as caught:
        bind_graph(file, binding, signature)
    return str(caught.value).removeprefix(f"{file.path}: ")


def test_signature_keys_lead_to_tensors_whatever_their_order(dtln: GraphFile) -> None:
    bound = bind_graph(dtln, MASK, "step")
    assert [(port.name, port.tensor_index) for port in bound.inputs + bound.outputs] == [("features", 3), ("mask", 49)]
    assert [port.tensor_index for port in bound.state_inputs] == [4, 2, 1, 0]
    assert [port.tensor_index for port in bound.state_outputs] == [31, 29, 47, 45]


def test_scale_and_zero_point_come_from_the_file(dtln: GraphFile) -> None:
    numbers = bind_graph(dtln, MASK, "step").inputs[0].numbers
    assert (numbers.dtype, numbers.scale, numbers.zero_point) == ("int8", 0.45830702781677246, -128)


def test_tensor_names_are_used_where_no_signature_is_given(unsigned: GraphFile) -> None:
    binding = GraphBinding("mask", {"m": "input_2"}, {"mask": "Identity"}, (StatePair("input_3", "Identity_1"),))
    bound = bind_graph(unsigned, binding, None)
    assert (bound.inputs[0].shape, bound.state_inputs[0].shape) == ((1, 1, 257), (1, 2, 128, 2))


def test_an_input_that_is_not_there_is_refused_with_the_list(dtln: GraphFile) -> None:
    binding = GraphBinding("mask", {"features": "step_mag:0"}, {"mask": "mask"}, STATES)
    message = refused(dtln, binding)
    assert message.startswith("no input named 'step_mag:0'; the file's inputs are ['")
    assert "'mag'" in message and "'c1_in'" in message


def test_an_output_that_is_not_there_is_refused_with_the_list(unsigned: GraphFile) -> None:
    binding = GraphBinding("mask", {"m": "input_2"}, {"mask": "mask"})
    assert refused(unsigned, binding, None) == (
        "no output named 'mask'; the file's outputs are ['Identity', 'Identity_1']"
    )


def test_a_signature_that_is_not_there_is_refused_with_the_list(dtln: GraphFile) -> None:
    assert refused(dtln, MASK, "serve") == "no signature 'serve'; the file has ['step']"


def test_a_signature_of_another_subgraph_is_refused(dtln: GraphFile) -> None:
    elsewhere = dtln._replace(signatures={"step": dtln.signatures["step"]._replace(subgraph=1)})
    assert refused(elsewhere, MASK).endswith("only the first one can be run: export one graph per file")


def test_an_unbound_input_is_refused(dtln: GraphFile) -> None:
    binding = GraphBinding("mask", {"features": "mag"}, {"mask": "mask"}, STATES[:3])
    assert refused(dtln, binding) == "inputs ['c1_in'] of the file are bound to nothing in graph 'mask'"


def test_an_input_bound_twice_is_refused(dtln: GraphFile) -> None:
    binding = GraphBinding("mask", {"features": "mag", "again": "mag"}, {"mask": "mask"}, STATES)
    assert refused(dtln, binding).startswith("an input is bound twice in graph 'mask'")


def test_a_state_pair_of_different_shapes_is_refused(dtln: GraphFile) -> None:
    binding = GraphBinding("mask", {"features": "mag"}, {"h": "h0"}, (StatePair("h0_in", "mask"), *STATES[1:]))
    assert refused(dtln, binding) == "state 'mask' -> 'h0_in' does not fit: int8[-1, 257] -> int8[-1, 128]"


def _with_input(file: GraphFile, index: int, **changes: object) -> GraphFile:
    tensors: list[TensorInfo] = list(file.tensors)
    tensors[index] = tensors[index]._replace(**changes)
    return file._replace(tensors=tuple(tensors))


def test_a_scale_per_channel_is_refused(dtln: GraphFile) -> None:
    file = _with_input(dtln, 3, scales=(1.0, 2.0))
    assert refused(file, MASK) == "input 'mag' has 2 scales, only one per tensor is known"


def test_a_type_that_numpy_lacks_is_refused(dtln: GraphFile) -> None:
    assert refused(_with_input(dtln, 3, type="string"), MASK) == "input 'mag' has type string, which cannot be used"


def test_a_scalar_is_refused(dtln: GraphFile) -> None:
    file = _with_input(dtln, 3, shape=())
    assert refused(file, MASK) == "input 'mag' is a scalar; its first dimension must be the batch"


def test_a_state_of_open_shape_is_refused(dtln: GraphFile) -> None:
    file = _with_input(_with_input(dtln, 4, shape=(-1, -1)), 31, shape=(-1, -1))
    assert "state 'h0_in' has the open shape [-1, -1]" in refused(file, MASK)


@pytest.mark.parametrize(("wanted", "sizes"), [(None, (1, 2, 4, 8, 16, 32)), ((4, 1, 4), (1, 4))])
def test_an_open_batch_takes_the_sizes_that_the_card_names(
    dtln: GraphFile, wanted: tuple[int, ...] | None, sizes: tuple[int, ...]
) -> None:
    assert bind_graph(dtln, MASK, "step", wanted).batch_sizes == sizes


def test_a_batch_size_that_the_file_does_not_have_is_refused(unsigned: GraphFile) -> None:
    binding = GraphBinding("mask", {"m": "input_2"}, {"mask": "Identity"}, (StatePair("input_3", "Identity_1"),))
    assert bind_graph(unsigned, binding, None).batch_sizes == (1,)
    with pytest.raises(ModelError, match=r"fixed to batch size 1, batch_sizes are \[1, 4\]"):
        bind_graph(unsigned, binding, None, (1, 4))


@pytest.fixture
def bound(dtln: GraphFile) -> BoundGraph:
    return bind_graph(dtln, MASK, "step")


def test_shapes_that_fit_are_accepted(bound: BoundGraph) -> None:
    bound.check_shapes([(3, 257), (3, 128), (3, 128), (3, 128), (3, 128)])


def test_a_fixed_dimension_is_checked(bound: BoundGraph) -> None:
    with pytest.raises(ModelError, match=r"input 'features' must have the shape \[3, 257\], got \[3, 200\]"):
        bound.check_shapes([(3, 200), (3, 128), (3, 128), (3, 128), (3, 128)])


def test_states_of_another_batch_are_refused(bound: BoundGraph) -> None:
    with pytest.raises(ModelError, match=r"input 'h1_in' must have the shape \[3, 128\], got \[2, 128\]"):
        bound.check_shapes([(3, 257), (3, 128), (3, 128), (2, 128), (3, 128)])


def test_a_missing_state_is_refused(bound: BoundGraph) -> None:
    with pytest.raises(ModelError, match="4 state arrays are needed, got 1"):
        bound.check_shapes([(3, 257), (3, 128)])
