"""From rows to answers, without Beam: decode each clip, run the engine on many, keep bad rows apart."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple, Protocol

import numpy as np
from msgspec import Meta, Struct

from model_runtime.audio import Audio, check_samples
from model_runtime.decode import decode_bytes, decode_file, encode_linear16
from model_runtime.errors import AudioError, SpeechError
from model_runtime.records import Enhanced, Event, Final, MadeBy, SpeechEnd, Word
from transforms.records import ClipResult, ClipRow, Segment
from transforms.result import samples_to_ms

# A manifest's `duration` without an `offset` is a description, rounded by whoever wrote it.
_ROUNDING_S = 0.01


class InferenceConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How clips go through the engine."""

    batch_size: Annotated[int, Meta(ge=1, le=256)] = 16  # clips in one call of a model; more is faster, up to the cache
    max_batch_s: Annotated[float, Meta(gt=0)] = 600.0  # seconds of decoded audio held at once; bounds the memory
    max_clip_s: Annotated[float, Meta(gt=0)] = 3600.0  # seconds that one clip may last; a longer one is a bad row


class Engine(Protocol):
    """What is needed of a SpeechEngine."""

    def run(self, clips: Sequence[Audio], batch_size: int) -> list[list[Event]]: ...

    def made_by(self) -> MadeBy: ...


class _Clip(NamedTuple):
    row: ClipRow
    audio: Audio


def infer_rows(
    engine: Engine, rows: Iterable[ClipRow], config: InferenceConfig, keep_enhanced: bool = False
) -> Iterator[ClipResult]:
    """Gives one result for every row, bad ones with their error. The order is not kept.

    Clips of like length share a batch; at most max_batch_s of audio (and one clip) is decoded at once.
    """
    clips: list[_Clip] = []
    seconds = 0.0
    for row in rows:
        try:
            audio = load_clip(row, config.max_clip_s)
        except AudioError as error:
            yield error_result(row, error, engine.made_by())
            continue
        clips.append(_Clip(row, audio))
        seconds += audio.duration_s
        if seconds >= config.max_batch_s:
            yield from _infer_clips(engine, clips, config.batch_size, keep_enhanced)
            clips, seconds = [], 0.0
    if clips:
        yield from _infer_clips(engine, clips, config.batch_size, keep_enhanced)


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
        raise AudioError(f"{row.name}: {message}") from error


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
    )


def _decode(row: ClipRow, start_s: float, duration_s: float) -> Audio:
    if row.data is None:
        return decode_file(row.path, start_s, duration_s)
    if row.sample_rate_hz == 0:
        return decode_bytes(row.data, row.name, start_s, duration_s)
    first, wanted = round(start_s * row.sample_rate_hz), round(duration_s * row.sample_rate_hz)
    samples = np.frombuffer(row.data, "<f4")
    if 0 < len(samples) <= first:
        raise AudioError(
            f"offset must lie within the audio, got {start_s} s in {len(samples) / row.sample_rate_hz:.3f} s"
        )
    return Audio(check_samples(samples[first : first + wanted]), row.sample_rate_hz)


def _infer_clips(engine: Engine, clips: list[_Clip], batch_size: int, keep_enhanced: bool) -> Iterator[ClipResult]:
    clips = sorted(clips, key=lambda clip: clip.audio.duration_s)
    try:
        answers = engine.run([clip.audio for clip in clips], batch_size)
    except SpeechError as error:
        if len(clips) == 1:
            yield error_result(clips[0].row, error, engine.made_by())
            return
        # One clip is to blame, and only that one may lose its answer.
        for clip in clips:
            yield from _infer_clips(engine, [clip], 1, keep_enhanced)
        return
    made_by = engine.made_by()
    for clip, events in zip(clips, answers, strict=True):
        yield clip_result(clip.row, clip.audio, events, made_by, keep_enhanced)
