"""Result files of earlier runs, read back: the batch job's rows and the streaming job's results."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from model_runtime.errors import ConfigError

Row = dict[str, Any]


def read_results(path: str | Path) -> list[Row]:
    """Gives the rows of a results.jsonl or results.parquet, or of the folder of a batch job that holds one.

    Results of the streaming job (JSON lines, as service.tail shows them) become one row for each session: `session`,
    and `pred_text`, `words` and `segments` out of its finals, the latest revision of each utterance.

    Raises:
        ConfigError: there is no such file, or it holds no results.
    """
    path = Path(path)
    if path.is_dir():
        path = next((found for found in (path / "results.jsonl", path / "results.parquet") if found.exists()), path)
    try:
        if path.suffix == ".parquet":
            return list(pq.read_table(path).to_pylist())
        with path.open("rb") as file:
            rows = [msgspec.json.decode(line) for line in file if line.strip()]
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path}: is no file of results: {error}") from error
    if any(not isinstance(row, dict) or not row.keys() & {"pred_text", "result_id"} for row in rows):
        raise ConfigError(f"{path}: is no file of results: a line has neither pred_text nor result_id")
    return list(_sessions(rows)) if rows and "result_id" in rows[0] else rows


def _sessions(results: list[Row]) -> Iterator[Row]:
    finals: dict[str, dict[int, Row]] = {}
    for result in results:
        utterances = finals.setdefault(result["session"], {})
        if result["type"] == "final":
            known = utterances.get(result["utterance"])
            if known is None or known["revision"] <= result["revision"]:
                utterances[result["utterance"]] = result
    for session, utterances in finals.items():
        ordered = [utterances[number] for number in sorted(utterances)]
        yield {
            "session": session,
            "pred_text": " ".join(final["text"] for final in ordered if final["text"]),
            "words": [word for final in ordered for word in final["words"]],
            "segments": [{"start_ms": final["start_ms"], "end_ms": final["end_ms"]} for final in ordered],
            "error": "",
        }


def row_names(row: Row) -> list[str]:
    """Gives what a row may be called by another file, the surest first."""
    names = []
    if "source_file" in row:
        names.append(f"{row['source_file']}#{row['source_row']}")
    audio = str(row.get("audio_filepath") or row.get("audio_filename") or "")
    names += [name for name in (audio, Path(audio).name, Path(audio).stem) if name]
    return [*names, str(row["session"])] if row.get("session") else names
