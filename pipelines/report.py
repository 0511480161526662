"""Writes report.html: what a run did, why rows are bad, and what was heard in some of its recordings.

python -m pipelines.report out
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import msgspec

from model_runtime.errors import ConfigError, SpeechError
from pipelines.command_line import report as report_error
from pipelines.report_page import page
from pipelines.report_recordings import pick_rows, recordings
from pipelines.run_record import RECORD, RunRecord, read_record
from transforms.atomic_file import atomic_path
from transforms.part_file import FOLDER, part_names, read_part
from transforms.tally import reason

REPORT = "report.html"
"""Its name in the output folder."""

_ROWS_PER_REASON = 10
_POWERS = 13


class ReportConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The page about a run, report.html."""

    write: bool = True  # write it when the run ends
    recordings: Annotated[int, msgspec.Meta(ge=0, le=100)] = 4  # recordings that it shows and plays; up to 1 MB each
    max_s: Annotated[float, msgspec.Meta(gt=0, le=600)] = 20.0  # seconds of each


def write_report(output: Path, record: RunRecord, names: Sequence[str], config: ReportConfig) -> None:
    """Writes the page about the rows of these parts, whole or not at all."""

    def lines() -> Iterator[bytes]:
        return chain.from_iterable(read_part(output / FOLDER, name) for name in names)

    bad_rows, durations_s = _survey(lines())
    shown = recordings(pick_rows(lines(), config.recordings, record.results), output, config.max_s)
    text = page(record, list(shown), bad_rows, durations_s)
    with atomic_path(output / REPORT) as path:
        path.write_text(text, encoding="utf-8")


class _Surveyed(msgspec.Struct):
    """The fields of a line that the survey needs."""

    error: str
    error_class: str
    duration: float | None


def _survey(lines: Iterable[bytes]) -> tuple[dict[str, list[dict[str, Any]]], list[int]]:
    """Gives some bad rows for each reason, and the lengths of good ones."""
    decode: Callable[[bytes], _Surveyed] = msgspec.json.Decoder(_Surveyed).decode
    bad_rows: dict[str, list[dict[str, Any]]] = {}
    counts = [0] * _POWERS
    for line in lines:
        row = decode(line)
        if row.error:
            examples = bad_rows.setdefault(reason(row.error_class, row.error), [])
            if len(examples) < _ROWS_PER_REASON:
                examples.append(msgspec.json.decode(line))
        else:
            seconds = max(1, -int(-(row.duration or 0) // 1))
            counts[min(_POWERS - 1, (seconds - 1).bit_length())] += 1
    while counts and not counts[-1]:
        counts.pop()
    return bad_rows, counts


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the report of the last run anew: 0; 2 when there is no run."""
    parser = argparse.ArgumentParser("python -m pipelines.report", description="Writes the report of a batch job.")
    parser.add_argument("output", type=Path, help="output folder of the job")
    parser.add_argument("--recordings", type=int, default=4, help="how many are shown (4)")
    parser.add_argument("--max-s", type=float, default=20.0, help="seconds of each that are shown (20)")
    options = parser.parse_args(argv)
    try:
        record = read_record(options.output)
        if record is None:
            raise ConfigError(f"{options.output}: no run has left its {RECORD} there")
        config = msgspec.convert({"recordings": options.recordings, "max_s": options.max_s}, ReportConfig)
    except msgspec.ValidationError as error:
        return report_error(ConfigError(str(error)))
    except SpeechError as error:
        return report_error(error)
    write_report(options.output, record, part_names(options.output / FOLDER), config)
    print(options.output / REPORT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
