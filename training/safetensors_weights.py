"""The named arrays of .safetensors files: a u64 length, a JSON header of that length, then the arrays' bytes."""

import json
import mmap
from collections.abc import Iterable
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]

_TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def _read(path: Path) -> Arrays:
    with path.open("rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    start = 8 + int.from_bytes(data[:8], "little")
    if start > len(data):
        raise ValueError(f"{path}: the header should end at byte {start}, the file has {len(data)}")
    header = json.loads(bytes(data[8:start]))
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        kind = entry["dtype"]
        if kind not in _TYPES:
            raise ValueError(f"{path}: type of {name} must be one of {sorted(_TYPES)}, got {kind}")
        begin, end = (start + offset for offset in entry["data_offsets"])
        array = np.frombuffer(data[begin:end], _TYPES[kind]).reshape(entry["shape"])
        # bfloat16 is the upper half of a float32.
        arrays[name] = (array.astype("<u4") << 16).view("<f4") if kind == "BF16" else array.astype(np.float32)
    return arrays


def read_safetensors_weights(paths: Iterable[Path]) -> Arrays:
    """All arrays of the files of one model as float32, by name.

    Raises:
        ValueError: A file is damaged, or an array is of a type that is not known.
    """
    return {name: array for path in paths for name, array in _read(path).items()}
