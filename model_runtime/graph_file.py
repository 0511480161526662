"""What a .tflite file says about itself, read without an interpreter.

tflite-runtime 2.14 does not verify files: a truncated one kills the process or runs on bytes beyond its end. So the
file's tables are walked here first, every offset and length checked against the file's size. Layout: the flatbuffer
schema of TFLite, version 3 (tensorflow/lite/schema/schema.fbs); the numbers below are its field numbers.
"""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from model_runtime.errors import ModelError

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


class _DamagedError(Exception):
    """An offset or length in the file does not fit its size."""


class _Table:
    """A flatbuffer table: fields by number, all reads within the file."""

    def __init__(self, data: mmap.mmap, position: int) -> None:
        self._data = data
        self._position = position
        vtable = position - self._unpack("<i", position)
        vtable_bytes, table_bytes = self._unpack("<H", vtable), self._unpack("<H", vtable + 2)
        if vtable_bytes < 4 or table_bytes < 4:
            raise _DamagedError(f"no table at byte {position}")
        self._within(vtable, vtable_bytes)
        self._within(position, table_bytes)
        self._vtable = struct.unpack_from(f"<{vtable_bytes // 2 - 2}H", data, vtable + 4)

    def _within(self, start: int, length: int) -> None:
        if start < 0 or length < 0 or start + length > len(self._data):
            raise _DamagedError(f"bytes {start} to {start + length} are needed, the file ends at {len(self._data)}")

    def _unpack(self, code: str, start: int) -> int:
        self._within(start, struct.calcsize(code))
        return int(struct.unpack_from(code, self._data, start)[0])

    def _field(self, number: int) -> int:
        """Gives the position of a field, 0 when it is absent."""
        offset = self._vtable[number] if number < len(self._vtable) else 0
        return self._position + offset if offset else 0

    def number(self, number: int, code: str, default: int = 0) -> int:
        """Gives a scalar field."""
        start = self._field(number)
        return self._unpack(f"<{code}", start) if start else default

    def vector(self, number: int, code: str) -> tuple[int | float, ...]:
        """Gives a vector of scalars; code "x" checks that it lies within the file and gives nothing."""
        field = self._field(number)
        if not field:
            return ()
        start = field + self._unpack("<I", field)
        count = self._unpack("<I", start)
        self._within(start + 4, count * struct.calcsize(f"<{code}"))
        return struct.unpack_from(f"<{count}{code}", self._data, start + 4)

    def integers(self, number: int, code: str = "i") -> tuple[int, ...]:
        """Gives a vector of integers."""
        return tuple(int(value) for value in self.vector(number, code))

    def text(self, number: int) -> str:
        """Gives a string field, "" when absent."""
        return bytes(self.integers(number, "B")).decode("utf-8", "replace")

    def table(self, number: int) -> "_Table | None":
        """Gives a table field."""
        field = self._field(number)
        return _Table(self._data, field + self._unpack("<I", field)) if field else None

    def tables(self, number: int) -> Iterator["_Table"]:
        """Gives the tables of a vector of tables."""
        field = self._field(number)
        if not field:
            return
        start = field + self._unpack("<I", field)
        count = self._unpack("<I", start)
        self._within(start + 4, count * 4)
        for item in range(start + 4, start + 4 + 4 * count, 4):
            yield _Table(self._data, item + self._unpack("<I", item))


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
            return _read_model(path, _Table(data, int.from_bytes(data[:4], "little")))
    except _DamagedError as error:
        raise ModelError(f"{path}: the file is damaged or truncated ({size} bytes): {error}") from error
    except OSError as error:
        raise ModelError(f"{path}: the file cannot be read: {error.strerror or error}") from error


def _what_it_is(start: bytes) -> str:
    if start.startswith(b"version https://git-lfs"):
        return "this is a Git LFS pointer, fetch the file itself with git lfs pull"
    if start.lstrip()[:1] == b"<":
        return "this looks like an HTML or XML page, not the download itself"
    return f"it begins with {start[:8]!r} and lacks the identifier 'TFL3'"


def _read_model(path: Path, model: _Table) -> GraphFile:
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
            raise _DamagedError(f"a signature names subgraph {signature.subgraph} of {len(subgraphs)}")
        _check_indexes([*signature.inputs.values(), *signature.outputs.values()], len(tensors_of[signature.subgraph]))
    inputs, outputs = subgraphs[0].integers(1), subgraphs[0].integers(2)
    _check_indexes([*inputs, *outputs], len(tensors_of[0]))
    return GraphFile(path, operators, frozenset(types), has_variables, tensors_of[0], inputs, outputs, signatures)


def _check_buffers(model: _Table) -> None:
    model.text(3)
    for buffer in model.tables(4):
        buffer.vector(0, "x")
        # Files above 2 GB keep the data behind the flatbuffer: position and size instead of a vector.
        start, size = buffer.number(1, "Q"), buffer.number(2, "Q")
        if start > 1:
            model._within(start, size)
    for metadata in model.tables(6):
        metadata.text(0)


def _read_operator_code(code: _Table) -> OperatorCode:
    # Numbers above 127 did not fit the first field; a reader takes the larger of the two.
    builtin = max(code.number(0, "b"), code.number(3, "i"))
    return OperatorCode(builtin, code.text(1) if builtin == _CUSTOM_CODE else "", code.number(2, "i", 1))


def _read_tensor(index: int, table: _Table) -> TensorInfo:
    number = table.number(1, "b")
    kind = _TENSOR_TYPES[number] if 0 <= number < len(_TENSOR_TYPES) else f"type {number}"
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    quantization = table.table(4)
    if quantization is not None:
        scales = quantization.vector(2, "f")
        zero_points = quantization.integers(3, "q")
    shape = table.integers(7) or table.integers(0)
    return TensorInfo(index, table.text(3), shape, kind, scales, zero_points)


def _check_operators(subgraph: _Table, codes: int, tensors: int) -> None:
    for operator in subgraph.tables(3):
        if operator.number(0, "I") >= codes:
            raise _DamagedError(f"an operator names code {operator.number(0, 'I')} of {codes}")
        # -1 stands for an optional input that is left out.
        used = [index for field in (1, 2, 8) for index in operator.integers(field) if index != -1]
        _check_indexes(used, tensors)
        operator.table(4)
        operator.vector(5, "x")
        operator.table(12)


def _check_indexes(indexes: list[int], tensors: int) -> None:
    if indexes and not 0 <= min(indexes) <= max(indexes) < tensors:
        raise _DamagedError(f"tensor {max(indexes)} is named, there are {tensors}")


def _read_signature(table: _Table) -> Signature:
    names = [{item.text(0): item.number(1, "I") for item in table.tables(field)} for field in (0, 1)]
    return Signature(table.number(4, "I"), names[0], names[1])


def numpy_type(kind: str) -> np.dtype | None:
    """Gives the numpy dtype of a tensor type's name, None where numpy has none (string, resource, int4 ...)."""
    try:
        return np.dtype(kind) if kind not in ("string", "variant", "resource") else None
    except TypeError:
        return None
