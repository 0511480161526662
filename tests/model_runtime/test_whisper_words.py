"""Time warping against an enumeration of all paths, and word times from an attention that is known."""

from collections.abc import Iterator

import numpy as np

from model_runtime.whisper_words import token_frames, warp


def all_paths(rows: int, columns: int) -> Iterator[list[tuple[int, int]]]:
    if rows == columns == 1:
        yield [(0, 0)]
        return
    for row, column in ((rows - 1, columns - 1), (rows, columns - 1), (rows - 1, columns)):
        if row and column:
            for path in all_paths(row, column):
                yield [*path, (rows - 1, columns - 1)]


def test_the_path_is_the_cheapest_of_all() -> None:
    for seed in range(20):
        cost = np.random.default_rng(seed).standard_normal((4, 6))
        path = warp(cost)
        cheapest = min(all_paths(4, 6), key=lambda cells: sum(cost[cell] for cell in cells))
        assert [tuple(cell) for cell in path] == cheapest


def test_tokens_begin_where_the_heads_begin_to_look() -> None:
    begins = [0, 12, 30, 47, 80]
    attention = np.full((5, 2, 150), 1e-4, np.float32)
    for token, (begin, end) in enumerate(zip(begins, [*begins[1:], 100], strict=True)):
        attention[token, :, begin:end] = 1.0
    assert token_frames(attention, 0, 100).tolist() == begins
    assert token_frames(attention, 1, 100).tolist()[1:] == begins[2:]


def test_frames_beyond_the_clip_do_not_count() -> None:
    attention = np.full((2, 1, 60), 1e-4, np.float32)
    attention[0, 0, :20] = 1.0
    attention[1, 0, 20:40] = 1.0
    loud = attention.copy()
    loud[:, :, 40:] = 9.0
    assert token_frames(loud, 0, 40).tolist() == token_frames(attention, 0, 40).tolist() == [0, 20]


def test_a_clip_of_one_frame_has_times() -> None:
    assert token_frames(np.ones((3, 2, 50), np.float32), 1, 1).tolist() == [0, 0]
