"""Frozen state: exact on the way back, and refused when it is not what it should be."""

import msgspec
import numpy as np
import pytest

from model_runtime.errors import StateError
from model_runtime.frozen_state import StateCodec


class Memory(msgspec.Struct, frozen=True, array_like=True):
    count: int
    array: np.ndarray
    more: tuple[np.ndarray, ...] = ()
    nothing: np.ndarray | None = None


CODEC = StateCodec(Memory, b"0123456789abcdef")
MEMORY = Memory(
    3, np.arange(6, dtype=np.float32).reshape(2, 3), (np.array([-128, 127], np.int8), np.zeros((0, 4), "<f4"))
)


def test_thawing_gives_back_values_types_and_shapes() -> None:
    thawed = CODEC.thaw(CODEC.freeze(MEMORY))
    assert thawed.count == 3
    for ours, theirs in zip((MEMORY.array, *MEMORY.more), (thawed.array, *thawed.more), strict=True):
        assert (ours.dtype, ours.shape, ours.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())


def test_equal_states_freeze_to_equal_bytes() -> None:
    assert CODEC.freeze(MEMORY) == CODEC.freeze(CODEC.thaw(CODEC.freeze(MEMORY)))


@pytest.mark.parametrize("position", [0, 4, 6, 23, 30, -1])
def test_a_changed_byte_is_refused(position: int) -> None:
    blob = bytearray(CODEC.freeze(MEMORY))
    blob[position] ^= 0x40
    with pytest.raises(StateError):
        CODEC.thaw(bytes(blob))


@pytest.mark.parametrize("length", [0, 3, 25, 40])
def test_a_cut_state_is_refused(length: int) -> None:
    with pytest.raises(StateError, match=r"not a frozen state|damaged"):
        CODEC.thaw(CODEC.freeze(MEMORY)[:length])


def test_a_state_of_other_models_is_refused_with_both_fingerprints() -> None:
    other = StateCodec(Memory, b"fedcba9876543210")
    with pytest.raises(StateError, match=b"0123456789abcdef".hex() + ".*" + b"fedcba9876543210".hex()):
        other.thaw(CODEC.freeze(MEMORY))


def test_what_cannot_be_frozen_raises() -> None:
    with pytest.raises(TypeError, match="no way to freeze a object"):
        CODEC.freeze(Memory(1, object()))  # type: ignore[arg-type]
