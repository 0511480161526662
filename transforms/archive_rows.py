"""From results to the rows of an archive; the same results give the same rows, whatever the clock says."""

from collections.abc import Sequence
from typing import Any

import msgspec

from transforms.archive_config import ArchiveConfig
from transforms.archive_file import FINALS, SESSIONS, ArchiveRow
from transforms.result import Result


def final_row(final: Result, stream_ms: int, config: ArchiveConfig) -> ArchiveRow:
    """Gives the row of a final that was said at this stream time."""
    columns = {
        "result_id": final.result_id,
        "session": final.session,
        "utterance": final.utterance,
        "text": final.text,
        "words": [word._asdict() for word in final.words],
        "start_ms": final.start_ms,
        "end_ms": final.end_ms,
        "model": final.model,
        "device": final.device,
        "shed": final.shed,
    }
    return _row(FINALS, final, columns, stream_ms, config)


def session_row(
    end: Result, finals: Sequence[Result], recording: str, stream_ms: int, config: ArchiveConfig
) -> ArchiveRow:
    """Gives the row of a session.

    Args:
        end: its session_end.
        finals: in any order.
        recording: its audio, relative to the archive; "" for none.
    """
    ordered = sorted(finals, key=lambda final: final.utterance)
    columns = {
        # Relative to the table, as the batch job takes it.
        "audio": {"bytes": None, "path": f"../{recording}"} if recording else None,
        "result_id": end.result_id,
        "session": end.session,
        "text": " ".join(final.text for final in ordered if final.text),
        "duration": end.end_ms / 1000,
        "reason": end.reason,
        "utterances": len(ordered),
        "word_count": sum(len(final.words) for final in ordered),
        "speech_s": sum(final.end_ms - final.start_ms for final in ordered) / 1000,
        "missing_chunks": sum(gap.chunks for gap in end.gaps),
        "duplicates": end.duplicates,
        "model": end.model,
        "device": end.device,
        "shed": sorted({stage for result in [*ordered, end] for stage in result.shed}),
    }
    return _row(SESSIONS, end, columns, stream_ms, config)


def table_time_ms(row: ArchiveRow, stream_ms: int) -> int:
    """Gives the time whose window's table takes a row that was said at this stream time."""
    return stream_ms if row.late else row.event_ms


def _row(kind: str, result: Result, columns: dict[str, Any], stream_ms: int, config: ArchiveConfig) -> ArchiveRow:
    event_ms = stream_ms if result.event_ms is None else result.event_ms
    closed_ms = (event_ms // config.window_ms + 1) * config.window_ms + config.allowed_lateness_ms
    # The watermark never passes the stream time of what is on its way, so whoever is not late by this is not late to
    # the runner either, which would drop it without a word; and a replay decides the same.
    return ArchiveRow(kind, closed_ms <= stream_ms, event_ms, msgspec.json.encode(columns))
