"""The report of a run as one page of HTML that needs no other file and no network."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from pipelines.report_recordings import Recording
from pipelines.run_record import RunRecord
from transforms.file_access import beside, is_url

_TICKS_S = (0.5, 1, 2, 5, 10, 20, 60)
_STATES = {"done": "done", "failed": "failed", "too_many_errors": "too many errors", "running": "running"}


def page(
    record: RunRecord,
    recordings: Sequence[Recording],
    bad_rows: Mapping[str, Sequence[Mapping[str, Any]]],
    durations_s: Sequence[int],
) -> str:
    """Gives the page.

    Args:
        bad_rows: for each of the record's reasons some of its rows.
        durations_s: how many recordings last how long, by powers of two: up to 1 s, 2 s, 4 s, ...
    """
    body = "\n".join(
        [
            _head(record),
            _tiles(record),
            _reasons(record, bad_rows),
            _recordings(recordings),
            _durations(durations_s),
            _details(record),
        ]
    )
    resources = files("pipelines")
    style, script = ((resources / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(_title(record))}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _title(record: RunRecord) -> str:
    return f"{record.rows_in:,} rows, {record.began[:10]}"


def _head(record: RunRecord) -> str:
    config = record.config
    source = config.get("input", "")
    source = source if isinstance(source, str) else ", ".join(source)
    message = f'<p class="message">{escape(record.message)}</p>' if record.message else ""
    return f"""<header>
<p class="eyebrow">unison-speech · batch run</p>
<h1>{escape(_title(record))} <span class="state {record.state}">{_STATES[record.state]}</span></h1>
<p class="where">{escape(source)} → {escape(str(config.get("output", "")))}</p>
<p class="where">recipe <b>{escape(str(config.get("recipe", "")))}</b> on {escape(record.host)},
{escape(record.began.replace("T", " "))} to {escape((record.ended or "?").replace("T", " "))}</p>
{message}</header>"""


def _tiles(record: RunRecord) -> str:
    tiles = [
        ("results", f"{record.results:,}", f"of {record.rows_in:,} rows"),
        ("errors", f"{record.errors:,}", _share(record.errors, record.rows_in, f"{record.retriable:,} may pass")),
        ("audio", _length(record.audio_s), f"{_length(record.new_audio_s)} of it in this run"),
        ("speed", _speed(record), f"{_length(record.wall_s)} of wall time"),
        ("from earlier runs", f"{record.reused:,}", "rows taken over"),
    ]
    if record.padding_share is not None:
        rows = f"batches of {record.batch_rows:.1f} rows" if record.batch_rows else ""
        tiles.append(("padding", f"{100 * record.padding_share:.1f} %", rows))
    for model, size in record.fixed_batch_sizes.items():
        tiles.append(("fixed batch", str(size), f"{escape(model)} takes no other"))
    if record.quarantined or record.worker_restarts:
        tiles.append(("quarantined", f"{record.quarantined:,}", f"{record.worker_restarts:,} restarts of a worker"))
    cells = "\n".join(
        f'<div class="tile {name.split()[0]}"><dt>{name}</dt><dd>{value}</dd><p>{note}</p></div>'
        for name, value, note in tiles
    )
    fresh = max(0, record.rows - record.reused - record.errors)
    parts = (("fresh", fresh), ("reused", max(0, record.results - fresh)), ("bad", record.errors))
    bar = "".join(
        f'<span class="{name}" style="flex-grow:{count}" title="{count:,}"></span>' for name, count in parts if count
    )
    return f'<section>\n<dl class="tiles">\n{cells}\n</dl>\n<div class="bar">{bar}</div>\n{_devices(record)}</section>'


def _devices(record: RunRecord) -> str:
    cells = [
        f"<li><b>{escape(name)}</b> {count:,} rows</li>"
        for names in (record.devices, record.models)
        for name, count in names.items()
    ]
    return f'<ul class="devices">{"".join(cells)}</ul>'


def _reasons(record: RunRecord, bad_rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    if not record.reasons:
        return ""
    most = max(record.reasons.values())
    blocks = []
    for reason, count in record.reasons.items():
        kind, _, text = reason.partition(": ")
        rows = "\n".join(f"<li>{_row_link(row)}<p>{escape(row['error'])}</p></li>" for row in bad_rows.get(reason, ()))
        more = count - len(bad_rows.get(reason, ()))
        rest = f'<li class="rest">and {more:,} more</li>' if more > 0 else ""
        blocks.append(
            f'<details class="reason"><summary><span class="count">{count:,}</span>'
            f'<span class="meter"><i style="width:{100 * count / most:.1f}%"></i></span>'
            f'<span class="why">{escape(text or kind)} <small>{escape(kind)}</small></span></summary>\n'
            f"<ul>\n{rows}{rest}</ul></details>"
        )
    return f"<section>\n<h2>Errors by reason</h2>\n{''.join(blocks)}\n</section>"


def _row_link(row: Mapping[str, Any]) -> str:
    name = f"{row['source_file']} · row {row['source_row']}"
    audio = row.get("audio_filepath") or row.get("audio_filename")
    target = beside(row["source_file"], str(audio)) if audio else row["source_file"]
    link = target if is_url(target) else Path(target).absolute().as_uri()
    return f'<a href="{escape(link)}">{escape(name)}</a>'


def _recordings(recordings: Sequence[Recording]) -> str:
    if not recordings:
        return ""
    return f"<section>\n<h2>What was heard</h2>\n{''.join(map(_recording, recordings))}\n</section>"


def _recording(recording: Recording) -> str:
    row, length_ms = recording.row, 1000 * recording.shown_s
    sounds = "\n".join(
        f'<div class="sound"><img src="{sound.picture}" alt="spectrogram {sound.title}">'
        f'<span class="tag">{sound.title if len(recording.sounds) > 1 else ""}</span>'
        f'<button data-audio="{sound.audio}" aria-label="listen, {sound.title}">▶</button></div>'
        for sound in recording.sounds
    )
    words = "".join(
        f'<span class="word" style="{_place(word, length_ms)};--c:{word["confidence"]:.2f}" '
        f'title="{word["start_ms"] / 1000:.2f} s to {word["end_ms"] / 1000:.2f} s, '
        f'confidence {word["confidence"]:.2f}"><b>{escape(word["text"])}</b></span>'
        for word in row["words"]
        if word["start_ms"] < length_ms
    )
    segments = "".join(
        f'<span class="segment" style="{_place(segment, length_ms)}"></span>'
        for segment in row["segments"]
        if segment["start_ms"] < length_ms
    )
    name = Path(str(row.get("audio_filepath") or row.get("audio_filename") or row["source_file"])).name
    cut = f", the first {recording.shown_s:.0f} s" if (row["duration"] or 0) > recording.shown_s + 0.1 else ""
    return f"""<article>
