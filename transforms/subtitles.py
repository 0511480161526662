"""Subtitles of a result as SRT or WebVTT: cues that a person can read in their time."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

from model_runtime.records import Word
from transforms.records import ClipResult


class SubtitlesConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether and how subtitles are written."""

    formats: tuple[Literal["srt", "vtt"], ...] = ()  # one file each for every good row; empty: none
    folder: Annotated[str, Meta(min_length=1)] = "subtitles"  # below the output folder
    max_cue_ms: Annotated[int, Meta(ge=500, le=60_000)] = 7_000  # ms that a cue stands; a longer one is cut at a word
    max_cue_characters: Annotated[int, Meta(ge=10, le=1_000)] = 84  # two lines of 42; a longer cue is cut at a word

    def __post_init__(self) -> None:
        if len(set(self.formats)) != len(self.formats):
            raise ValueError(f"formats must not name one twice, got {list(self.formats)}")


class Cue(NamedTuple):
    """One subtitle, in ms since the clip's first sample."""

    start_ms: int
    end_ms: int
    text: str


def cues(result: ClipResult, config: SubtitlesConfig) -> list[Cue]:
    """Gives a result's cues in order: never over the end of a segment, as long as the bounds allow."""
    return [cue for words in _by_segment(result) for cue in _cut(words, config)]


def to_srt(found: Sequence[Cue]) -> str:
    """Gives SubRip text: numbered cues, times with a comma."""
    blocks = [
        f"{number}\n{_time(cue.start_ms, ',')} --> {_time(cue.end_ms, ',')}\n{cue.text}\n"
        for number, cue in enumerate(found, 1)
    ]
    return "\n".join(blocks)


def to_vtt(found: Sequence[Cue]) -> str:
    """Gives WebVTT text."""
    blocks = [f"{_time(cue.start_ms, '.')} --> {_time(cue.end_ms, '.')}\n{_escaped(cue.text)}\n" for cue in found]
    return "\n".join(["WEBVTT\n", *blocks])


def _by_segment(result: ClipResult) -> Iterator[list[Word]]:
    """Groups the words by the segment that they begin in; words outside of all segments make groups of their own."""
    ends = [segment.end_ms for segment in result.segments]
    group: list[Word] = []
    place = 0
    for word in result.words:
        before = place
        while place < len(ends) and word.start_ms >= ends[place]:
            place += 1
        if place != before and group:
            yield group
            group = []
        group.append(word)
    if group:
        yield group


def _cut(words: list[Word], config: SubtitlesConfig) -> Iterator[Cue]:
    begin, text = words[0], words[0].text
    end_ms = begin.end_ms
    for word in words[1:]:
        longer = f"{text} {word.text}"
        if len(longer) > config.max_cue_characters or word.end_ms - begin.start_ms > config.max_cue_ms:
            yield Cue(begin.start_ms, end_ms, text)
            begin, longer = word, word.text
        text, end_ms = longer, word.end_ms
    yield Cue(begin.start_ms, end_ms, text)


def _time(ms: int, separator: str) -> str:
    seconds, ms = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}{separator}{ms:03d}"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
