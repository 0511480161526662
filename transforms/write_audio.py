"""The clean audio of results as 16-bit files, named after where it came from."""

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import soundfile
from msgspec import Meta, Struct

from transforms.atomic_file import atomic_path
from transforms.records import ClipResult, ClipRow
from transforms.row_name import row_name


class EnhancedConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether and how clean audio is written."""

    write: bool = False  # write the clean audio of every good row; needs a recipe that denoises
    folder: Annotated[str, Meta(min_length=1)] = "enhanced"  # below the output folder
    format: Literal["wav", "flac"] = "wav"  # both 16 bits, at the clip's own rate


def write_enhanced(result: ClipResult, output: str, config: EnhancedConfig) -> ClipResult:
    """Writes what is in `enhanced` and puts the file's path in its place; a repeat writes the same file again.

    A result without clean audio passes.
    """
    if result.enhanced is None:
        return result
    name = enhanced_path(result, config)
    samples = np.frombuffer(result.enhanced, "<i2")
    with atomic_path(Path(output) / name) as path:
        soundfile.write(path, samples, result.sample_rate_hz, subtype="PCM_16", format=config.format.upper())
    return result._replace(enhanced=None, enhanced_path=name)


def enhanced_path(row: ClipResult | ClipRow, config: EnhancedConfig) -> str:
    """Gives where the clean audio of a row lies, relative to the output folder."""
    return f"{config.folder}/{row_name(row)}.{config.format}"
