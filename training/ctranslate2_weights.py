"""The named arrays of a CTranslate2 ``model.bin``, read without the ctranslate2 package.

Layout, little endian (binary version 6, ctranslate2/specs/model_spec.py): version u32, name of the specification,
its revision u32, number of arrays u32; per array its name, rank u8, that many sizes u32, type u8, bytes u32, the
bytes; number of aliases u32, per alias two names. A name is its length u16 with a final NUL, then the characters.
"""

import mmap
import struct
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]

_BFLOAT16 = 5
_TYPES = {0: "<f4", 1: "i1", 2: "<i2", 3: "<i4", 4: "<f2", _BFLOAT16: "<u2"}
_VERSIONS = range(4, 7)


class _Reader:
    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def number(self, kind: str) -> int:
        return int(struct.unpack("<" + kind, self.bytes(struct.calcsize("<" + kind)))[0])

    def text(self) -> str:
        return bytes(self.bytes(self.number("H"))[:-1]).decode()

    def bytes(self, size: int) -> memoryview:
        if size > self.left:
            raise ValueError(f"the file ends early: {size} bytes are wanted, {self.left} are left")
        start, self._position = self._position, self._position + size
        return self._data[start : self._position]


def _array(reader: _Reader) -> np.ndarray:
    shape = [reader.number("I") for _ in range(reader.number("B"))]
    kind = reader.number("B")
    data = reader.bytes(reader.number("I"))
    if kind not in _TYPES:
        raise ValueError(f"type of an array must be one of {sorted(_TYPES)}, got {kind}")
    array = np.frombuffer(data, _TYPES[kind]).reshape(shape)
    # bfloat16 is the upper half of a float32.
    return (array.astype("<u4") << 16).view("<f4") if kind == _BFLOAT16 else array


def _widened(name: str, stored: Arrays) -> np.ndarray:
    """The array as float32; integers of INT8 files are q = w * scale, with a scale per row or one for all."""
    array = stored[name]
    scale = stored.get(f"{name}_scale")
    if scale is not None and array.dtype in (np.int8, np.int16):
        per_row = scale.astype(np.float32).reshape(-1, *[1] * (array.ndim - 1)) if scale.ndim else scale
        return np.asarray(array.astype(np.float32) / per_row, np.float32)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def read_ctranslate2_weights(path: Path) -> Arrays:
    """All arrays by name, floats and quantised integers as float32; settings such as ``num_heads`` are scalars.

    Raises:
        ValueError: The file is damaged, or of a version that is not known.
    """
    with path.open("rb") as file:
        reader = _Reader(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    version = reader.number("I")
    if version not in _VERSIONS:
        raise ValueError(f"{path}: binary version must be 4..6, got {version}")
    reader.text()
    reader.number("I")
    stored = {}
    for _ in range(reader.number("I")):
        name = reader.text()
        stored[name] = _array(reader)
    for _ in range(reader.number("I")):
        alias = reader.text()
        stored[alias] = stored[reader.text()]
    if reader.left:
        raise ValueError(f"{path}: {reader.left} bytes follow the last array")
    return {name: _widened(name, stored) for name in stored}
