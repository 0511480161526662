"""From rows to answers, without Beam: decode each clip, run the engine on many, keep bad rows apart."""

import errno
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple, Protocol, TypeVar

import numpy as np
from msgspec import Meta, Struct

from model_runtime.audio import Audio, check_samples
from model_runtime.calls import CallTally
from model_runtime.decode import decode_bytes, encode_linear16
from model_runtime.errors import AudioError, SpeechError
from model_runtime.records import Enhanced, Event, Final, MadeBy, SpeechEnd, Word
from transforms.file_access import decode_audio
from transforms.milliseconds import samples_to_ms
from transforms.records import ClipResult, ClipRow, Segment

# A manifest's `duration` without an `offset` is a description, rounded by whoever wrote it.
_ROUNDING_S = 0.01
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
    max_clip_s: Annotated[float, Meta(gt=0)] = 3600.0  # seconds that one clip may last; a longer one is a bad row
    isolate: bool = True  # models run in a process of their own: a crash in native code or a hang costs one row
    # With isolate: seconds that clips may take beyond their own length; then their process is ended.
    time_limit_s: Annotated[float, Meta(gt=0)] = 300.0
    retries: Annotated[int, Meta(ge=0, le=10)] = 2  # further attempts after an error that may pass, such as of a disk
    retry_wait_s: Annotated[float, Meta(ge=0, le=60)] = 0.5  # seconds before the first of them; doubled each time


class Engine(Protocol):
    """What is needed of a SpeechEngine."""

    def run(self, clips: Sequence[Audio], batch_size: int, tally: CallTally) -> list[list[Event]]: ...

    def made_by(self) -> MadeBy: ...


class Watch(Protocol):
    """Is told what is about to happen, since native code may never come back from it."""

    def begin(self, rows: Sequence[ClipRow], audio_s: float) -> None:
        """Work on these rows begins; audio_s: seconds of audio in it."""


class _Clip(NamedTuple):
    row: ClipRow
    audio: Audio


class _NoWatch:
    def begin(self, rows: Sequence[ClipRow], audio_s: float) -> None:
        pass


def infer_rows(
    engine: Engine,
    rows: Iterable[ClipRow],
    config: InferenceConfig,
    keep_enhanced: bool = False,
    watch: Watch | None = None,
    tally: CallTally | None = None,
) -> Iterator[ClipResult]:
    """Gives one result for every row, bad ones with their error. The order is not kept.

    Clips of like length share a batch; at most max_batch_s of audio (and one clip) is decoded at once.

    Args:
        tally: counts the calls of models.
    """
    inference = _Inference(engine, config, keep_enhanced, watch or _NoWatch(), tally or CallTally())
    clips: list[_Clip] = []
    seconds = 0.0
    for row in rows:
        try:
            clip = inference.load(row)
        except AudioError as error:
            yield error_result(row, error, engine.made_by())
            continue
        clips.append(clip)
        seconds += clip.audio.duration_s
        if seconds >= config.max_batch_s:
            yield from inference.infer(clips)
            clips, seconds = [], 0.0
    if clips:
        yield from inference.infer(clips)


class _Inference(NamedTuple):
    engine: Engine
    config: InferenceConfig
    keep_enhanced: bool
    watch: Watch
    tally: CallTally

    def load(self, row: ClipRow) -> _Clip:
        self.watch.begin([row], 0.0)
        return _Clip(row, self._patiently(lambda: load_clip(row, self.config.max_clip_s)))

    def infer(self, clips: list[_Clip]) -> Iterator[ClipResult]:
        clips = sorted(clips, key=lambda clip: clip.audio.duration_s)
        self.watch.begin([clip.row for clip in clips], sum(clip.audio.duration_s for clip in clips))
        audio = [clip.audio for clip in clips]
        try:
            answers = self._patiently(lambda: self.engine.run(audio, self.config.batch_size, self.tally))
        except SpeechError as error:
            if len(clips) == 1:
                yield error_result(clips[0].row, error, self.engine.made_by())
                return
            # One clip is to blame, and only that one may lose its answer.
            half = len(clips) // 2
            yield from self.infer(clips[:half])
            yield from self.infer(clips[half:])
            return
        made_by = self.engine.made_by()
        for clip, events in zip(clips, answers, strict=True):
            yield clip_result(clip.row, clip.audio, events, made_by, self.keep_enhanced)

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


