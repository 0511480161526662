"""The named arrays of an ONNX file, read from its protocol buffer without the onnx package."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

# Field numbers of onnx.proto: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
_MODEL_GRAPH = 7
_GRAPH_INITIALIZER = 5
_TENSOR_DIMS, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_RAW = 1, 2, 8, 9
_FLOAT = 1


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of one message."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        match key & 7:
            case 0:
                value, position = _varint(data, position)
                yield key >> 3, value
                continue
            case 1:
                size = 8
            case 5:
                size = 4
            case _:
                size, position = _varint(data, position)
        yield key >> 3, data[position : position + size]
        position += size


def _tensor(data: bytes) -> tuple[str, np.ndarray | None]:
    dims: list[int] = []
    name, raw, kind = "", b"", 0
    for number, value in _fields(data):
        if number == _TENSOR_DIMS and isinstance(value, int):
            dims.append(value)
        elif number == _TENSOR_TYPE and isinstance(value, int):
            kind = value
        elif number == _TENSOR_NAME and isinstance(value, bytes):
            name = value.decode()
        elif number == _TENSOR_RAW and isinstance(value, bytes):
            raw = value
    if kind != _FLOAT or not raw:
        return name, None
    return name, np.frombuffer(raw, np.float32).reshape(dims)


def read_onnx_weights(path: Path) -> dict[str, np.ndarray]:
    """The float32 initialisers of the main graph by name."""
    arrays = {}
    for number, graph in _fields(path.read_bytes()):
        if number != _MODEL_GRAPH or not isinstance(graph, bytes):
            continue
        for part, value in _fields(graph):
            if part == _GRAPH_INITIALIZER and isinstance(value, bytes):
                name, array = _tensor(value)
                if array is not None:
                    arrays[name] = array
    return arrays
