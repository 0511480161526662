"""Our names of a graph's inputs, outputs and states bound to tensors of its file, checked once at load."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from model_runtime.errors import ModelError
from model_runtime.graph_file import GraphFile, TensorInfo, numpy_type
from model_runtime.quantization import Quantization

__all__ = ["BoundGraph", "GraphBinding", "Port", "StatePair", "bind_graph"]

_BUCKETS = (1, 2, 4, 8, 16, 32)
_QUANTIZED_TYPES = ("int8", "uint8", "int16", "uint16")


class StatePair(Struct, frozen=True, forbid_unknown_fields=True):
    """Memory between calls: what comes out of `output` goes into `input` at the next call; it starts as zeros."""

    input: str  # tensor name (signature key, or the tensor's own name in a file without signatures)
    output: str


class GraphBinding(Struct, frozen=True, forbid_unknown_fields=True):
    """How a card names the tensors of one graph: our name -> tensor name."""

    role: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    states: tuple[StatePair, ...] = ()


class Port(NamedTuple):
    """A bound tensor: its index in the interpreter, its shape ([n, ...], -1 where open) and how it holds numbers."""

    name: str
    tensor_index: int
    shape: tuple[int, ...]
    numbers: Quantization


class BoundGraph(NamedTuple):
    """The tensors of a file in our order; state_inputs and state_outputs go in pairs; batch_sizes are ascending."""

    path: Path
    batch_sizes: tuple[int, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    state_inputs: tuple[Port, ...]
    state_outputs: tuple[Port, ...]

    def check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Refuses shapes of inputs, then states, that the file does not allow or whose batches differ.

        The runtime itself would resize to anything, and some kernels then divide by zero (SIGFPE).

        Raises:
            ModelError: names the tensor, the expected and the actual shape.
        """
        ports = self.inputs + self.state_inputs
        if len(shapes) != len(ports):
            got = len(shapes) - len(self.inputs)
            raise ModelError(f"{self.path}: {len(self.state_inputs)} state arrays are needed, got {got}")
        for port, shape in zip(ports, shapes, strict=True):
            expected = (shapes[0][0], *port.shape[1:])
            if len(shape) != len(expected) or any(
                have < 1 or want not in (-1, have) for have, want in zip(shape, expected, strict=True)
            ):
                shown = ["any" if size == -1 else size for size in expected]
                raise ModelError(f"{self.path}: input {port.name!r} must have the shape {shown}, got {list(shape)}")


def bind_graph(
    file: GraphFile, binding: GraphBinding, signature: str | None, batch_sizes: Sequence[int] | None = None
) -> BoundGraph:
    """Gives the tensors that the binding names.

    Args:
        file: what the .tflite file says about itself.
        binding: our names; tensor names must be exactly those of the file.
        signature: the signature whose keys are meant, or None for the tensors' own names.
        batch_sizes: the sizes that a card promises, None for any, or the one that the file fixes.

    Raises:
        ModelError: a name is not there or used twice, an input is left unbound, a tensor's type cannot be used, the
            two tensors of a state do not fit, the file is fixed to another batch size.
    """
    inputs, outputs = _names(file, signature)
    bound = BoundGraph(
        file.path,
        _batch_sizes(file, list(inputs.values()), batch_sizes),
        tuple(_port(file, role, name, inputs, "input") for role, name in binding.inputs.items()),
        tuple(_port(file, role, name, outputs, "output") for role, name in binding.outputs.items()),
        tuple(_port(file, pair.input, pair.input, inputs, "state input") for pair in binding.states),
        tuple(_port(file, pair.output, pair.output, outputs, "state output") for pair in binding.states),
    )
    used = [port.tensor_index for port in bound.inputs + bound.state_inputs]
    if len(set(used)) != len(used):
        raise ModelError(f"{file.path}: an input is bound twice in graph {binding.role!r}: {binding.inputs}")
    unbound = [name for name, tensor in inputs.items() if tensor.tensor_index not in used]
    if unbound:
        raise ModelError(f"{file.path}: inputs {unbound} of the file are bound to nothing in graph {binding.role!r}")
    if not used or not bound.outputs:
        raise ModelError(f"{file.path}: graph {binding.role!r} must bind at least one input and one output")
    for source, target in zip(bound.state_outputs, bound.state_inputs, strict=True):
        _check_pair(file, source, target)
    return bound


