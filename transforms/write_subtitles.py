"""SRT and WebVTT files beside the results, named as the clean audio is."""

from pathlib import Path

from transforms.atomic_file import atomic_path
from transforms.records import ClipResult, ClipRow
from transforms.row_name import row_name
from transforms.subtitles import SubtitlesConfig, cues, to_srt, to_vtt


def write_subtitles(result: ClipResult, output: str, config: SubtitlesConfig) -> None:
    """Writes the files of one row; a repeat writes the same again. A bad row has none."""
    if result.error or not config.formats:
        return
    found = cues(result, config)
    for form, target in zip(config.formats, subtitle_paths(result, output, config), strict=True):
        with atomic_path(target) as path:
            path.write_text(to_srt(found) if form == "srt" else to_vtt(found), encoding="utf-8", newline="\n")


def subtitle_paths(row: ClipResult | ClipRow, output: str, config: SubtitlesConfig) -> list[Path]:
    """Gives where the subtitles of a row lie, one for each format."""
    if not config.formats:
        return []
    name = row_name(row)
    return [Path(output) / config.folder / f"{name}.{form}" for form in config.formats]
