"""Files of the input by path or by URL (gs://, s3://, hdfs://): Beam's file systems open what the system itself cannot.

Beam is only imported where there is a URL, since the processes that run models have no other use for it.
"""

import errno
import os
import posixpath
import re
import shutil
import tempfile
from collections.abc import Iterator
from math import inf
from typing import IO, Any

from model_runtime.audio import Audio
from model_runtime.decode import decode_blocks, decode_open
from model_runtime.errors import AudioError

_URL = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*://")


def is_url(path: str) -> bool:
    """Whether a path names a file of one of Beam's file systems."""
    return _URL.match(path) is not None


def open_file(path: str) -> IO[bytes]:
    """Opens a file to be read, from any position.

    Raises:
        OSError: it cannot be read.
    """
    if not is_url(path):
        return open(path, "rb")
    opened: IO[bytes] = _file_systems().open(path, compression_type="uncompressed")
    return opened


def find_files(pattern: str) -> list[str]:
    """Gives the URLs that match a glob, sorted.

    Raises:
        OSError: the file system cannot be asked.
    """
    return sorted(found.path for found in _file_systems().match([pattern])[0].metadata_list)


def read_audio(
    path: str, start_s: float = 0.0, duration_s: float | None = None, block_s: float = inf
) -> Iterator[Audio]:
    """Reads a file or a part of it in blocks, as decode_blocks does; of a URL the whole file is fetched to the disk.

    Raises:
        AudioError: names the path; it may pass where a file system did not answer.
    """
    if not is_url(path):
        yield from decode_blocks(path, start_s, duration_s, block_s)
        return
    with tempfile.TemporaryFile() as fetched:
        fetch(path, fetched)
        fetched.seek(0)
        yield from decode_open(fetched, path, start_s, duration_s, block_s)


def fetch(path: str, target: IO[bytes]) -> None:
    """Copies a file to another that is open.

    Raises:
        AudioError: names the path; it may pass where a file system did not answer.
    """
    try:
        with open_file(path) as file:
            shutil.copyfileobj(file, target)
    except OSError as error:
        cause = OSError(errno.EIO, str(error))
        raise AudioError(f"{path}: cannot be read: {' '.join(str(error).split())}") from cause


def file_state(path: str) -> str:
    """Gives size and time of change, "missing" for a file that is not there."""
    try:
        if is_url(path):
            (found,) = _file_systems().match([path])[0].metadata_list
            return f"{found.size_in_bytes} {found.last_updated_in_seconds}"
        state = os.stat(path)
    except (OSError, ValueError):
        return "missing"
    return f"{state.st_size} {state.st_mtime_ns}"


def beside(file: str, path: str) -> str:
    """Gives a path that is relative to the folder of `file`, or is absolute or a URL by itself."""
    if is_url(path):
        return path
    if not is_url(file):
        return os.path.normpath(os.path.join(os.path.dirname(file), path))
    scheme, _, place = file.partition("://")
    return f"{scheme}://{posixpath.normpath(posixpath.join(posixpath.dirname(place), path))}"


def _file_systems() -> Any:
    from apache_beam.io.filesystems import FileSystems

    return FileSystems