<h3>{_row_link(row).replace(escape(f"{row['source_file']} · row {row['source_row']}"), escape(name))}
<small>{row["duration"]:.1f} s{cut}</small></h3>
<p class="text">{escape(row["pred_text"]) or "<i>no words</i>"}</p>
<div class="timeline" data-ms="{length_ms:.0f}">
{sounds}
<div class="segments">{segments}</div>
<div class="words">{words}</div>
<div class="axis">{_axis(recording.shown_s)}</div>
<i class="playhead"></i>
</div>
</article>
"""


def _place(span: Mapping[str, Any], length_ms: float) -> str:
    start, end = span["start_ms"], min(span["end_ms"], length_ms)
    return f"left:{100 * start / length_ms:.3f}%;width:{100 * (end - start) / length_ms:.3f}%"


def _axis(shown_s: float) -> str:
    step = next((step for step in _TICKS_S if shown_s / step <= 12), _TICKS_S[-1])
    # The last mark's figure must have room.
    marks = [number * step for number in range(int(shown_s / step) + 1) if number * step < 0.97 * shown_s]
    return "".join(f'<span style="left:{100 * mark / shown_s:.3f}%">{mark:g} s</span>' for mark in marks)


def _durations(counts: Sequence[int]) -> str:
    if not any(counts):
        return ""
    most = max(counts)
    bars = "".join(
        f'<div title="{count:,} recordings"><i style="height:{100 * count / most:.1f}%"></i>'
        f"<span>{2**power}</span></div>"
        for power, count in enumerate(counts)
    )
    return (
        f'<section>\n<h2>Length of recordings</h2>\n<div class="histogram">{bars}</div>\n'
        f'<p class="unit">up to so many seconds</p>\n</section>'
    )


def _details(record: RunRecord) -> str:
    text = json.dumps(record.config, indent=2, ensure_ascii=False)
    return f"<section>\n<details><summary>Configuration</summary><pre>{escape(text)}</pre></details>\n</section>"


def _share(count: int, total: int, note: str) -> str:
    return f"{100 * count / total:.2f} %, {note}" if total else "-"


def _speed(record: RunRecord) -> str:
    if not record.real_time_factor:
        return "-"
    return f"{1 / record.real_time_factor:,.0f}× <small>real time</small>"


def _length(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{minutes:.1f} min" if minutes < 120 else f"{hours:,.1f} h"
