"""A session's audio on its way to a file, in bounded memory: blocks of it lie beside the archive until it is whole.

Blocks have fixed borders, so whoever writes one, first or on a replay, writes the same bytes under the same name.
"""

import shutil
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import soundfile

from transforms.atomic_file import atomic_path
from transforms.row_name import safe_name
from transforms.stream_records import SessionAudio

BLOCK_SAMPLES = 1 << 19
"""Samples in a block, 1 MiB; of each session at most one block and a turn's audio are in memory."""

_SPOOL = ".spool"
# What a WAV can say of its own length, less its header; longer ones are RF64, which the same readers know.
_WAV_BYTES = 2**32 - 1_024


def cut_blocks(pieces: Sequence[SessionAudio], first_block: int) -> tuple[list[bytes], SessionAudio]:
    """Gives the whole blocks from number `first_block` on that the pieces hold, and what is left.

    Args:
        pieces: in any order; together all audio behind the blocks before.
    """
    ordered = sorted(pieces, key=lambda piece: piece.start_samples)
    pcm = b"".join(piece.pcm for piece in ordered)
    size = 2 * BLOCK_SAMPLES
    whole = len(pcm) // size
    rest = ordered[0]._replace(start_samples=(first_block + whole) * BLOCK_SAMPLES, pcm=pcm[whole * size :])
    return [pcm[size * index : size * (index + 1)] for index in range(whole)], rest


def spool_blocks(folder: Path, life: str, first_block: int, blocks: Sequence[bytes]) -> None:
    """Writes blocks of a session to where write_recording finds them."""
    for number, block in enumerate(blocks, first_block):
        with atomic_path(_spool(folder, life) / f"{number:06d}.pcm") as path:
            path.write_bytes(block)


def write_recording(folder: Path, form: str, event_ms: int, blocks: int, rest: SessionAudio) -> str:
    """Writes a session's audio as one file and gives its path, relative to the archive.

    Args:
        form: flac or wav.
        event_ms: the end of the session (Unix ms); recordings lie in a folder for each day.
        blocks: how many of them have been spooled.
        rest: what follows on them.
    """
    day = datetime.fromtimestamp(event_ms / 1000, timezone.utc).strftime("%Y-%m-%d")
    name = f"audio/{day}/{safe_name(rest.life, rest.life)}.{form}"
    spool = _spool(folder, rest.life)
    if blocks and not spool.exists() and (folder / name).exists():
        # A replay from before the end of the session: the recording is that of the first time.
        return name
    with atomic_path(folder / name) as path:
        long = form == "wav" and 2 * blocks * BLOCK_SAMPLES + len(rest.pcm) > _WAV_BYTES
        kind = "RF64" if long else form.upper()
        with soundfile.SoundFile(path, "w", rest.sample_rate_hz, 1, "PCM_16", format=kind) as file:
            for pcm in _parts(spool, blocks, rest):
                file.write(np.frombuffer(pcm, "<i2"))
    drop_spool(folder, rest.life)
    return name


def drop_spool(folder: Path, life: str) -> None:
    """Removes what has been spooled of a session."""
    shutil.rmtree(_spool(folder, life), ignore_errors=True)


def _parts(spool: Path, blocks: int, rest: SessionAudio) -> Iterator[bytes]:
    for number in range(blocks):
        yield (spool / f"{number:06d}.pcm").read_bytes()
    yield rest.pcm


def _spool(folder: Path, life: str) -> Path:
    return folder / _SPOOL / safe_name(life, life)
