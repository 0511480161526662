"""The audio of one Parquet cell under every Arrow type."""

import numpy as np
import pyarrow as pa
import pytest

from model_runtime.errors import AudioError
from transforms.parquet_audio import AudioCell, read_cell

HUGGING_FACE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
WITH_RATE = pa.struct([("array", pa.list_(pa.float64())), ("sampling_rate", pa.int64()), ("path", pa.string())])


def _cell(value: object, kind: pa.DataType, rate_hz: int = 16000, max_bytes: int = 1000) -> AudioCell:
    return read_cell(pa.array([value], kind)[0], rate_hz, max_bytes)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(4), pa.dictionary(pa.int32(), pa.binary())])
def test_bytes_are_a_file(kind: pa.DataType) -> None:
    assert _cell(b"RIFF", kind) == AudioCell(b"RIFF", "", 0)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_text_is_a_path(kind: pa.DataType) -> None:
    assert _cell("a/b.wav", kind) == AudioCell(None, "a/b.wav", 0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"bytes": b"RIFF", "path": "a.wav"}, AudioCell(b"RIFF", "a.wav", 0)),
        ({"bytes": b"RIFF", "path": None}, AudioCell(b"RIFF", "", 0)),
        ({"bytes": None, "path": "a.wav"}, AudioCell(None, "a.wav", 0)),
    ],
)
def test_struct_gives_its_bytes_before_its_path(value: object, expected: AudioCell) -> None:
    assert _cell(value, HUGGING_FACE) == expected


def test_order_of_the_fields_does_not_matter() -> None:
    kind = pa.struct([("path", pa.large_string()), ("bytes", pa.large_binary())])
    assert _cell({"bytes": b"RIFF", "path": "a.wav"}, kind) == AudioCell(b"RIFF", "a.wav", 0)


def test_array_of_a_struct_has_its_own_rate() -> None:
    cell = _cell({"array": [0.5, -0.25], "sampling_rate": 48000, "path": None}, WITH_RATE)
    assert (np.frombuffer(cell.data or b"", "<f4").tolist(), cell.sample_rate_hz) == ([0.5, -0.25], 48000)


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float64(), 2), pa.list_(pa.float16())],
)
def test_floating_point_lists_are_samples(kind: pa.DataType) -> None:
    value = np.array([0.5, -0.25], np.float16) if pa.types.is_float16(kind.value_type) else [0.5, -0.25]
    assert np.frombuffer(_cell(value, kind).data or b"", "<f4").tolist() == [0.5, -0.25]


def test_16_bit_lists_are_scaled_by_32768() -> None:
    cell = _cell([-32768, 16384, 1], pa.list_(pa.int16()))
    assert np.frombuffer(cell.data or b"", "<f4").tolist() == [-1.0, 0.5, 1 / 32768]


@pytest.mark.parametrize("kind", [pa.list_(pa.int16()), pa.list_(pa.float32()), pa.list_(pa.null())])
def test_empty_list_is_a_clip_without_samples(kind: pa.DataType) -> None:
    assert _cell([], kind) == AudioCell(b"", "", 16000)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (None, pa.binary(), "the audio is null"),
        (None, HUGGING_FACE, "the audio is null"),
        (None, pa.dictionary(pa.int32(), pa.binary()), "the audio is null"),
        ({"bytes": None, "path": None}, HUGGING_FACE, "the audio has no value in any of bytes, path"),
        ({"bytes": b"", "path": "a.wav"}, HUGGING_FACE, r"the audio is empty \(0 bytes\)"),
        ("", pa.string(), "the path of the audio is empty"),
        ([1, None, 3], pa.list_(pa.int16()), r"sample 1 of 3 is null \(1 such samples\)"),
        ([1, 2], pa.list_(pa.int32()), "samples must be int16 or floating point, got a list of int32"),
        (5, pa.int64(), "the audio column has type int64"),
        (b"x" * 1001, pa.binary(), "at most reading.max_row_bytes = 1000 bytes, got 1001"),
        ([0.0] * 251, pa.list_(pa.float64()), "at most reading.max_row_bytes = 1000 bytes, got 1004"),
    ],
)
def test_cell_without_usable_audio_is_refused(value: object, kind: pa.DataType, message: str) -> None:
    with pytest.raises(AudioError, match=message):
        _cell(value, kind)


def test_samples_without_a_rate_are_refused() -> None:
    with pytest.raises(AudioError, match="samples without a rate"):
        _cell([0.5], pa.list_(pa.float32()), rate_hz=0)


def test_rate_of_samples_has_the_usual_bounds() -> None:
    with pytest.raises(AudioError, match=r"sample_rate_hz must be 8000..192000, got 4000"):
        _cell([0.5], pa.list_(pa.float32()), rate_hz=4000)
