"""Which files an input means, and what kind each one is."""

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from model_runtime.errors import ConfigError
from transforms.archive_file import session_tables
from transforms.file_access import find_files, is_url, open_file
from transforms.records import AUDIO, KALDI, MANIFEST, PARQUET, Source

_KINDS = {
    **dict.fromkeys((".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".w64", ".rf64"), AUDIO),
    **dict.fromkeys((".jsonl", ".ndjson", ".json", ".manifest"), MANIFEST),
    **dict.fromkeys((".parquet", ".pq"), PARQUET),
    ".scp": KALDI,
}


def find_sources(inputs: str | Sequence[str]) -> list[Source]:
    """Gives the files of the inputs, in the order of the inputs and sorted by name within each.

    An input is a file (literally, whatever characters its name has), a folder (all audio files below it, or, of the
    streaming job's archive, its sessions), or a glob (`**` goes through folders). A file that several inputs name is
    read once.

    Raises:
        ConfigError: an input matches no file; names it.
    """
    inputs = [inputs] if isinstance(inputs, str) else list(inputs)
    if not inputs:
        raise ConfigError("input must name at least one file, folder or glob, got none")
    paths = [path for pattern in inputs for path in _matches(pattern)]
    distinct = dict.fromkeys(path if is_url(path) else os.path.abspath(path) for path in paths)
    return [Source(position, path, _kind(path)) for position, path in enumerate(distinct)]


def _matches(pattern: str) -> list[str]:
    if not pattern:
        raise ConfigError("input must name a file, a folder or a glob, got an empty string")
    if is_url(pattern):
        return _url_matches(pattern)
    if os.path.isfile(pattern):
        return [pattern]
    if os.path.isdir(pattern):
        tables = session_tables(Path(pattern))
        if tables is not None:
            return _tables_of(pattern, tables)
        files = [str(path) for path in Path(pattern).rglob("*") if path.is_file() and not path.name.startswith(".")]
        audio = sorted(path for path in files if _KINDS.get(os.path.splitext(path)[1].lower()) == AUDIO)
        if not audio:
            raise ConfigError(
                f"input: no audio file in folder {pattern!r} (name manifests and Parquet files by a glob)"
            )
        return audio
    matches = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
    if not matches:
        what = "matches no file" if glob.has_magic(pattern) else "does not exist"
        raise ConfigError(f"input: {pattern!r} {what}")
    return matches


def _tables_of(archive: str, tables: Sequence[Path]) -> list[str]:
    if not tables:
        raise ConfigError(f"input: the archive {archive!r} holds no session yet")
    return [str(table) for table in tables]


def _url_matches(pattern: str) -> list[str]:
    try:
        found = find_files(pattern)
    except (OSError, ValueError) as error:
        raise ConfigError(f"input: {pattern!r} cannot be looked for: {' '.join(str(error).split())}") from error
    if not found:
        raise ConfigError(f"input: {pattern!r} matches no file")
    return found


def _kind(path: str) -> str:
    """By the ending; a file without a known one by its first bytes."""
    kind = _KINDS.get(os.path.splitext(path)[1].lower())
    if kind is not None:
        return kind
    try:
        with open_file(path) as file:
            head = file.read(64)
    except OSError:
        return AUDIO
    if head.startswith(b"PAR1"):
        return PARQUET
    return MANIFEST if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")) else AUDIO
