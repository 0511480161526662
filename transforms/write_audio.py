"""WriteAudio: the clean audio of results as 16-bit files, named after where it came from."""

from pathlib import Path
from typing import Annotated, Literal

import apache_beam as beam
import numpy as np
import soundfile
from msgspec import Meta, Struct

import transforms.coders  # noqa: F401  (registers the records' coders)
from transforms.atomic_file import atomic_path
from transforms.records import ClipResult
from transforms.row_name import row_name


class EnhancedConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether and how clean audio is written."""

    write: bool = False  # write the clean audio of every good row; needs a recipe that denoises
    folder: Annotated[str, Meta(min_length=1)] = "enhanced"  # below the output folder
    format: Literal["wav", "flac"] = "wav"  # both 16 bits, at the clip's own rate


class WriteAudio(beam.PTransform):
    """Writes what is in `enhanced` and puts the file's path in its place: ClipResult -> ClipResult."""

    def __init__(self, output: str, config: EnhancedConfig) -> None:
        super().__init__()
        self._output = output
        self._config = config

    def expand(self, results: beam.PCollection[ClipResult]) -> beam.PCollection[ClipResult]:
        return results | "Write" >> beam.Map(write_enhanced, self._output, self._config).with_output_types(ClipResult)


def write_enhanced(result: ClipResult, output: str, config: EnhancedConfig) -> ClipResult:
    """Writes one clip; a repeat writes the same file again. A result without clean audio passes."""
    if result.enhanced is None:
        return result
    name = f"{config.folder}/{row_name(result)}.{config.format}"
    samples = np.frombuffer(result.enhanced, "<i2")
    with atomic_path(Path(output) / name) as path:
        soundfile.write(path, samples, result.sample_rate_hz, subtype="PCM_16", format=config.format.upper())
    return result._replace(enhanced=None, enhanced_path=name)
