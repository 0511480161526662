"""Strings of digits, and what stays out of training."""

from pathlib import Path

import numpy as np

from training.clips import Clip
from training.fsdd import HELD_OUT_SPEAKER, TRAINING_SPEAKERS, join, load_recordings, word_string

ONES = np.ones(1000, np.float32)


def test_a_gap_is_that_many_zeros() -> None:
    joined, starts = join([ONES, ONES], [300])
    assert (len(joined), starts) == (2300, [0, 1300])
    assert np.count_nonzero(joined[1000:1300]) == 0


def test_a_negative_gap_overlaps_faded_ends() -> None:
    joined, starts = join([ONES, ONES], [-80])
    assert (len(joined), starts) == (1920, [0, 920])
    np.testing.assert_allclose(joined[920:1000], 1.0, atol=1e-6)


def test_a_string_has_the_words_of_its_clips_in_order() -> None:
    clips = [Clip(np.full(2000, 100 * i, np.int16), word, "x") for i, word in enumerate(("one", "two"), 1)]
    string = word_string(np.random.default_rng(1), clips, 4)
    assert len(string.words) == 4
    assert set(string.words) <= {"one", "two"}
    assert [last - first for first, last in string.spans] == [2000] * 4
    assert string.spans[-1][1] == len(string.pcm)


def test_training_has_no_held_out_person_and_no_first_recordings(shared: Path) -> None:
    folder = shared / "data" / "fsdd"
    recordings = load_recordings(folder, TRAINING_SPEAKERS, training=True)
    assert HELD_OUT_SPEAKER not in recordings
    # Ten digits, fifty recordings each, less the first five.
    assert {len(clips) for clips in recordings.values()} == {450}
