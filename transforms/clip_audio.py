"""The audio of a row, or the part of it that the row selects, in blocks: a recording of hours is never held whole."""

from collections.abc import Iterable, Iterator
from io import BytesIO
from math import inf

import numpy as np

from model_runtime.audio import Audio, check_samples
from model_runtime.decode import decode_open
from model_runtime.errors import AudioError
from transforms.file_access import read_audio
from transforms.records import ClipRow

# A manifest's `duration` without an `offset` is a description, rounded by whoever wrote it.
_ROUNDING_S = 0.01


def read_clip(row: ClipRow, max_clip_s: float, block_s: float = inf) -> Iterator[Audio]:
    """Gives a row's audio in blocks of about `block_s` seconds, at least one.

    Raises:
        AudioError: the row was bad when it was read, its audio cannot be decoded, or is too long; names the row.
    """
    if row.error:
        raise AudioError(row.error)
    try:
        yield from _read_clip(row, max_clip_s, block_s)
    except AudioError as error:
        message = str(error)
        if row.name in message:
            raise
        # The cause says whether another attempt may help.
        raise AudioError(f"{row.name}: {message}") from error.__cause__ or error


def _read_clip(row: ClipRow, max_clip_s: float, block_s: float) -> Iterator[Audio]:
    wanted_s = max_clip_s if row.duration_s is None else min(row.duration_s, max_clip_s)
    blocks = _decode(row, row.start_s or 0.0, wanted_s + _ROUNDING_S, block_s)
    if row.duration_s is not None and row.duration_s <= max_clip_s:
        yield from _selected(blocks, wanted_s, row.start_s is not None)
        return
    got = 0
    for block in blocks:
        got += len(block.samples)
        if got > max_clip_s * block.sample_rate_hz:
            raise AudioError(f"must last at most inference.max_clip_s = {max_clip_s:g} s, and lasts longer")
        yield block


def _selected(blocks: Iterable[Audio], wanted_s: float, is_part: bool) -> Iterator[Audio]:
    """Gives the first `wanted_s` seconds; of a whole file that ends just behind them, all of it."""
    got, held = 0, list[Audio]()
    for block in blocks:
        got += len(block.samples)
        if got < round(wanted_s * block.sample_rate_hz):
            yield block
        else:
            held.append(block)
    if not held:
        return
    rate_hz = held[0].sample_rate_hz
    ended = got < round((wanted_s + _ROUNDING_S) * rate_hz)
    excess = 0 if ended and not is_part else got - round(wanted_s * rate_hz)
    rest = np.concatenate([block.samples for block in held])
    yield Audio(rest[: len(rest) - excess], rate_hz)


def _decode(row: ClipRow, start_s: float, duration_s: float, block_s: float) -> Iterator[Audio]:
    if row.data is None:
        return read_audio(row.path, start_s, duration_s, block_s)
    if row.sample_rate_hz == 0:
        return decode_open(BytesIO(row.data), row.name, start_s, duration_s, block_s)
    return _raw_blocks(np.frombuffer(row.data, "<f4"), row.sample_rate_hz, start_s, duration_s, block_s)


def _raw_blocks(
    samples: np.ndarray, rate_hz: int, start_s: float, duration_s: float, block_s: float
) -> Iterator[Audio]:
    first = round(start_s * rate_hz)
    if 0 < len(samples) <= first:
        raise AudioError(f"offset must lie within the audio, got {start_s} s in {len(samples) / rate_hz:.3f} s")
    part = samples[first : first + round(duration_s * rate_hz)]
    size = max(1, len(part)) if block_s == inf else round(block_s * rate_hz)
    for at in range(0, max(1, len(part)), size):
        yield Audio(check_samples(part[at : at + size]), rate_hz)
