"""What a row weighs in a batch: much data and long audio count as several rows, and never as more than a batch."""

import pytest

from transforms.batch_work import batch_weight, row_weight
from transforms.clip_inference import InferenceConfig
from transforms.records import ClipRow

CONFIG = InferenceConfig(batch_size=4, max_batch_s=100)


@pytest.mark.parametrize(
    ("data_bytes", "duration_s", "weight"),
    [
        (0, None, 1),
        (100, 24.9, 1),
        (0, 25.0, 2),
        (4 << 20, None, 2),
        ((8 << 20) - 1, 25.0, 2),
        (8 << 20, 25.0, 3),
        (0, 60.0, 3),
        # Recordings are not held, however long they are.
        (0, 1e300, 3),
        (0, float("inf"), 3),
        (64 << 20, None, 16),
    ],
)
def test_row_weighs_by_its_data_or_its_length(data_bytes: int, duration_s: float | None, weight: int) -> None:
    row = ClipRow(0, 1, "", "", b"{}", data=bytes(data_bytes) or None, duration_s=duration_s)
    assert row_weight(row, CONFIG) == weight


def test_batch_weighs_four_calls_of_the_models() -> None:
    assert batch_weight(CONFIG) == 16
