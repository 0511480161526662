"""One process that runs models for the batch job, from the job's side."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from model_runtime import errors
from model_runtime.errors import SpeechError, WorkerError
from transforms.clip_protocol import Answer, Begun, Ended, Failed, Hearing, Ready, Refused, Settings, write_frame
from transforms.records import ClipRow

# Loading may take long: a large model from a network disk, a delegate that compiles.
_START_LIMIT_S = 600.0
_END_S = 10.0


class Death(NamedTuple):
    """The process has ended. under_way: indexes of the rows that it was working on, where it has said so."""

    cause: str
    under_way: list[int]


class ClipProcess:
    """A process with the engine loaded; see transforms/clip_worker.py for its side.

    Raises:
        SpeechError: what the engine says when it cannot be loaded; WorkerError when the process dies of it.
    """

    def __init__(self, settings: Settings) -> None:
        self._time_limit_s = settings.config.time_limit_s
        self._process = subprocess.Popen(
            [sys.executable, "-m", "transforms.clip_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # It finds its modules as this process does, installed or not.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        )
        commands, said = self._process.stdin, self._process.stdout
        if commands is None or said is None:
            raise WorkerError("the process that runs the models has no pipes")
        self._commands, self._said = commands, said
        self._hearing = Hearing(said.fileno())
        with suppress(BrokenPipeError):
            write_frame(commands, settings)
        self._wait_until_ready()

    @property
    def alive(self) -> bool:
        """Whether it can take rows."""
        return not self._said.closed and self._process.poll() is None

    def run(self, rows: Sequence[ClipRow]) -> Iterator[Answer | Ended | Death]:
        """Gives the answers as they come, and at last Ended, or Death if the process dies."""
        under_way: list[int] = []
        limit_s = self._time_limit_s
        try:
            write_frame(self._commands, list(rows))
            while True:
                said = self._hearing.next(limit_s)
                match said:
                    case Begun(begun, audio_s):
                        under_way, limit_s = begun, self._time_limit_s + audio_s
                    case Answer(index):
                        under_way = [other for other in under_way if other != index]
                        yield said
                    case Ended():
                        yield said
                        return
                    case Failed(message):
                        self.close()
                        yield Death(f"ended with {message}", under_way)
                        return
        except (EOFError, BrokenPipeError):
            yield Death(self._ending(), under_way)
        except TimeoutError:
            self._process.kill()
            self.close()
            yield Death(
                f"took longer than {limit_s:.0f} s (inference.time_limit_s and the length of the audio)", under_way
            )

    def close(self) -> None:
        """Ends the process."""
        with suppress(BrokenPipeError):
            self._commands.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()

    def _wait_until_ready(self) -> None:
        what = "the process that loads the models"
        try:
            said = self._hearing.next(_START_LIMIT_S)
        except (EOFError, BrokenPipeError):
            raise WorkerError(f"{what} {self._ending()}") from None
        except TimeoutError:
            self._process.kill()
            self.close()
            raise WorkerError(f"{what} took longer than {_START_LIMIT_S:.0f} s") from None
        match said:
            case Ready():
                return
            case Refused(error_class, message):
                self.close()
                raise getattr(errors, error_class, SpeechError)(message)
        self.close()
        raise WorkerError(f"{what} said {said}")

    def _ending(self) -> str:
        """Says what ended the process."""
        self.close()
        code = self._process.returncode
        if code >= 0:
            return f"ended with exit code {code}"
        name = signal.Signals(-code).name
        return f"was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
