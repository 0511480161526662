"""Measures results: word and character errors, clean audio, speech segments, and two runs against each other.

python -m pipelines.evaluate out
python -m pipelines.evaluate accurate --against streaming.jsonl --json figures.json
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from model_runtime.audio import Audio
from model_runtime.decode import decode_file
from model_runtime.errors import AudioError, SpeechError
from pipelines.command_line import report
from pipelines.result_files import Row, read_results, row_names
from pipelines.sound_quality import measures
from pipelines.speech_errors import Span, SpeechErrors, speech_errors
from pipelines.text_errors import TextErrors, character_errors, normalised, word_errors

_WORST_ROWS = 10


def text_figures(rows: Sequence[Row], column: str) -> dict[str, Any]:
    """Gives the error rates of the rows that have a reference text; {} where none has."""
    pairs = [(row, normalised(str(row[column])), normalised(row["pred_text"] or "")) for row in rows if row.get(column)]
    if not pairs:
        return {}
    references, texts = [reference for _, reference, _ in pairs], [text for _, _, text in pairs]
    each = [(word_errors([reference], [text]), row, reference, text) for row, reference, text in pairs]
    worst = sorted(each, key=lambda found: -found[0].edits)[:_WORST_ROWS]
    return {
        "rows": len(pairs),
        "wer": _rate(word_errors(references, texts)),
        "cer": _rate(character_errors(references, texts)),
        "rows_without_an_error": sum(not found[0].edits for found in each),
        "worst": [
            {"row": row_names(row)[0], "word_errors": errors.edits, "reference": reference, "text": text}
            for errors, row, reference, text in worst
            if errors.edits
        ],
    }


def sound_figures(rows: Sequence[Row], column: str, folder: Path) -> dict[str, Any]:
    """Gives the means over the rows that have clean audio and, in `column`, the path of the truth; {} without any.

    Paths of the truth are relative to the row's source file. `*_gain` is against the audio that came in.
    """
    sums: dict[str, list[float]] = {}
    skipped: list[str] = []
    for row in rows:
        if not row.get(column) or not row.get("enhanced_filepath"):
            continue
        base = Path(row["source_file"]).parent
        try:
            truth = decode_file(base / str(row[column]))
            clean = measures(*_aligned(truth, decode_file(folder / row["enhanced_filepath"])))
            noisy = measures(*_aligned(truth, decode_file(base / str(row["audio_filepath"]))))
        except AudioError as error:
            skipped.append(f"{row_names(row)[0]}: {error}")
            continue
        for name, value in clean.items():
            sums.setdefault(name, []).append(value)
            sums.setdefault(f"{name}_gain", []).append(value - noisy[name])
    if not sums and not skipped:
        return {}
    rows_measured = len(sums.get("si_sdr_db", []))
    return {
        "rows": rows_measured,
        **{name: round(sum(values) / len(values), 4) for name, values in sums.items()},
        "skipped": skipped,
    }


def speech_figures(rows: Sequence[Row], column: str, collar_ms: int) -> dict[str, Any]:
    """Gives the errors of the segments of rows that have true ones in `column` (start_ms, end_ms); {} without any."""
    found = [
        speech_errors(_spans(row[column]), _spans(row["segments"]), collar_ms)
        for row in rows
        if row.get(column) is not None and not row.get("error")
    ]
    if not found:
        return {}
    total = SpeechErrors(*(sum(values) for values in zip(*found, strict=True)))
    rate = None if total.rate is None else round(total.rate, 5)
    return {"rows": len(found), "vad_error_rate": rate, **total._asdict()}


def comparison(rows: Sequence[Row], others: Sequence[Row]) -> dict[str, Any]:
    """Gives how far another run's answers are from these, which are taken for the reference.

    Rows are the same when they have the same source file and row, or else the same audio file or session.
    """
    pairs = list(_paired(rows, others))
    texts = [(normalised(row["pred_text"] or ""), normalised(other["pred_text"] or "")) for row, other in pairs]
    words = word_errors([mine for mine, _ in texts], [theirs for _, theirs in texts])
    spans = [speech_errors(_spans(row["segments"]), _spans(other["segments"])) for row, other in pairs]
    speech = SpeechErrors(*(sum(values) for values in zip(*spans, strict=True))) if spans else SpeechErrors(0, 0, 0)
    differing = [
        {"row": row_names(row)[0], "text": mine, "other": theirs}
        for (row, _), (mine, theirs) in zip(pairs, texts, strict=True)
        if mine != theirs
    ]
    return {
        "rows": len(pairs),
        "only_here": len(rows) - len(pairs),
        "only_there": len(others) - len(pairs),
        "equal_texts": len(pairs) - len(differing),
        "word_difference_rate": _rate(words),
        "speech_difference_rate": None if speech.rate is None else round(speech.rate, 5),
        "differing": differing[:_WORST_ROWS],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the figures: 0; 2 when a file is not there or the extra is not installed."""
    parser = argparse.ArgumentParser("python -m pipelines.evaluate", description="Measures results of the jobs.")
    parser.add_argument("results", help="results.jsonl, results.parquet, or the output folder of a batch job")
    parser.add_argument("--against", metavar="RESULTS", help="another run, also of the streaming job (JSON lines)")
    parser.add_argument("--text", default="text", metavar="COLUMN", help="column of the true text (text)")
    parser.add_argument(
        "--clean", default="clean_filepath", metavar="COLUMN", help="column of the path of the true clean audio"
    )
    parser.add_argument(
        "--speech", default="speech", metavar="COLUMN", help="column of the true segments: a list of start_ms, end_ms"
    )
    parser.add_argument("--collar-ms", type=int, default=0, help="ms around true borders that do not count (0)")
    parser.add_argument("--json", metavar="FILE", help="writes the figures there too")
    options = parser.parse_args(argv)
    try:
        figures = _figures(options)
    except SpeechError as error:
        return report(error)
    if options.json:
        Path(options.json).write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")
    print("\n".join(_lines(figures)))
    return 0


