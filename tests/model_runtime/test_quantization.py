"""Numbers of quantised tensors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_runtime.quantization import Quantization, requantize_table

INT8 = Quantization(np.dtype("int8"), 0.5, 10)
scales = st.floats(1e-4, 100.0).map(lambda value: float(np.float32(value)))


def test_values_are_scaled_rounded_and_shifted_by_the_zero_point() -> None:
    stored = INT8.quantize(np.array([0.0, 0.5, -1.0, 1.3], np.float32))
    assert stored.dtype == np.int8
    assert stored.tolist() == [10, 11, 8, 13]


def test_exact_halves_go_to_the_even_integer() -> None:
    stored = Quantization(np.dtype("int8"), 1.0, 0).quantize(np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32))
    assert stored.tolist() == [0, 2, 2, 0, -2]


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("int8", -128, 127), ("uint8", 0, 255), ("int16", -32768, 32767), ("uint16", 0, 65535)]
)
def test_values_beyond_the_range_are_clipped(dtype: str, low: int, high: int) -> None:
    stored = Quantization(np.dtype(dtype), 0.001, 3).quantize(np.array([-1e6, 1e6], np.float32))
    assert stored.tolist() == [low, high]


def test_stored_integers_come_back_as_float32() -> None:
    values = INT8.dequantize(np.array([10, 11, -128, 127], np.int8))
    assert values.dtype == np.float32
    assert values.tolist() == [0.0, 0.5, -69.0, 58.5]


def test_scale_zero_means_that_integers_are_not_quantised() -> None:
    counts = Quantization(np.dtype("int8"))
    assert counts.quantize(np.array([3.0, -4.0], np.float32)).tolist() == [3, -4]
    assert counts.dequantize(np.array([3, -4], np.int8)).dtype == np.int8


def test_zeros_are_filled_with_the_zero_point() -> None:
    assert INT8.zeros((1, 3)).tolist() == [[10, 10, 10]]
    assert Quantization(np.dtype("float32")).zeros((2,)).tolist() == [0.0, 0.0]


@given(scale=scales, zero_point=st.integers(-128, 127))
def test_every_stored_value_survives_the_way_to_float_and_back(scale: float, zero_point: int) -> None:
    stored = np.arange(-128, 128).astype(np.int8)
    numbers = Quantization(np.dtype("int8"), scale, zero_point)
    assert np.array_equal(numbers.quantize(numbers.dequantize(stored)), stored)


def test_no_table_is_needed_between_equal_scales() -> None:
    assert requantize_table(INT8, INT8) is None


def test_no_table_is_needed_when_scales_differ_in_the_last_bit_only() -> None:
    almost = Quantization(np.dtype("int8"), float(np.nextafter(np.float32(0.5), np.float32(1))), 10)
    assert requantize_table(INT8, almost) is None


def test_no_table_is_needed_for_floats() -> None:
    plain = Quantization(np.dtype("float32"))
    assert requantize_table(plain, plain) is None


@given(source=scales, target=scales, zero_from=st.integers(-128, 127), zero_to=st.integers(-128, 127))
def test_the_table_holds_the_same_real_value_in_the_other_scale(
    source: float, target: float, zero_from: int, zero_to: int
) -> None:
    table = requantize_table(
        Quantization(np.dtype("int8"), source, zero_from), Quantization(np.dtype("int8"), target, zero_to)
    )
    stored = np.arange(-128, 128)
    exact = (stored - zero_from) * source / target + zero_to
    got = stored if table is None else table[stored.astype(np.int8).view(np.uint8)]
    assert np.all(np.abs(np.clip(exact, -128, 127) - got) <= 0.5 + 1e-3)


def test_a_table_for_int16_has_an_entry_for_every_value() -> None:
    table = requantize_table(Quantization(np.dtype("int16"), 1.0, 0), Quantization(np.dtype("int16"), 2.0, 0))
    assert table is not None and table.shape == (65536,)
    assert table[np.array([-4, 4, 6], np.int16).view(np.uint16)].tolist() == [-2, 2, 3]
