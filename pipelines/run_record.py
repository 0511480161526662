"""The record of a run, run.json: what ran, how it ended and what it did, for people, monitors and the next run."""

import os
import socket
import time
from pathlib import Path
from typing import Any, Literal

import msgspec

from transforms.atomic_file import atomic_path
from transforms.run_journal import Done
from transforms.tally import Tally

RECORD = "run.json"
"""Its name in the output folder."""

State = Literal["running", "done", "failed", "too_many_errors"]


class RunRecord(msgspec.Struct, kw_only=True):
    """One run. Times are ISO 8601 in UTC; seconds are of wall time unless they are of audio.

    rows_in: rows of the input; rows = results + errors is what stands in the result files; reused: rows taken over
    from earlier runs; retriable: errors that the next run tries again; new_audio_s: audio that this run worked on;
    wait_s: how long models waited for audio to be read; batch_rows: rows in a call of a model, on average;
    fixed_batch_sizes: models whose graphs are fixed to a batch size below inference.batch_size, and that size;
    padding_share: of the samples that full-context models computed; real_time_factor: wall_s / new_audio_s; reasons:
    rows by why they are bad.
    """

    state: State = "running"
    exit_code: int | None = None
    run: str
    began: str
    ended: str | None = None
    host: str
    pid: int
    message: str = ""
    rows_in: int = 0
    rows: int = 0
    results: int = 0
    errors: int = 0
    retriable: int = 0
    reused: int = 0
    quarantined: int = 0
    worker_restarts: int = 0
    audio_s: float = 0.0
    new_audio_s: float = 0.0
    wait_s: float = 0.0
    batch_rows: float | None = None
    padding_share: float | None = None
    fixed_batch_sizes: dict[str, int] = {}
    wall_s: float = 0.0
    real_time_factor: float | None = None
    reasons: dict[str, int] = {}
    devices: dict[str, int] = {}
    models: dict[str, int] = {}
    outputs: list[str] = []
    config: dict[str, Any] = {}

    def count(self, tally: Tally, done: Done) -> None:
        """Takes over what the parts hold and what the journal says of this run."""
        self.rows, self.results, self.errors = tally.rows, tally.results, tally.errors
        self.retriable, self.reasons = tally.retriable, tally.reasons
        self.devices, self.models = tally.devices, tally.models
        self.audio_s, self.new_audio_s = tally.audio_ms / 1000, done.audio_ms / 1000
        self.reused, self.quarantined, self.worker_restarts = done.reused, done.quarantined, done.restarts
        self.wait_s = done.wait_ms / 1000
        self.batch_rows = round(done.called_rows / done.calls, 2) if done.calls else None
        self.fixed_batch_sizes = done.fixed
        self.padding_share = round(done.padding_samples / done.filled_samples, 4) if done.filled_samples else None

    def end(self, state: State, exit_code: int, wall_s: float) -> None:
        """Says how the run ended."""
        self.state, self.exit_code, self.ended = state, exit_code, utc_now()
        self.wall_s = round(wall_s, 3)
        self.real_time_factor = round(wall_s / self.new_audio_s, 6) if self.new_audio_s else None

    def summary(self) -> str:
        """Gives the closing line: what was done, how fast, and where it ran."""
        factor = "-" if self.real_time_factor is None else f"{self.real_time_factor:.4f}"
        devices = ", ".join(f"{name} ({count} rows)" for name, count in self.devices.items()) or "-"
        return (
            f"rows: {self.rows_in} = {self.results} results + {self.errors} errors ({self.reused} from earlier runs), "
            f"audio: {self.new_audio_s:.1f} s, wall: {self.wall_s:.1f} s, real-time factor: {factor}, "
            f"{self._batches()}devices: {devices}"
        )

    def _batches(self) -> str:
        if self.batch_rows is None:
            return ""
        padding = "" if self.padding_share is None else f", {100 * self.padding_share:.1f} % padding"
        fixed = "".join(f", {model} fixed to {size}" for model, size in self.fixed_batch_sizes.items())
        return f"batches: {self.batch_rows:.1f} rows{padding}{fixed}, "

    def reason_table(self) -> str:
        """Gives the reasons of errors, the most frequent first, one a line."""
        return "\n".join(f"{count:>8}  {reason}" for reason, count in self.reasons.items())


def new_record(run: str, config: msgspec.Struct) -> RunRecord:
    """Gives the record of a run that begins now in this process."""
    return RunRecord(
        run=run, began=utc_now(), host=socket.gethostname(), pid=os.getpid(), config=msgspec.to_builtins(config)
    )


def write_record(record: RunRecord, output: Path) -> None:
    """Writes the record, whole or not at all."""
    with atomic_path(output / RECORD) as path:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")


def read_record(output: Path) -> RunRecord | None:
    """Gives the record of the last run; None where there is none that can be read."""
    try:
        return msgspec.json.decode((output / RECORD).read_bytes(), type=RunRecord)
    except (OSError, msgspec.MsgspecError):
        return None


def utc_now() -> str:
    """Gives the time, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