def is_retriable(error: SpeechError) -> bool:
    """Whether the same work may succeed another time: an error says so, or a disk or network lies under it."""
    return error.retriable or (isinstance(error.__cause__, OSError) and error.__cause__.errno in _PASSING)


def load_clip(row: ClipRow, max_clip_s: float) -> Audio:
    """Gives a row's audio, or the part of it that the row selects.

    Raises:
        AudioError: the row was bad when it was read, its audio cannot be decoded, or is too long; names the row.
    """
    if row.error:
        raise AudioError(row.error)
    try:
        return _load_clip(row, max_clip_s)
    except AudioError as error:
        message = str(error)
        if row.name in message:
            raise
        # The cause says whether another attempt may help.
        raise AudioError(f"{row.name}: {message}") from error.__cause__ or error


def _load_clip(row: ClipRow, max_clip_s: float) -> Audio:
    start_s = row.start_s or 0.0
    wanted_s = max_clip_s if row.duration_s is None else min(row.duration_s, max_clip_s)
    audio = _decode(row, start_s, wanted_s + _ROUNDING_S)
    rate_hz, got = audio.sample_rate_hz, len(audio.samples)
    if row.duration_s is not None and row.duration_s <= max_clip_s:
        ended = got < round((wanted_s + _ROUNDING_S) * rate_hz)
        wanted = got if ended and row.start_s is None else round(wanted_s * rate_hz)
        return Audio(audio.samples[:wanted], rate_hz)
    if got > max_clip_s * rate_hz:
        raise AudioError(f"must last at most inference.max_clip_s = {max_clip_s:g} s, and lasts longer")
    return audio


def clip_result(
    row: ClipRow, audio: Audio, events: Sequence[Event], made_by: MadeBy, keep_enhanced: bool
) -> ClipResult:
    """Gives what the events of a clip say about its row."""
    finals = [event for event in events if isinstance(event, Final)]
    ended = [event for event in events if isinstance(event, SpeechEnd)]
    rate_hz = audio.sample_rate_hz
    clean = b"".join(event.pcm for event in events if isinstance(event, Enhanced)) if keep_enhanced else None
    return ClipResult(
        source=row.source,
        row=row.row,
        source_path=row.source_path,
        columns=row.columns,
        pred_text=" ".join(final.text for final in finals if final.text),
        words=[Word(*word) for final in finals for word in final.words],
        segments=[
            Segment(samples_to_ms(event.start_samples, rate_hz), samples_to_ms(event.end_samples, rate_hz))
            for event in ended
        ],
        duration_s=round(audio.duration_s, 6),
        model=made_by.model,
        device=made_by.device,
        error="",
        error_class="",
        sample_rate_hz=rate_hz,
        enhanced=None if clean is None else encode_linear16(np.frombuffer(clean, "<f4")),
    )


def error_result(row: ClipRow, error: SpeechError, made_by: MadeBy) -> ClipResult:
    """Gives the result of a row that cannot be used: its columns and the reason."""
    return ClipResult(
        source=row.source,
        row=row.row,
        source_path=row.source_path,
        columns=row.columns,
        pred_text="",
        words=[],
        segments=[],
        duration_s=None,
        model=made_by.model,
        device=made_by.device,
        error=str(error),
        error_class=type(error).__name__,
        error_retriable=is_retriable(error),
    )


def _decode(row: ClipRow, start_s: float, duration_s: float) -> Audio:
    if row.data is None:
        return decode_audio(row.path, start_s, duration_s)
    if row.sample_rate_hz == 0:
        return decode_bytes(row.data, row.name, start_s, duration_s)
    first, wanted = round(start_s * row.sample_rate_hz), round(duration_s * row.sample_rate_hz)
    samples = np.frombuffer(row.data, "<f4")
    if 0 < len(samples) <= first:
        raise AudioError(
            f"offset must lie within the audio, got {start_s} s in {len(samples) / row.sample_rate_hz:.3f} s"
        )
    return Audio(check_samples(samples[first : first + wanted]), row.sample_rate_hz)
