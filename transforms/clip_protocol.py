"""What the batch job and the process that runs its models say to each other: frames of MessagePack over two pipes."""

import os
import select
import struct
import time
from typing import IO

import msgspec

from model_runtime.calls import CallTally
from model_runtime.devices import RouteConfig
from transforms.clip_inference import InferenceConfig
from transforms.records import ClipResult, ClipRow
from transforms.write_audio import CleanFolder

_LENGTH = struct.Struct("<Q")
_READ_BYTES = 1 << 20


class Settings(msgspec.Struct, frozen=True):
    """The first frame to a worker.

    loader: "module:function" that gives the engine for a recipe and a route; clean: where clean audio goes.
    """

    loader: str
    recipe: str
    route: RouteConfig
    config: InferenceConfig
    clean: CleanFolder | None = None


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The engine is loaded."""


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The engine cannot be loaded: the error's class and message."""

    error_class: str
    message: str


class Begun(msgspec.Struct, frozen=True, tag=True):
    """Work on rows, by their index among those sent, begins; audio_s: seconds of audio in it."""

    rows: list[int]
    audio_s: float


class Answer(msgspec.Struct, frozen=True, tag=True):
    """The result of one row."""

    index: int
    result: ClipResult


class Ended(msgspec.Struct, frozen=True, tag=True):
    """All rows are answered. wait_ms: how long the models waited for audio to be read; calls: those of models."""

    wait_ms: int
    calls: CallTally


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A bug: the worker ends, and this is the last line of its traceback."""

    message: str


Said = Ready | Refused | Begun | Answer | Ended | Failed
_SAID = msgspec.msgpack.Decoder(Said)
_ROWS = msgspec.msgpack.Decoder(list[ClipRow])
_SETTINGS = msgspec.msgpack.Decoder(Settings)


def write_frame(file: IO[bytes], message: object) -> None:
    """Writes one message, whatever its size."""
    body = msgspec.msgpack.encode(message)
    file.write(_LENGTH.pack(len(body)) + body)
    file.flush()


def read_settings(file: IO[bytes]) -> Settings:
    """Gives the first frame.

    Raises:
        EOFError: the other side has gone.
    """
    return _SETTINGS.decode(_read_frame(file))


def read_rows(file: IO[bytes]) -> list[ClipRow]:
    """Gives the next rows.

    Raises:
        EOFError: the other side has gone.
    """
    return _ROWS.decode(_read_frame(file))


def _read_frame(file: IO[bytes]) -> bytes:
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    return file.read(_LENGTH.unpack(head)[0])


class Hearing:
    """Hears what a worker says, with a limit on the time that it may say nothing."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._text = bytearray()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def next(self, limit_s: float) -> Said:
        """Gives the next message.

        Raises:
            EOFError: the worker has gone.
            TimeoutError: it said nothing for so long.
        """
        until = time.monotonic() + limit_s
        while len(self._text) < _LENGTH.size or len(self._text) < _LENGTH.size + self._length():
            if not self._poll.poll(max(0.0, until - time.monotonic()) * 1000):
                raise TimeoutError
            text = os.read(self._descriptor, _READ_BYTES)
            if not text:
                raise EOFError
            self._text += text
        end = _LENGTH.size + self._length()
        message = _SAID.decode(bytes(self._text[_LENGTH.size : end]))
        del self._text[:end]
        return message

    def _length(self) -> int:
        return int(_LENGTH.unpack_from(self._text)[0])
