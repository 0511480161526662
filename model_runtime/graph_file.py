"""What a .tflite file says about itself, read without an interpreter.

tflite-runtime 2.14 does not verify files: a truncated one kills the process or runs on bytes beyond its end. So the
file's tables are walked here first, every offset and length checked against the file's size. Layout: the flatbuffer
schema of TFLite, version 3 (tensorflow/lite/schema/schema.fbs); the numbers below are its field numbers.
"""

import mmap
from pathlib import Path
from typing import NamedTuple

import numpy as np

from model_runtime.errors import ModelError
from model_runtime.flatbuffer import DamagedError, Table

__all__ = ["GraphFile", "OperatorCode", "Signature", "TensorInfo", "numpy_type", "read_graph_file"]

_TENSOR_TYPES = (
    *("float32", "float16", "int32", "uint8", "int64", "string", "bool", "int16", "complex64", "int8", "float64"),
    *("complex128", "uint64", "resource", "variant", "uint32", "uint16", "int4", "bfloat16", "int2"),
)
_CUSTOM_CODE = 32


class TensorInfo(NamedTuple):
    """A tensor of the main subgraph; shape has -1 where the file leaves a dimension open."""

    tensor_index: int
    name: str
    shape: tuple[int, ...]
    type: str
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]


class OperatorCode(NamedTuple):
    """A kind of operator in the file: its builtin number and version, `custom` its name when it is not builtin."""

    builtin: int
    custom: str
    version: int


class Signature(NamedTuple):
    """A signature's names -> tensor index, and the subgraph that they belong to."""

    subgraph: int
    inputs: dict[str, int]
    outputs: dict[str, int]


class GraphFile(NamedTuple):
    """All that loading needs to know of a file. Inputs and outputs are those of the main subgraph, by index."""

    path: Path
    operators: tuple[OperatorCode, ...]
    types: frozenset[str]
    has_variables: bool
    tensors: tuple[TensorInfo, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    signatures: dict[str, Signature]


def read_graph_file(path: Path) -> GraphFile:
    """Gives what the file says about itself.

    Raises:
        ModelError: there is no such file, it is not a TFLite flatbuffer (the message says what it is), or a part of
            it is missing.
    """
    try:
        size = path.stat().st_size
        if size == 0:
            raise ModelError(f"{path}: the file is empty")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data[4:8] != b"TFL3":
                raise ModelError(f"{path}: not a TFLite model: {_what_it_is(data[:64])}")
            return _read_model(path, Table(data, int.from_bytes(data[:4], "little")))
    except DamagedError as error:
        raise ModelError(f"{path}: the file is damaged or truncated ({size} bytes): {error}") from error
    except OSError as error:
        raise ModelError(f"{path}: the file cannot be read: {error.strerror or error}") from error


def _what_it_is(start: bytes) -> str:
    if start.startswith(b"version https://git-lfs"):
        return "this is a Git LFS pointer, fetch the file itself with git lfs pull"
    if start.lstrip()[:1] == b"<":
        return "this looks like an HTML or XML page, not the download itself"
    return f"it begins with {start[:8]!r} and lacks the identifier 'TFL3'"


def _read_model(path: Path, model: Table) -> GraphFile:
    _check_buffers(model)
    operators = tuple(_read_operator_code(code) for code in model.tables(1))
    subgraphs = list(model.tables(2))
    if not subgraphs:
        raise ModelError(f"{path}: the model has no subgraph")
    types: set[str] = set()
    has_variables = False
    tensors_of: list[tuple[TensorInfo, ...]] = []
    for subgraph in subgraphs:
        tables = list(subgraph.tables(0))
        tensors_of.append(tuple(_read_tensor(index, table) for index, table in enumerate(tables)))
        types.update(tensor.type for tensor in tensors_of[-1])
        has_variables |= any(table.number(5, "B") for table in tables)
        _check_operators(subgraph, len(operators), len(tables))
    signatures = {signature.text(2): _read_signature(signature) for signature in model.tables(7)}
    for signature in signatures.values():
        if signature.subgraph >= len(subgraphs):
            raise DamagedError(f"a signature names subgraph {signature.subgraph} of {len(subgraphs)}")
        _check_indexes([*signature.inputs.values(), *signature.outputs.values()], len(tensors_of[signature.subgraph]))
    inputs, outputs = subgraphs[0].integers(1), subgraphs[0].integers(2)
    _check_indexes([*inputs, *outputs], len(tensors_of[0]))
    return GraphFile(path, operators, frozenset(types), has_variables, tensors_of[0], inputs, outputs, signatures)


def _check_buffers(model: Table) -> None:
    model.text(3)
    for buffer in model.tables(4):
        buffer.check_bytes(0)
        # Files above 2 GB keep the data behind the flatbuffer: position and size instead of a vector.
        start, size = buffer.number(1, "Q"), buffer.number(2, "Q")
        if start > 1:
            model.check_within(start, size)
    for metadata in model.tables(6):
        metadata.text(0)


def _read_operator_code(code: Table) -> OperatorCode:
    # Numbers above 127 did not fit the first field; a reader takes the larger of the two.
    builtin = max(code.number(0, "b"), code.number(3, "i"))
    return OperatorCode(builtin, code.text(1) if builtin == _CUSTOM_CODE else "", code.number(2, "i", 1))


def _read_tensor(index: int, table: Table) -> TensorInfo:
    number = table.number(1, "b")
    kind = _TENSOR_TYPES[number] if 0 <= number < len(_TENSOR_TYPES) else f"type {number}"
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    quantization = table.table(4)
    if quantization is not None:
        scales = quantization.floats(2)
        zero_points = quantization.integers(3, "q")
    shape = table.integers(7) or table.integers(0)
    return TensorInfo(index, table.text(3), shape, kind, scales, zero_points)


def _check_operators(subgraph: Table, codes: int, tensors: int) -> None:
    for operator in subgraph.tables(3):
        if operator.number(0, "I") >= codes:
            raise DamagedError(f"an operator names code {operator.number(0, 'I')} of {codes}")
        # -1 stands for an optional input that is left out.
        used = [index for field in (1, 2, 8) for index in operator.integers(field) if index != -1]
        _check_indexes(used, tensors)
        operator.table(4)
        operator.check_bytes(5)
        operator.table(12)


def _check_indexes(indexes: list[int], tensors: int) -> None:
    if indexes and not 0 <= min(indexes) <= max(indexes) < tensors:
        raise DamagedError(f"tensor {max(indexes)} is named, there are {tensors}")


def _read_signature(table: Table) -> Signature:
    names = [{item.text(0): item.number(1, "I") for item in table.tables(field)} for field in (0, 1)]
    return Signature(table.number(4, "I"), names[0], names[1])


def numpy_type(kind: str) -> np.dtype | None:
    """Gives the numpy dtype of a tensor type's name, None where numpy has none (string, resource, int4 ...)."""
    try:
        return np.dtype(kind) if kind not in ("string", "variant", "resource") else None
    except TypeError:
        return None
