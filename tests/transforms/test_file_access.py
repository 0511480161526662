"""Input by URL: a file system of Beam's kind that lives in memory stands for a bucket."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

from model_runtime.errors import AudioError, ConfigError
from transforms.clip_audio import read_clip
from transforms.clip_inference import is_retriable
from transforms.file_access import beside, file_state, is_url, read_audio
from transforms.read_clips import read_slice, split_sources
from transforms.reading_config import ReadingConfig
from transforms.records import ClipRow
from transforms.sources import find_sources


class BucketFileSystem(FileSystem):
    """Files by URL, in memory."""

    files: dict[str, bytes] = {}  # noqa: RUF012  (Beam makes the instances)

    @classmethod
    def scheme(cls) -> str:
        return "bucket"

    def join(self, basepath: str, *paths: str) -> str:
        return "/".join([basepath, *paths])

    def split(self, path: str) -> tuple[str, str]:
        return path.rpartition("/")[0], path.rpartition("/")[2]

    def has_dirs(self) -> bool:
        return False

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        for path, data in self.files.items():
            if path.startswith(dir_or_prefix):
                yield FileMetadata(path, len(data), 7.0)

    def open(self, path: str, mime_type: str = "", compression_type: str = "") -> io.BytesIO:
        if path not in self.files:
            raise BeamIOError(f"{path} is not there")
        return io.BytesIO(self.files[path])

    def exists(self, path: str) -> bool:
        return path in self.files

    def metadata(self, path: str) -> FileMetadata:
        return FileMetadata(path, len(self.files[path]), 7.0)

    def _refuse(self, *_: object) -> None:
        raise NotImplementedError

    create = copy = rename = size = last_updated = checksum = delete = mkdirs = _refuse  # type: ignore[assignment]


def _wav(size: int) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.arange(size, dtype=np.int16), 16000, format="WAV")
    return buffer.getvalue()


@pytest.fixture(autouse=True)
def bucket() -> Iterator[dict[str, bytes]]:
    """A bucket with two clips, a manifest and a table."""
    table = io.BytesIO()
    pq.write_table(pa.table({"audio_filepath": ["calls/b.wav"]}), table)
    BucketFileSystem.files = {
        "bucket://x/calls/a.wav": _wav(100),
        "bucket://x/calls/b.wav": _wav(200),
        "bucket://x/m.jsonl": b'{"audio_filepath": "calls/a.wav"}\n{"audio_filepath": "bucket://x/calls/b.wav"}\n',
        "bucket://x/t.parquet": table.getvalue(),
    }
    yield BucketFileSystem.files
    BucketFileSystem.files = {}


def _rows(pattern: str) -> list[ClipRow]:
    slices = split_sources(find_sources(pattern), 1)
    return [row for part in slices for row in read_slice(part, ReadingConfig())]


@pytest.mark.parametrize(
    ("pattern", "sizes"),
    [("bucket://x/calls/*.wav", [100, 200]), ("bucket://x/m.jsonl", [100, 200]), ("bucket://x/t.parquet", [200])],
)
def test_globs_manifests_and_tables_are_read_from_a_bucket(pattern: str, sizes: list[int]) -> None:
    assert [len(next(read_clip(row, 3600)).samples) for row in _rows(pattern)] == sizes


def test_manifest_on_the_disk_may_name_audio_in_a_bucket(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text(json.dumps({"audio_filepath": "bucket://x/calls/b.wav", "offset": 0.005}))
    (row,) = _rows(str(tmp_path / "m.jsonl"))
    assert (next(read_clip(row, 3600)).samples * 32768).tolist() == list(range(80, 200))


def test_audio_that_a_bucket_does_not_give_may_come_another_time() -> None:
    with pytest.raises(AudioError, match=r"^bucket://x/gone.wav: cannot be read: bucket://x/gone.wav is not") as caught:
        next(read_audio("bucket://x/gone.wav"))
    assert is_retriable(caught.value)


def test_state_of_a_file_follows_its_size(bucket: dict[str, bytes]) -> None:
    bucket["bucket://x/a"] = b"12"
    before = file_state("bucket://x/a")
    bucket["bucket://x/a"] += b"3"
    assert (before, file_state("bucket://x/a")) == ("2 7.0", "3 7.0")
    assert file_state("bucket://x/gone") == "missing"


@pytest.mark.parametrize("pattern", ["bucket://x/none/*.wav", "nosuch://x/*.wav"])
def test_url_that_matches_nothing_ends_the_job(pattern: str) -> None:
    with pytest.raises(ConfigError, match=rf"^input: '{pattern.replace('*', '.')}'".replace("/.", "/.")):
        find_sources(pattern)


@pytest.mark.parametrize(
    ("file", "path", "expected"),
    [
        ("/a/m.jsonl", "../b.wav", "/b.wav"),
        ("/a/m.jsonl", "/c/b.wav", "/c/b.wav"),
        ("/a/m.jsonl", "gs://x/b.wav", "gs://x/b.wav"),
        ("gs://x/a/m.jsonl", "../b.wav", "gs://x/b.wav"),
        ("gs://x/a/m.jsonl", "c/./b.wav", "gs://x/a/c/b.wav"),
    ],
)
def test_paths_are_relative_to_the_file_that_names_them(file: str, path: str, expected: str) -> None:
    assert beside(file, path) == expected


def test_windows_drives_and_odd_names_are_no_urls() -> None:
    assert [is_url(path) for path in ("gs://a", "C:\\a", "a:b", "://a", "/a://b")] == [True, False, False, False, False]
