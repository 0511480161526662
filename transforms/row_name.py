"""Names of the files that are written for one row or one session."""

import hashlib
import os
import re

import msgspec

from transforms.records import ClipResult, ClipRow

_UNSAFE = re.compile(r'[\x00-\x1f/\\:*?"<>|]')
# With the digest and the ending this stays below the 255 bytes that file systems allow.
_MAX_STEM_BYTES = 150


def row_name(result: ClipResult | ClipRow) -> str:
    """Gives the file name without ending: the source's own, and a digest of the row's identity.

    The same row has the same name in every run; rows that share an audio file, or files that share a name, differ.
    """
    columns = msgspec.json.decode(result.columns)
    audio = columns.get("audio_filepath") or columns.get("audio_filename") or result.source_path
    return safe_name(os.path.splitext(os.path.basename(str(audio)))[0], f"{result.source_path}\0{result.row}")


def safe_name(stem: str, identity: str) -> str:
    """Gives a name that any file system takes: the stem as far as that can be, and a digest of the identity."""
    stem = _UNSAFE.sub("_", stem) or "clip"
    stem = stem.encode("utf-8")[:_MAX_STEM_BYTES].decode("utf-8", "ignore")
    digest = hashlib.blake2b(identity.encode("utf-8", "surrogateescape"), digest_size=6)
    return f"{stem}-{digest.hexdigest()}"
