"""The form of the batch job's results: the input's columns and the answer as one JSON object."""

import os
from typing import Any

import msgspec

from transforms.records import Answer, ClipResult


def to_line(result: ClipResult, with_enhanced: bool, answer_kind: Answer = "streaming") -> bytes:
    """Gives a result as a JSON object. Columns of the input that the answer has too are replaced by it.

    Args:
        with_enhanced: whether there is a field enhanced_filepath ("" for a bad row).
        answer_kind: which answer it is.
    """
    fields: dict[str, Any] = msgspec.json.decode(result.columns)
    answer: dict[str, Any] = {
        "pred_text": result.pred_text,
        "words": [word._asdict() for word in result.words],
        "segments": [segment._asdict() for segment in result.segments],
        "duration": result.duration_s,
        "model": result.model,
        "device": result.device,
        "answer": answer_kind,
        "error": result.error,
        "error_class": result.error_class,
        "error_retriable": result.error_retriable,
        "source_file": result.source_path,
        "source_row": result.row,
    }
    if with_enhanced:
        answer["enhanced_filepath"] = result.enhanced_path
    if result.duration_s is None:
        # What the manifest says of audio that could not be read is better than nothing.
        duration = fields.get("duration")
        is_number = isinstance(duration, (int, float)) and not isinstance(duration, bool)
        answer["duration"] = float(duration) if is_number and duration is not None else None
    return msgspec.json.encode({**fields, **answer})


def to_ctm(line: bytes) -> str:
    """Gives the words of one result as lines of NIST CTM: file, channel, begin, duration (s), word, confidence.

    The file is the audio's name without folder and ending.
    """
    row = msgspec.json.decode(line)
    name = _recording(row)
    return "".join(
        f"{name} 1 {word['start_ms'] / 1000:.3f} {(word['end_ms'] - word['start_ms']) / 1000:.3f} "
        f"{word['text']} {word['confidence']:.4f}\n"
        for word in row["words"]
    )


def to_rttm(line: bytes) -> str:
    """Gives the speech of one result as lines of NIST RTTM: one SPEAKER called `speech` for each segment."""
    row = msgspec.json.decode(line)
    name = _recording(row)
    return "".join(
        f"SPEAKER {name} 1 {segment['start_ms'] / 1000:.3f} {(segment['end_ms'] - segment['start_ms']) / 1000:.3f} "
        "<NA> <NA> speech <NA> <NA>\n"
        for segment in row["segments"]
    )


def _recording(row: dict[str, Any]) -> str:
    """The name without folder and ending; neither format knows blanks in it. Kaldi's utterance has its own."""
    path = str(row.get("audio_filepath") or row.get("audio_filename") or f"{row['source_file']}#{row['source_row']}")
    return "_".join(str(row.get("utterance") or os.path.splitext(os.path.basename(path))[0]).split())