def _names(file: GraphFile, signature: str | None) -> tuple[dict[str, TensorInfo], dict[str, TensorInfo]]:
    tensors = file.tensors
    if signature is None:
        return (
            {tensors[index].name: tensors[index] for index in file.inputs},
            {tensors[index].name: tensors[index] for index in file.outputs},
        )
    if signature not in file.signatures:
        raise ModelError(f"{file.path}: no signature {signature!r}; the file has {sorted(file.signatures)}")
    found = file.signatures[signature]
    if found.subgraph != 0:
        raise ModelError(
            f"{file.path}: signature {signature!r} is in subgraph {found.subgraph}, only the first one can be run: "
            "export one graph per file"
        )
    return (
        {name: tensors[index] for name, index in found.inputs.items()},
        {name: tensors[index] for name, index in found.outputs.items()},
    )


def _port(file: GraphFile, role: str, name: str, there: dict[str, TensorInfo], kind: str) -> Port:
    if name not in there:
        kinds = "inputs" if "input" in kind else "outputs"
        raise ModelError(f"{file.path}: no {kind} named {name!r}; the file's {kinds} are {list(there)}")
    tensor = there[name]
    dtype = numpy_type(tensor.type)
    if dtype is None:
        raise ModelError(f"{file.path}: {kind} {name!r} has type {tensor.type}, which cannot be used")
    if not tensor.shape:
        raise ModelError(f"{file.path}: {kind} {name!r} is a scalar; its first dimension must be the batch")
    if len(tensor.scales) > 1:
        raise ModelError(f"{file.path}: {kind} {name!r} has {len(tensor.scales)} scales, only one per tensor is known")
    scale = tensor.scales[0] if tensor.scales and tensor.type in _QUANTIZED_TYPES else 0.0
    zero_point = tensor.zero_points[0] if scale and tensor.zero_points else 0
    return Port(role, tensor.tensor_index, tensor.shape, Quantization(dtype, scale, zero_point))


def _check_pair(file: GraphFile, source: Port, target: Port) -> None:
    if source.shape != target.shape or source.numbers.dtype != target.numbers.dtype:
        raise ModelError(
            f"{file.path}: state {source.name!r} -> {target.name!r} does not fit: "
            f"{source.numbers.dtype}{list(source.shape)} -> {target.numbers.dtype}{list(target.shape)}"
        )
    if -1 in target.shape[1:]:
        raise ModelError(
            f"{file.path}: state {target.name!r} has the open shape {list(target.shape)}: "
            "all but its first dimension must be fixed"
        )


def _batch_sizes(file: GraphFile, inputs: list[TensorInfo], wanted: Sequence[int] | None) -> tuple[int, ...]:
    fixed = {tensor.shape[0] for tensor in inputs if tensor.shape} - {-1}
    if len(fixed) > 1:
        raise ModelError(f"{file.path}: its inputs are fixed to different batch sizes {sorted(fixed)}")
    if wanted is not None and (not wanted or min(wanted) < 1):
        raise ModelError(f"{file.path}: batch_sizes must be numbers from 1, got {list(wanted)}")
    if not fixed:
        return tuple(sorted(set(wanted))) if wanted else _BUCKETS
    if wanted and set(wanted) != fixed:
        raise ModelError(f"{file.path}: the file is fixed to batch size {fixed.pop()}, batch_sizes are {list(wanted)}")
    return tuple(fixed)
