"""The clean audio of results as 16-bit files, named after where it came from, written while it comes."""

from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Protocol

import numpy as np
import soundfile
from msgspec import Meta, Struct

from model_runtime.decode import encode_linear16
from transforms.atomic_file import AtomicFile
from transforms.records import ClipResult, ClipRow
from transforms.row_name import row_name


class EnhancedConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether and how clean audio is written."""

    write: bool = False  # write the clean audio of every good row; needs a recipe that denoises
    folder: Annotated[str, Meta(min_length=1)] = "enhanced"  # below the output folder
    format: Literal["wav", "flac"] = "wav"  # both 16 bits, at the clip's own rate


class Clean(NamedTuple):
    """The clean audio of one row: LINEAR16 in memory, or the path of its file, relative to the output folder."""

    pcm: bytes | None
    path: str


class CleanSink(Protocol):
    """Takes the clean audio of one row."""

    def write(self, samples: np.ndarray) -> None:
        """Takes the next samples, float32 [n], -1..1."""

    def keep(self) -> Clean:
        """Ends it."""

    def discard(self) -> None:
        """Ends it and leaves nothing."""


class CleanFolder(NamedTuple):
    """Clean audio in files. output: the folder of the results."""

    output: str
    config: EnhancedConfig

    def open(self, row: ClipRow, sample_rate_hz: int) -> "CleanFile":
        """Begins the file of a row."""
        return CleanFile(row, sample_rate_hz, self)


class CleanMemory(NamedTuple):
    """Clean audio in memory."""

    def open(self, row: ClipRow, sample_rate_hz: int) -> "CleanBytes":
        """Begins the bytes of a row."""
        return CleanBytes()


class CleanFile:
    """The clean audio of one row. It appears whole, by `keep`, or not at all; a repeat writes the same file again."""

    def __init__(self, row: ClipRow, sample_rate_hz: int, folder: CleanFolder) -> None:
        self._name = enhanced_path(row, folder.config)
        self._place = AtomicFile(Path(folder.output) / self._name)
        form = folder.config.format.upper()
        self._sound = soundfile.SoundFile(self._place.path, "w", sample_rate_hz, 1, "PCM_16", format=form)

    def write(self, samples: np.ndarray) -> None:
        """Takes the next samples, float32 [n], -1..1."""
        self._sound.write(np.frombuffer(encode_linear16(samples), "<i2"))

    def keep(self) -> Clean:
        """Ends the file and gives its path."""
        self._sound.close()
        self._place.keep()
        return Clean(None, self._name)

    def discard(self) -> None:
        """Ends the file and removes it."""
        self._sound.close()
        self._place.discard()


class CleanBytes:
    """The clean audio of one row in memory."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, samples: np.ndarray) -> None:
        """Takes the next samples, float32 [n], -1..1."""
        self._parts.append(encode_linear16(samples))

    def keep(self) -> Clean:
        """Gives what there is."""
        return Clean(b"".join(self._parts), "")

    def discard(self) -> None:
        """Forgets it."""
        self._parts.clear()


def enhanced_path(row: ClipResult | ClipRow, config: EnhancedConfig) -> str:
    """Gives where the clean audio of a row lies, relative to the output folder."""
    return f"{config.folder}/{row_name(row)}.{config.format}"
