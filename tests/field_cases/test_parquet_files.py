"""Field cases A11 and A12: Parquet files as exporters write them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_runtime.audio import Audio
from model_runtime.decode import decode_file
from model_runtime.errors import AudioError
from transforms.clip_audio import read_clip
from transforms.parquet_rows import read_parquet, split_parquet
from transforms.reading_config import ReadingConfig
from transforms.records import PARQUET, Source

Row = dict[str, Any]
# Reads one slice, and says how many MB the process grew by.
_READ_ALL = """
import resource, sys
from transforms.parquet_rows import read_parquet, split_parquet
from transforms.reading_config import ReadingConfig
from transforms.records import PARQUET, Source
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for part in split_parquet(Source(0, sys.argv[1], PARQUET), 3)[:1]:
    for row in read_parquet(part, ReadingConfig()):
        print(row.row, row.error.partition(": ")[2])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.fixture(scope="module")
def reference(cases: Path) -> np.ndarray:
    return decode_file(cases / "wav" / "ref_pcm16.wav").samples


def _read(cases: Path, name: str) -> list[Audio | str]:
    """The audio or the error of every row, in order."""
    source = Source(0, str(cases / "parquet" / f"{name}.parquet"), PARQUET)
    found: list[Audio | str] = []
    for part in split_parquet(source, 2):
        for row in read_parquet(part, ReadingConfig()):
            try:
                found.append(next(read_clip(row, 3600)))
            except AudioError as error:
                found.append(str(error).removeprefix(f"{source.path} "))
    return found


def _audio(found: list[Audio | str]) -> list[Audio]:
    assert all(isinstance(each, Audio) for each in found), found
    return [each for each in found if isinstance(each, Audio)]


def test_hugging_face_struct_gives_four_clips_and_four_reports(cases: Path, reference: np.ndarray) -> None:
    found = _read(cases, "hf_struct")
    for audio in _audio([found[index] for index in (0, 1, 2, 6)]):
        np.testing.assert_array_equal(audio.samples, reference)
    assert [found[index] for index in (3, 4, 5, 7)] == [
        "row 4: the audio is null",
        "row 5: the audio has no value in any of bytes, path",
        "row 6: the audio is empty (0 bytes)",
        "row 8: /home/someone/gone.wav: cannot be read: No such file or directory",
    ]


@pytest.mark.parametrize(("name", "rows"), [("hf_struct_rev_fields", 1), ("large_types", 2)])
def test_other_layouts_of_bytes_give_the_same_samples(cases: Path, reference: np.ndarray, name: str, rows: int) -> None:
    found = _audio(_read(cases, name))
    assert len(found) == rows
    for audio in found:
        np.testing.assert_array_equal(audio.samples, reference)


def test_dictionary_coded_bytes_are_read_and_its_null_is_reported(cases: Path, reference: np.ndarray) -> None:
    first, second, null = _read(cases, "dictionary")
    for audio in _audio([first, second]):
        np.testing.assert_array_equal(audio.samples, reference)
    assert null == "row 3: the audio is null"


def test_equal_ids_are_two_rows(cases: Path) -> None:
    assert [len(audio.samples) for audio in _audio(_read(cases, "dup_ids"))] == [46218, 8000]


def test_16_bit_lists_are_scaled_and_an_inner_null_is_reported(cases: Path, reference: np.ndarray) -> None:
    found = _read(cases, "list_int16")
    clip, empty = _audio([found[0], found[2]])
    np.testing.assert_array_equal(clip.samples, reference[:8000])
    assert (clip.sample_rate_hz, len(empty.samples)) == (16000, 0)
    assert [found[1], found[3]] == ["row 2: the audio is null", "row 4: sample 1 of 3 is null (1 such samples)"]


@pytest.mark.parametrize("name", ["list_float_large", "fixed_list_f64"])
def test_lists_of_floats_are_samples(cases: Path, reference: np.ndarray, name: str) -> None:
    (audio,) = _audio(_read(cases, name))
    np.testing.assert_array_equal(audio.samples, reference[:8000])


def test_array_with_its_own_rate_lasts_half_a_second(cases: Path) -> None:
    (audio,) = _audio(_read(cases, "array_struct_48k"))
    assert (audio.sample_rate_hz, audio.duration_s) == (48000, 0.5)


def test_many_row_groups_give_every_row(cases: Path) -> None:
    sizes = [len(audio.samples) for audio in _audio(_read(cases, "many_row_groups"))]
    assert sizes == [640, 960, 1280, 1600, 1920, 2240, 2560]


def test_file_without_rows_gives_none(cases: Path) -> None:
    assert _read(cases, "zero_rows") == []


def test_row_group_beyond_two_gigabytes_is_refused_row_by_row_in_bounded_memory(cases: Path) -> None:
    """In a process of its own, as the peak of this one is long past."""
    path = str(cases / "parquet" / "big_row_group.parquet")
    done = subprocess.run([sys.executable, "-c", _READ_ALL, path], capture_output=True, text=True, check=True)
    *rows, megabytes = done.stdout.splitlines()
    reason = "the audio must have at most reading.max_row_bytes = 200000000 bytes, got 268435456"
    assert rows == [f"{number} {reason}" for number in (1, 2, 3)]
    assert int(megabytes) < 1500
