"""The input is cut into parts: runs of slices, and enough of them for all workers."""

from transforms.records import AUDIO, MANIFEST, Part, Slice
from transforms.work_order import make_parts


def test_parts_are_runs_of_slices_of_about_equal_size() -> None:
    slices = [Slice(number, AUDIO, [str(number)], 1, rows) for number, rows in enumerate([16, 16, 3, 16, 1])]
    slices.append(Slice(9, MANIFEST, ["m"], 1, 100))
    parts: list[Part] = make_parts(slices, 32)
    assert [(part.number, [each.source for each in part.slices], part.rows) for part in parts] == [
        (0, [0, 1], 32),
        (1, [2, 3, 4, 9], 120),
    ]
    assert [part.rows for part in make_parts(slices, 1000)] == [152]
    assert [part.rows for part in make_parts(slices, 1000, least_parts=10)] == [16, 16, 19, 101]
    assert make_parts([], 32) == []
