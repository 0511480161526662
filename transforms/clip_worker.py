"""The process that runs models for the batch job, so that a crash in native code costs one row and not the night.

python -m transforms.clip_worker   (started by the job; speaks transforms/clip_protocol.py on stdin and stdout)
"""

import os
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from model_runtime import errors
from model_runtime.calls import CallTally
from model_runtime.errors import SpeechError
from transforms.clip_inference import Engine, infer_rows
from transforms.clip_protocol import (
    Answer,
    Begun,
    Ended,
    Failed,
    Ready,
    Refused,
    Settings,
    read_rows,
    read_settings,
    write_frame,
)
from transforms.records import ClipResult, ClipRow, place_of


class _Watch:
    """Tells the job which rows are under way, and adds up the time between two calls of the models."""

    def __init__(self, output: BinaryIO, rows: Sequence[ClipRow]) -> None:
        self._output = output
        self._index = {place_of(row): index for index, row in enumerate(rows)}
        self._began = time.monotonic()
        self.wait_s = 0.0

    def index(self, row: ClipRow | ClipResult) -> int:
        return self._index[place_of(row)]

    def begin(self, rows: Sequence[ClipRow], audio_s: float) -> None:
        self.go_on(rows, audio_s)
        if audio_s:
            now = time.monotonic()
            self.wait_s, self._began = self.wait_s + now - self._began, now

    def go_on(self, rows: Sequence[ClipRow], audio_s: float) -> None:
        write_frame(self._output, Begun([self.index(row) for row in rows], audio_s))

    def answered(self) -> None:
        self._began = time.monotonic()


def serve(commands: BinaryIO, output: BinaryIO) -> None:
    """Loads the engine and answers rows until the other side has gone."""
    settings = read_settings(commands)
    try:
        engine = _load(settings)
    except SpeechError as error:
        # The job knows the public errors alone.
        known = next(kind.__name__ for kind in type(error).__mro__ if hasattr(errors, kind.__name__))
        write_frame(output, Refused(known, str(error)))
        return
    write_frame(output, Ready())
    while True:
        rows = read_rows(commands)
        watch, tally = _Watch(output, rows), CallTally()
        for result in infer_rows(engine, rows, settings.config, settings.clean, watch, tally):
            write_frame(output, Answer(watch.index(result), result))
            watch.answered()
        write_frame(output, Ended(round(1000 * watch.wait_s), tally))


def _load(settings: Settings) -> Engine:
    module, _, function = settings.loader.partition(":")
    engine: Engine = getattr(import_module(module), function)(settings.recipe, settings.route)
    return engine


def load_engine(recipe: str, route: object) -> Engine:
    """The loader of the product's own engine."""
    from model_runtime.engine import SpeechEngine

    # A row holds what was said in the end. A RouteConfig is nothing that this module need know.
    return SpeechEngine.load(recipe, route, agree=False)  # type: ignore[arg-type]


def _die_first() -> None:
    """Where memory runs out, the kernel shall end this process and not the job."""
    # Elsewhere than on Linux, or where it is not allowed, the kernel chooses.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def main() -> int:
    """Serves until stdin ends; 1 after a bug, whose traceback is on stderr."""
    # What native libraries print to stdout must not get among the frames.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _die_first()
    try:
        serve(sys.stdin.buffer, output)
    except (EOFError, BrokenPipeError):
        return 0
    except BaseException:
        # The job must learn what ended this process, whatever it was; the process does end.
        write_frame(output, Failed(traceback.format_exc().strip().splitlines()[-1]))
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
