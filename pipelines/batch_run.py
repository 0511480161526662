"""One run of the batch job around its pipeline: the lock, the progress, the record, and how it ends."""

import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

import msgspec
from apache_beam.runners.runner import PipelineState
from tqdm import tqdm

from model_runtime.errors import ConfigError
from pipelines.command_line import EXIT_CONFIGURATION
from pipelines.report import ReportConfig, write_report
from pipelines.run_record import RunRecord, new_record, read_record, write_record
from transforms.part_file import FOLDER, keep_parts, read_header, remove_unfinished
from transforms.run_journal import JournalReader, RunJournal
from transforms.run_lock import run_lock
from transforms.tally import add_up

EXIT_FAILED = 1
"""The exit code when the job itself failed."""
EXIT_TOO_MANY_ERRORS = 3
"""The exit code when more rows are bad than max_error_ratio allows."""

_POLL_S = 0.2


class Job(NamedTuple):
    """What a run is to do. rows, parts: of the input (None: the run itself finds out how many rows there are)."""

    output: Path
    journal: RunJournal
    rows: int | None
    parts: int
    max_error_ratio: float
    report: ReportConfig
    config: msgspec.Struct


def run_job(job: Job, execute: Callable[[], str]) -> int:
    """Runs the job with nobody else writing to its output, and gives the exit code. run.json says how it stands.

    Args:
        execute: runs the pipeline and gives the state that it ended in.

    Raises:
        LockedError: another run is writing to the same output.
        ConfigError: the output folder cannot be made.
    """
    record = new_record(uuid.uuid4().hex, job.config)
    record.rows_in = job.rows or 0
    began = time.monotonic()
    with _held(job, record):
        try:
            with _progress_bar(job):
                state = execute()
            return _conclude(job, record, state, time.monotonic() - began)
        except BaseException as error:
            # Whatever ends the run, a monitor must be able to read it.
            record.message = f"{type(error).__name__}: {error}"[-2000:]
            done = job.journal.follow().read()
            record.count(done.tally, done)
            code = EXIT_CONFIGURATION if isinstance(error, ConfigError) else EXIT_FAILED
            record.end("failed", code, time.monotonic() - began)
            write_record(record, job.output)
            raise


@contextmanager
def _held(job: Job, record: RunRecord) -> Iterator[None]:
    """Makes the output and holds its lock, and clears away what runs that were killed have left."""
    try:
        (job.output / FOLDER).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"output: {str(job.output)!r} cannot be made: {error.strerror or error}") from error
    with run_lock(job.output / ".lock", f"process {record.pid} on {record.host} since {record.began}"):
        last = read_record(job.output)
        if last is not None and last.state == "running":
            print(f"the run of {last.began} has not come to its end; what it finished is kept", file=sys.stderr)
        remove_unfinished(job.output)
        job.journal.remove()
        write_record(record, job.output)
        yield
        job.journal.remove()


def _conclude(job: Job, record: RunRecord, state: str, wall_s: float) -> int:
    """Counts what is on the disk, says it, and gives the exit code."""
    reader = job.journal.follow()
    done = reader.read()
    folder = job.output / FOLDER
    tally = add_up(read_header(folder, name)[0].tally for name in reader.parts.values())
    rows = record.rows_in = tally.rows if job.rows is None else job.rows
    whole = len(reader.parts) == job.parts and tally.rows == rows
    # Until all parts are there, batches that are finished are what is kept.
    tally = tally if whole else done.tally
    record.count(tally, done)
    errors, max_errors = max(done.errors, tally.errors), int(job.max_error_ratio * rows)
    if errors > max_errors and (whole or job.rows is not None):
        record.message = f"{errors} of {rows} rows are bad, {max_errors} are allowed"
        record.end("too_many_errors", EXIT_TOO_MANY_ERRORS, wall_s)
    elif state != PipelineState.DONE or not whole:
        record.message = f"the job ended in state {state} with {tally.rows} of {rows} rows"
        record.end("failed", EXIT_FAILED, wall_s)
    else:
        record.end("done", 0, wall_s)
    if whole:
        # Rows that are no longer in the input.
        keep_parts(folder, reader.parts.values())
    write_record(record, job.output)
    if job.report.write:
        write_report(job.output, record, [reader.parts[number] for number in sorted(reader.parts)], job.report)
    if record.message:
        print(f"error: {record.message}", file=sys.stderr)
    if record.reasons:
        print(record.reason_table(), file=sys.stderr)
    print(record.summary())
    return record.exit_code or 0


@contextmanager
def _progress_bar(job: Job) -> Iterator[None]:
    """Shows the rows done on stderr while the block runs; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield
        return
    stop = Event()
    reader: JournalReader = job.journal.follow()
    with tqdm(total=job.rows, unit="row", disable=None) as bar:

        def follow() -> None:
            while not stop.wait(_POLL_S):
                bar.update(reader.read().rows - bar.n)

        thread = Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            bar.update(reader.read().rows - bar.n)
