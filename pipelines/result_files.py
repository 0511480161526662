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

    Results of the streaming job (JSON lines, as service.tail shows them) and rows of a replay become one row for each
    session: `session`, and `pred_text`, `words` and `segments` out of its finals, the latest of each utterance.

    Raises:
        ConfigError: there is no such file, or it holds no results.
    """
    path = Path(path)
    if path.is_dir():
        path = next((found for found in (path / "results.jsonl", path / "results.parquet") if found.exists()), path)
    try:
        if path.suffix == ".parquet":
            rows = pq.read_table(path).to_pylist()
        else:
            with path.open("rb") as file:
                rows = [msgspec.json.decode(line) for line in file if line.strip()]
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path}: is no file of results: {error}") from error
    if any(not isinstance(row, dict) or not row.keys() & {"pred_text", "result_id"} for row in rows):
        raise ConfigError(f"{path}: is no file of results: a line has neither pred_text nor result_id")
    return list(_sessions(rows)) if any("result_id" in row for row in rows) else rows


def _sessions(results: list[Row]) -> Iterator[Row]:
    """Gives a row for each session, and for each key that was used again; dead letters belong to none."""
    finals: dict[tuple[str, str], dict[int, Row]] = {}
    for result in results:
        if not result.get("result_id"):
            continue
        # The last three parts hold no slash: where the session began, utterance, revision.
        utterances = finals.setdefault((result["session"], result["result_id"].split("/")[-3]), {})
        if result.get("type", "final") == "final":
            known = utterances.get(result["utterance"])
            if known is None or known["revision"] <= result["revision"]:
                utterances[result["utterance"]] = result
    for (session, beginning), utterances in finals.items():
        ordered = [utterances[number] for number in sorted(utterances)]
        texts = [final.get("text", final.get("pred_text")) for final in ordered]
        spans = [(final.get("segments") or [final])[0] for final in ordered]
        yield {
            "session": session,
            "beginning": beginning,
            "pred_text": " ".join(text for text in texts if text),
            "words": [word for final in ordered for word in final["words"]],
            "segments": [{"start_ms": span["start_ms"], "end_ms": span["end_ms"]} for span in spans],
            "error": "",
        }


def row_names(row: Row) -> list[str]:
    """Gives what a row may be called by another file, the surest first."""
    names = []
    if "source_file" in row:
        names.append(f"{row['source_file']}#{row['source_row']}")
    audio = str(row.get("audio_filepath") or row.get("audio_filename") or "")
    names += [name for name in (audio, Path(audio).name, Path(audio).stem) if name]
    if row.get("beginning"):
        names.append(f"{row['session']}/{row['beginning']}")
    return [*names, str(row["session"])] if row.get("session") else names
