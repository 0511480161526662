"""The work of a run: what its workers must know of it, and the parts that it is cut into."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from model_runtime.devices import RouteConfig
from transforms.clip_inference import InferenceConfig
from transforms.part_file import FOLDER
from transforms.reading_config import ReadingConfig
from transforms.records import Answer, Part, Slice
from transforms.subtitles import SubtitlesConfig
from transforms.write_audio import CleanFolder, EnhancedConfig


class WorkOrder(msgspec.Struct, frozen=True):
    """All that workers must know of a run.

    answer: which one is wanted; fingerprint: of work_fingerprint; journal: path of the run's journal; force: do all
    rows anew; max_errors: with more bad rows than these the run is over, and what is left is left undone.
    """

    output: str
    recipe: str
    route: RouteConfig
    reading: ReadingConfig
    inference: InferenceConfig
    answer: Answer
    enhanced: EnhancedConfig
    subtitles: SubtitlesConfig
    fingerprint: str
    journal: str
    force: bool
    max_errors: int

    @property
    def clean(self) -> CleanFolder | None:
        """Where clean audio goes; None where it is not kept."""
        return CleanFolder(self.output, self.enhanced) if self.enhanced.write else None

    @property
    def parts_folder(self) -> Path:
        """Where part files lie."""
        return Path(self.output) / FOLDER


def make_parts(slices: Sequence[Slice], rows_per_part: int, least_parts: int = 0) -> list[Part]:
    """Joins slices to parts of about so many rows, in their order.

    Args:
        least_parts: parts are smaller where there would be fewer than these, so that all workers have some.
    """
    wanted = min(rows_per_part, max(1, sum(part.rows for part in slices) // max(1, least_parts)))
    parts: list[Part] = []
    hand: list[Slice] = []
    rows = 0
    for each in slices:
        hand.append(each)
        rows += each.rows
        if rows >= wanted:
            parts.append(Part(len(parts), hand, rows))
            hand, rows = [], 0
    if hand:
        parts.append(Part(len(parts), hand, rows))
    return parts
