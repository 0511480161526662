"""WriteSubtitles: SRT and WebVTT files beside the results, named as the clean audio is."""

from pathlib import Path

import apache_beam as beam

import transforms.coders  # noqa: F401  (registers the records' coders)
from transforms.atomic_file import atomic_path
from transforms.records import ClipResult
from transforms.row_name import row_name
from transforms.subtitles import SubtitlesConfig, cues, to_srt, to_vtt


class WriteSubtitles(beam.PTransform):
    """Writes the subtitles of every good row: ClipResult -> the same ClipResult."""

    def __init__(self, output: str, config: SubtitlesConfig) -> None:
        super().__init__()
        self._output = output
        self._config = config

    def expand(self, results: beam.PCollection[ClipResult]) -> beam.PCollection[ClipResult]:
        return results | "Write" >> beam.Map(write_subtitles, self._output, self._config).with_output_types(ClipResult)


def write_subtitles(result: ClipResult, output: str, config: SubtitlesConfig) -> ClipResult:
    """Writes the files of one row; a repeat writes the same again. A bad row has none."""
    if not result.error:
        found = cues(result, config)
        for form in config.formats:
            text = to_srt(found) if form == "srt" else to_vtt(found)
            with atomic_path(Path(output) / config.folder / f"{row_name(result)}.{form}") as path:
                path.write_text(text, encoding="utf-8", newline="\n")
    return result
