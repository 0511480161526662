"""Elements that cannot be used, with the reason and everything needed to look at them or send them again."""

from typing import NamedTuple, TypeAlias

from model_runtime.errors import SpeechError
from transforms.record_coder import register

DEAD_LETTERS = "dead_letters"
"""The output tag under which every transform emits its DeadLetter records."""


Header: TypeAlias = tuple[str, bytes | None]
"""Name and value of a Kafka record's header; a null value is None and differs from an empty one."""


class DeadLetter(NamedTuple):
    """One unusable element: where it failed, why, and the element itself, untouched.

    stage: the step that refused it ("decode", "infer", ...); key: the session, or the path or id of a row, for people
    to read; payload: its bytes as they came (None was null). The last five fields say where a Kafka record stood; they
    keep their defaults for anything else.
    """

    stage: str
    key: str
    error_class: str
    message: str
    payload: bytes | None
    record_key: bytes | None = None
    topic: str = ""
    partition: int = -1
    offset: int = -1
    headers: list[Header] = []  # noqa: RUF012  (a NamedTuple default, never changed)


def dead_letter(stage: str, key: str, error: SpeechError, payload: bytes | None = None) -> DeadLetter:
    """Gives the dead letter of an element that is not a Kafka record (a row, a file)."""
    return DeadLetter(stage, key, type(error).__name__, str(error), payload)


register(DeadLetter)
