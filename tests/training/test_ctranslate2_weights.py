"""A CTranslate2 file written byte by byte, read back."""

import struct
from pathlib import Path

import numpy as np
import pytest

from training.ctranslate2_weights import read_ctranslate2_weights

FLOAT32, INT8, INT32, FLOAT16, BFLOAT16 = 0, 1, 3, 4, 5


def text(value: str) -> bytes:
    return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"


def array(name: str, kind: int, values: np.ndarray) -> bytes:
    shape = struct.pack(f"<B{values.ndim}I", values.ndim, *values.shape)
    return text(name) + shape + struct.pack("<BI", kind, values.nbytes) + values.tobytes()


def binary(arrays: list[bytes], aliases: dict[str, str]) -> bytes:
    named = b"".join(text(alias) + text(name) for alias, name in aliases.items())
    head = struct.pack("<I", 6) + text("WhisperSpec") + struct.pack("<II", 3, len(arrays))
    return head + b"".join(arrays) + struct.pack("<I", len(aliases)) + named


ARRAYS = [
    array("single", FLOAT32, np.array([[1.5, -2]], "<f4")),
    array("half", FLOAT16, np.array([0.25, 3], "<f2")),
    array("brain", BFLOAT16, np.array([0x3F80, 0xC040], "<u2")),
    array("rows", INT8, np.array([[127, -127], [64, 0]], "i1")),
    array("rows_scale", FLOAT32, np.array([127, 32], "<f4")),
    array("heads", INT32, np.array(6, "<i4")),
]


def test_all_types_come_as_numbers_and_aliases_as_what_they_stand_for(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(binary(ARRAYS, {"tied": "half"}))
    weights = read_ctranslate2_weights(path)
    assert weights["single"].tolist() == [[1.5, -2]]
    assert weights["half"].tolist() == weights["tied"].tolist() == [0.25, 3]
    assert weights["brain"].tolist() == [1, -3]
    assert weights["rows"].tolist() == [[1, -1], [2, 0]]
    assert {weights[name].dtype for name in ("single", "half", "brain", "rows")} == {np.dtype(np.float32)}
    assert weights["heads"] == 6


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (binary(ARRAYS, {})[:-20], "ends early"),
        (binary(ARRAYS, {}) + b"more", "4 bytes follow"),
        (struct.pack("<I", 99), "binary version must be 4..6, got 99"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        read_ctranslate2_weights(path)
