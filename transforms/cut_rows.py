"""The work of cutting rows for the accurate answer, without Beam: long ones become rows of their own for each piece."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import soundfile

from model_runtime.errors import AudioError
from model_runtime.recipe import load_recipe
from model_runtime.records import MadeBy
from transforms.atomic_file import atomic_path
from transforms.batch_work import BatchWork, Runner, row_key_of
from transforms.clip_inference import is_retriable
from transforms.clip_workers import Effort
from transforms.cut_points import cut_points
from transforms.file_access import fetch, is_url
from transforms.finished_rows import FinishedRows
from transforms.heard_clip import error_result
from transforms.records import ClipResult, KeyedRow, PartRows, Piece, RowKey, Segment, place_of
from transforms.scout import piece_length
from transforms.work_order import WorkOrder


class CutWork:
    """Cuts batches of rows."""

    def __init__(self, order: WorkOrder, scout: Runner, finished: FinishedRows) -> None:
        """Takes what hears where speech is, and what earlier runs have done."""
        self._order = order
        self._scout = scout
        self._finished = finished
        self._work = BatchWork(order, scout)
        self._length = piece_length(load_recipe(order.recipe))

    def do(self, batch: Sequence[KeyedRow]) -> Iterator[KeyedRow | PartRows]:
        """Gives each row as it is, or its pieces where it is too long for one; and at last those that are done already.

        Done are bad rows, and pieces that a run has finished which was killed.
        """
        rows = {place_of(each.row): each for each in batch}
        effort, bad = Effort(), list[tuple[KeyedRow, ClipResult]]()
        for result in self._scout.run([each.row for each in batch], effort):
            row = rows[place_of(result)]
            if result.error:
                bad.append((row, result))
            elif 1000 * (result.duration_s or 0.0) <= self._length.most_ms:
                yield row
            else:
                try:
                    on_disk = self._on_disk(row)
                except AudioError as error:
                    made_by = MadeBy(result.model, result.device)
                    bad.append((row, error_result(row.row, error, made_by, is_retriable(error))))
                    continue
                yield from self._pieces(on_disk, result)
        yield from self._work.keep(bad, effort)

    def _pieces(self, row: KeyedRow, heard: ClipResult) -> Iterator[KeyedRow | PartRows]:
        finished: dict[str, list[RowKey]] = {}
        for each in cut_row(row, heard, self._cuts(heard)):
            found = self._finished.find(each.key)
            if found is None:
                yield each
            else:
                finished.setdefault(found.part, []).append(row_key_of(each))
        for name, keys in finished.items():
            yield PartRows(row.part, name, keys)

    def _cuts(self, heard: ClipResult) -> list[Segment]:
        return cut_points(heard.segments, round(1000 * (heard.duration_s or 0.0)), self._length)

    def _on_disk(self, row: KeyedRow) -> KeyedRow:
        """Puts audio of a table or a URL into a file, or each of its pieces would carry or fetch all of it."""
        data, rate_hz = row.row.data, row.row.sample_rate_hz
        if data is None and not is_url(row.row.path):
            return row
        path = audio_path(self._order.parts_folder, row.key)
        with atomic_path(path) as temporary:
            if data is not None and rate_hz:
                soundfile.write(temporary, np.frombuffer(data, "<f4"), rate_hz, subtype="FLOAT", format="WAV")
            elif data is not None:
                temporary.write_bytes(data)
            else:
                with open(temporary, "wb") as target:
                    fetch(row.row.path, target)
        return row._replace(row=row.row._replace(data=None, sample_rate_hz=0, path=str(path)))


def cut_row(row: KeyedRow, heard: ClipResult, cuts: Sequence[Segment]) -> Iterator[KeyedRow]:
    """Gives the rows of the pieces: they meet at one sample where they do not overlap."""
    rate_hz = heard.sample_rate_hz
    samples = round((heard.duration_s or 0.0) * rate_hz)
    offset = round((row.row.start_s or 0.0) * rate_hz)
    for number, (start_ms, end_ms) in enumerate(cuts):
        first, last = start_ms * rate_hz // 1000, min(samples, end_ms * rate_hz // 1000)
        if number == len(cuts) - 1:
            last = samples
        piece = Piece(row.key, number, len(cuts), first / rate_hz, last / rate_hz)
        part = row.row._replace(
            name=f"{row.row.name} ({piece.start_s:.1f} to {piece.end_s:.1f} s)",
            start_s=(offset + first) / rate_hz,
            duration_s=(last - first) / rate_hz,
            piece=piece,
        )
        yield KeyedRow(row.part, _piece_key(piece), part)


def audio_path(folder: Path, key: str) -> Path:
    """Gives where the audio of a row lies, below the folder of parts, while its pieces are under way."""
    # A name of what is unfinished: what a run that is killed leaves, the next one clears away.
    return folder / f".{key}.tmp"


def _piece_key(piece: Piece) -> str:
    return hashlib.blake2b(repr(piece).encode(), digest_size=16).hexdigest()
