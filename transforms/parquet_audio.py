"""The audio in one cell of a Parquet table, whatever Arrow type an exporter chose for it."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from model_runtime.audio import check_sample_rate
from model_runtime.errors import AudioError

RATE_NAMES = ("sampling_rate", "sample_rate", "sample_rate_hz")
_INT16_SCALE = np.float32(32768)


class AudioCell(NamedTuple):
    """Either the bytes of a file (data, rate 0), raw float32 samples (data and rate), or a path (data None)."""

    data: bytes | None
    path: str
    sample_rate_hz: int


def read_cell(cell: pa.Scalar, sample_rate_hz: int, max_bytes: int) -> AudioCell:
    """Gives the audio of a cell: struct<bytes, path> or struct<array, sampling_rate>, bytes, a path, or samples.

    Args:
        sample_rate_hz: rate of samples that do not bring their own; 0 when it is not known.
        max_bytes: a larger file or list of samples is refused before it is copied.

    Raises:
        AudioError: the cell is null or empty, or of a type that is no audio.
    """
    if not cell.is_valid:
        raise AudioError("the audio is null")
    if isinstance(cell, (pa.DictionaryScalar, pa.ExtensionScalar)):
        return read_cell(cell.value, sample_rate_hz, max_bytes)
    kind = cell.type
    if pa.types.is_struct(kind):
        return _read_struct(cell, sample_rate_hz, max_bytes)
    if _is_bytes(kind):
        return AudioCell(_file_bytes(cell, max_bytes), "", 0)
    if _is_text(kind):
        return AudioCell(None, _path(cell), 0)
    if _is_list(kind):
        return AudioCell(_samples(cell, max_bytes).tobytes(), "", _rate(sample_rate_hz))
    raise AudioError(
        f"the audio column has type {kind}; it must be bytes, a path, a list of samples or a struct of them"
    )


def _read_struct(cell: pa.StructScalar, sample_rate_hz: int, max_bytes: int) -> AudioCell:
    fields: dict[str, pa.Scalar] = {name: cell[name] for name in [field.name for field in cell.type]}
    path_cell = fields.get("path")
    path = path_cell.as_py() if path_cell is not None and path_cell.is_valid else ""
    present = {name: value for name, value in fields.items() if value.is_valid}
    if "bytes" in present:
        return AudioCell(_file_bytes(present["bytes"], max_bytes), path, 0)
    if "array" in present:
        own = next((present[name].as_py() for name in RATE_NAMES if name in present), sample_rate_hz)
        return AudioCell(_samples(present["array"], max_bytes).tobytes(), path, _rate(own))
    if path:
        return AudioCell(None, path, 0)
    raise AudioError(f"the audio has no value in any of {', '.join(fields)}")


def _file_bytes(cell: pa.Scalar, max_bytes: int) -> bytes:
    buffer = cell.as_buffer()
    if not buffer.size:
        raise AudioError("the audio is empty (0 bytes)")
    _check_size(buffer.size, max_bytes)
    return bytes(buffer.to_pybytes())


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise AudioError(f"the audio must have at most reading.max_row_bytes = {max_bytes} bytes, got {size}")


def _path(cell: pa.Scalar) -> str:
    path: str = cell.as_py()
    if not path:
        raise AudioError("the path of the audio is empty")
    return path


def _samples(cell: pa.Scalar, max_bytes: int) -> np.ndarray:
    """float32 little-endian [n]; integers of 16 bits are scaled by 1/32768, all else must be -1..1 already."""
    values: pa.Array = cell.values
    kind = values.type
    _check_size(4 * len(values), max_bytes)
    if values.null_count:
        index = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        raise AudioError(f"sample {index} of {len(values)} is null ({values.null_count} such samples)")
    if pa.types.is_int16(kind):
        return np.asarray(values.to_numpy(zero_copy_only=False) / _INT16_SCALE, dtype="<f4")
    if pa.types.is_floating(kind):
        # Beyond float32 becomes Inf, which the check of samples refuses with its index.
        with np.errstate(over="ignore"):
            return np.asarray(values.to_numpy(zero_copy_only=False), dtype="<f4")
    if pa.types.is_null(kind) and len(values) == 0:
        return np.zeros(0, "<f4")
    raise AudioError(f"samples must be int16 or floating point, got a list of {kind}")


def _rate(sample_rate_hz: Any) -> int:
    if not sample_rate_hz:
        raise AudioError(f"samples without a rate: no {' or '.join(RATE_NAMES)}, and reading.sample_rate_hz is not set")
    return check_sample_rate(sample_rate_hz)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
