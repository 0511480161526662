"""From rows to answers, without Beam: read each clip, run the engine on many, keep bad rows apart."""

import errno
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple, Protocol, TypeVar

import numpy as np
from msgspec import Meta, Struct

from model_runtime.audio import Audio
from model_runtime.calls import CallTally
from model_runtime.errors import AudioError, SpeechError
from model_runtime.records import Event, MadeBy
from model_runtime.stream import Stream
from transforms.clip_audio import read_clip
from transforms.heard_clip import HeardClip, error_result
from transforms.records import ClipResult, ClipRow
from transforms.write_audio import CleanFolder, CleanMemory

LONG_S = 60.0
"""Seconds above which a clip is a recording that is heard block by block, whatever its length."""

_BLOCK_S = 10.0
_NONE = np.zeros(0, np.float32)
# What disks, networks and full tables say for a while, and not for ever.
_PASSING = {
    getattr(errno, name)
    for name in [
        "EIO",
        "EAGAIN",
        "EINTR",
        "ESTALE",
        "ETIMEDOUT",
        "ENETDOWN",
        "ENETUNREACH",
        "EHOSTUNREACH",
        "EMFILE",
        "ENFILE",
        "ENOMEM",
        "EBUSY",
    ]
}

T = TypeVar("T")


class InferenceConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How clips go through the engine."""

    batch_size: Annotated[int, Meta(ge=1, le=256)] = 16  # clips in one call of a model; more is faster, up to the cache
    max_batch_s: Annotated[float, Meta(gt=0)] = 600.0  # seconds of decoded audio held at once; bounds the memory
    max_clip_s: Annotated[float, Meta(gt=0)] = 86_400.0  # seconds that one clip may last; a longer one is a bad row
    isolate: bool = True  # models run in a process of their own: a crash in native code or a hang costs one row
    # With isolate: seconds that clips may take beyond their own length; then their process is ended.
    time_limit_s: Annotated[float, Meta(gt=0)] = 300.0
    retries: Annotated[int, Meta(ge=0, le=10)] = 2  # further attempts after an error that may pass, such as of a disk
    retry_wait_s: Annotated[float, Meta(ge=0, le=60)] = 0.5  # seconds before the first of them; doubled each time


class Engine(Protocol):
    """What is needed of a SpeechEngine."""

    def run(self, clips: Sequence[Audio], batch_size: int, tally: CallTally) -> list[list[Event]]: ...

    def run_streams(self, streams: Sequence[Stream], batch_size: int, tally: CallTally) -> None: ...

    def made_by(self) -> MadeBy: ...


class Watch(Protocol):
    """Is told what is about to happen, since native code may never come back from it."""

    def begin(self, rows: Sequence[ClipRow], audio_s: float) -> None:
        """Work on these rows begins; audio_s: seconds of audio in it."""

    def go_on(self, rows: Sequence[ClipRow], audio_s: float) -> None:
        """Work on these rows has come further; audio_s: seconds of audio until more is said."""


class _Clip(NamedTuple):
    row: ClipRow
    audio: Audio


class _NoWatch:
    def begin(self, rows: Sequence[ClipRow], audio_s: float) -> None:
        pass

    def go_on(self, rows: Sequence[ClipRow], audio_s: float) -> None:
        pass


def infer_rows(
    engine: Engine,
    rows: Iterable[ClipRow],
    config: InferenceConfig,
    clean: CleanFolder | CleanMemory | None = None,
    watch: Watch | None = None,
    tally: CallTally | None = None,
) -> Iterator[ClipResult]:
    """Gives one result for every row, bad ones with their error. The order is not kept.

    Clips of like length share a batch; at most max_batch_s of audio (and one clip) is decoded at once. Recordings
    above LONG_S come after them, side by side, and a block of each is held.

    Args:
        clean: where clean audio goes; None: it is not kept.
        tally: counts the calls of models.
    """
    inference = _Inference(engine, config, clean, watch or _NoWatch(), tally or CallTally())
    clips, recordings = list[_Clip](), list[_Clip]()
    seconds = 0.0
    for row in rows:
        try:
            clip, is_whole = inference.load(row)
        except AudioError as error:
            yield inference.refuse(row, error)
            continue
        if not is_whole:
            recordings.append(clip._replace(audio=clip.audio._replace(samples=_NONE)))
            continue
        clips.append(clip)
        seconds += clip.audio.duration_s
        if seconds >= config.max_batch_s:
            yield from inference.answer(clips, inference.infer)
            clips, seconds = [], 0.0
    if clips:
        yield from inference.answer(clips, inference.infer)
    if recordings:
        yield from inference.answer(recordings, inference.hear)


class _Inference(NamedTuple):
    engine: Engine
    config: InferenceConfig
    clean: CleanFolder | CleanMemory | None
    watch: Watch
    tally: CallTally

    def load(self, row: ClipRow) -> tuple[_Clip, bool]:
        """Gives a clip, and whether that is all of it: of a recording there is only the beginning."""
        self.watch.begin([row], 0.0)

        def read() -> tuple[_Clip, bool]:
            blocks = read_clip(row, self.config.max_clip_s, LONG_S)
            return _Clip(row, next(blocks)), next(blocks, None) is None

        return self._patiently(read)

    def answer(self, clips: list[_Clip], run: Callable[[list[_Clip]], list[ClipResult]]) -> Iterator[ClipResult]:
        clips = sorted(clips, key=lambda clip: clip.audio.duration_s)
        try:
            yield from self._patiently(lambda: run(clips))
        except SpeechError as error:
            if len(clips) == 1:
                yield self.refuse(clips[0].row, error)
                return
            # One clip is to blame, and only that one may lose its answer.
            half = len(clips) // 2
            yield from self.answer(clips[:half], run)
            yield from self.answer(clips[half:], run)

    def infer(self, clips: list[_Clip]) -> list[ClipResult]:
        self.watch.begin([clip.row for clip in clips], sum(clip.audio.duration_s for clip in clips))
        answers = self.engine.run([clip.audio for clip in clips], self.config.batch_size, self.tally)
        made_by, results = self.engine.made_by(), []
        for (row, (samples, rate_hz)), events in zip(clips, answers, strict=True):
            # Of a recording in pieces the scout has written the clean audio, without seams.
            heard = HeardClip(row, rate_hz, self.clean if row.piece is None else None)
            heard.take(events)
            results.append(heard.result(len(samples), made_by))
        return results

    def hear(self, clips: list[_Clip]) -> list[ClipResult]:
        """As infer, for recordings, of which the clips have the rate alone: what is said is taken as it comes."""
        rows = [clip.row for clip in clips]
        self.watch.begin(rows, _BLOCK_S * len(rows))
        recordings = [_Recording(clip, self.config.max_clip_s, self.clean) for clip in clips]

        def go_on() -> None:
            self.watch.go_on(rows, _BLOCK_S * len(rows))

        try:
            self.engine.run_streams([each.stream(go_on) for each in recordings], self.config.batch_size, self.tally)
        except BaseException:
            for each in recordings:
                each.heard.discard()
            raise
        made_by = self.engine.made_by()
        return [
            self.refuse(each.row, each.error) if each.error else each.heard.result(each.samples, made_by)
            for each in recordings
        ]

    def refuse(self, row: ClipRow, error: SpeechError) -> ClipResult:
        return error_result(row, error, self.engine.made_by(), is_retriable(error))

    def _patiently(self, work: Callable[[], T]) -> T:
        """Tries again what may pass."""
        wait_s = self.config.retry_wait_s
        for _ in range(self.config.retries):
            try:
                return work()
            except SpeechError as error:
                if not is_retriable(error):
                    raise
            time.sleep(wait_s)
            wait_s *= 2
        return work()


class _Recording:
    """A row that is heard block by block; an error of its own audio ends it and nobody else."""

    def __init__(self, clip: _Clip, max_clip_s: float, clean: CleanFolder | CleanMemory | None) -> None:
        self.row = clip.row
        self.heard = HeardClip(clip.row, clip.audio.sample_rate_hz, clean)
        self.samples = 0
        self.error: AudioError | None = None
        self._rate_hz = clip.audio.sample_rate_hz
        self._max_clip_s = max_clip_s

    def stream(self, go_on: Callable[[], None]) -> Stream:
        """go_on: is called before each block."""
        return Stream(self._rate_hz, self._blocks(go_on), self.heard.take)

    def _blocks(self, go_on: Callable[[], None]) -> Iterator[np.ndarray]:
        try:
            for block in read_clip(self.row, self._max_clip_s, _BLOCK_S):
                go_on()
                self.samples += len(block.samples)
                yield block.samples
        except AudioError as error:
            self.error = error
            self.heard.discard()


def is_retriable(error: SpeechError) -> bool:
    """Whether the same work may succeed another time: an error says so, or a disk or network lies under it."""
    return error.retriable or (isinstance(error.__cause__, OSError) and error.__cause__.errno in _PASSING)