def _figures(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    rows = read_results(options.results)
    path = Path(options.results)
    good = [row for row in rows if not row.get("error")]
    figures = {
        "rows": {"rows": len(rows), "errors": len(rows) - len(good)},
        "text": text_figures(rows, options.text),
        "sound": sound_figures(good, options.clean, path if path.is_dir() else path.parent),
        "speech": speech_figures(rows, options.speech, options.collar_ms),
        "against": comparison(rows, read_results(options.against)) if options.against else {},
    }
    return {name: values for name, values in figures.items() if values}


def _paired(rows: Sequence[Row], others: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    named: dict[str, Row] = {}
    for other in others:
        for name in row_names(other):
            named.setdefault(name, other)
    taken: set[int] = set()
    for row in rows:
        for name in row_names(row):
            if name in named and id(named[name]) not in taken:
                taken.add(id(named[name]))
                yield row, named[name]
                break


def _aligned(truth: Audio, estimate: Audio) -> tuple[Any, Any, int]:
    if truth.sample_rate_hz != estimate.sample_rate_hz:
        raise AudioError(f"rates differ: {truth.sample_rate_hz} and {estimate.sample_rate_hz} Hz")
    return truth.samples, estimate.samples, truth.sample_rate_hz


def _spans(segments: Sequence[Mapping[str, int]]) -> list[Span]:
    return [(segment["start_ms"], segment["end_ms"]) for segment in segments]


def _rate(errors: TextErrors) -> float | None:
    return None if errors.rate is None else round(errors.rate, 5)


def _lines(figures: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for group, values in figures.items():
        yield f"{group}:"
        for name, value in values.items():
            if isinstance(value, list):
                yield from (f"  {name}: {msgspec.json.encode(each).decode()}" for each in value)
            else:
                yield f"  {name}: {value}"


if __name__ == "__main__":
    sys.exit(main())
