"""The answers to the pieces of a recording, put together again: in order, in the recording's time, each word once."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from model_runtime.records import Word
from transforms.records import ClipResult, Piece, Segment
from transforms.word_seam import word_seam


class PieceLine(msgspec.Struct, frozen=True):
    """A piece among the lines of a part: what lines of rows have as well, for those who count them, and the result."""

    error: str
    error_class: str
    error_retriable: bool
    duration: float | None
    device: str
    model: str
    result: ClipResult


def to_piece_line(result: ClipResult) -> bytes:
    """Gives a piece's result as a JSON object."""
    outcome = result.error, result.error_class, result.error_retriable
    return msgspec.json.encode(PieceLine(*outcome, result.duration_s, result.device, result.model, result))


def from_piece_line(line: bytes) -> ClipResult:
    """Undoes to_piece_line."""
    return msgspec.json.decode(line, type=PieceLine).result


def join_pieces(results: Sequence[ClipResult]) -> ClipResult:
    """Gives the result of a recording from those of all its pieces, in their order.

    Where a piece is bad the recording is: its text would have a hole that nobody sees. The error says where.
    """
    bad = [result for result in results if result.error]
    if bad:
        return _bad(bad, len(results))
    pieces = [_piece(result) for result in results]
    words = [_shifted(result.words, piece) for result, piece in zip(results, pieces, strict=True)]
    kept = _kept(words, pieces)
    texts = [_text(result, first, last) for result, (first, last) in zip(results, kept, strict=True)]
    return results[0]._replace(
        pred_text=" ".join(text for text in texts if text),
        words=[word for each, (first, last) in zip(words, kept, strict=True) for word in each[first:last]],
        segments=_united(results, pieces),
        duration_s=round(pieces[-1].end_s, 6),
        device=",".join(dict.fromkeys(result.device for result in results)),
        piece=None,
    )


def _bad(bad: Sequence[ClipResult], pieces: int) -> ClipResult:
    first = bad[0]
    start_s, end_s = _piece(first)[3:]
    return first._replace(
        error=f"{len(bad)} of {pieces} pieces are bad, the first from {start_s:.1f} to {end_s:.1f} s: {first.error}",
        error_retriable=all(result.error_retriable for result in bad),
        piece=None,
    )


def _piece(result: ClipResult) -> Piece:
    if result.piece is None:
        raise TypeError(f"row {result.row} of source {result.source} is no piece")
    return result.piece


def _shifted(words: Sequence[Word], piece: Piece) -> list[Word]:
    """Gives words in the recording's time."""
    at = _ms(piece.start_s)
    return [word._replace(start_ms=at + word.start_ms, end_ms=at + word.end_ms) for word in words]


def _kept(words: Sequence[Sequence[Word]], pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """Gives which words of each piece stand in the answer: first, last + 1. Where pieces overlap, others have them."""
    firsts, lasts = [0], []
    for (left, right), (before, after) in zip(pairwise(words), pairwise(pieces), strict=True):
        last, first = len(left), 0
        if after.start_s < before.end_s:
            last, first = word_seam(left, right, _ms((after.start_s + before.end_s) / 2))
        lasts.append(max(last, firsts[-1]))
        firsts.append(first)
    return list(zip(firsts, [*lasts, len(words[-1])], strict=True))


def _text(result: ClipResult, first: int, last: int) -> str:
    """Gives the text of these words, as it is written there."""
    if (first, last) == (0, len(result.words)):
        return result.pred_text
    at, places = 0, list[tuple[int, int]]()
    for word in result.words:
        begin = result.pred_text.find(word.text, at)
        if begin < 0:
            return " ".join(word.text for word in result.words[first:last])
        at = begin + len(word.text)
        places.append((begin, at))
    return result.pred_text[places[first][0] : places[last - 1][1]] if first < last else ""


def _united(results: Sequence[ClipResult], pieces: Sequence[Piece]) -> list[Segment]:
    """Gives the speech of all pieces; what touches over a cut, or overlaps, is one stretch."""
    shifts = [_ms(piece.start_s) for piece in pieces]
    found = [
        Segment(shift + start_ms, shift + end_ms)
        for result, shift in zip(results, shifts, strict=True)
        for start_ms, end_ms in result.segments
    ]
    united: list[Segment] = []
    for segment in sorted(found):
        if united and segment.start_ms <= united[-1].end_ms:
            united[-1] = Segment(united[-1].start_ms, max(united[-1].end_ms, segment.end_ms))
        else:
            united.append(segment)
    return united


def _ms(seconds: float) -> int:
    return round(1000 * seconds)
