"""Counts of what became of rows: results, errors by reason, audio and devices; tallies of parts add up."""

import re
from collections import Counter
from collections.abc import Iterable

import msgspec

# Reasons beyond these are counted together: a message that holds a value of its row would else be its own reason.
_MOST_REASONS = 100
_OTHERS = "other reasons"
# "m.jsonl line 3: ", "t.parquet row 7: ", "/calls/a.wav: " say where, not why.
_PLACES = re.compile(r"^(?:.{0,500}? (?:line|row|item) \d+: )?(?:[^:]*/[^:]*: )*")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Tally(msgspec.Struct):
    """Counts over rows. reasons: (error class, reason) joined by ": " -> rows; devices: where results were made."""

    rows: int = 0
    errors: int = 0
    retriable: int = 0
    audio_ms: int = 0
    reasons: dict[str, int] = {}
    devices: dict[str, int] = {}
    models: dict[str, int] = {}

    @property
    def results(self) -> int:
        """Rows with an answer."""
        return self.rows - self.errors


class _Outcome(msgspec.Struct):
    """The fields of a line that are counted; the others are not even decoded."""

    error: str
    error_class: str
    error_retriable: bool
    duration: float | None
    device: str
    model: str


_DECODER = msgspec.json.Decoder(_Outcome)


def tally_lines(lines: Iterable[bytes]) -> Tally:
    """Counts result lines."""
    total = Tally()
    reasons, devices, models = Counter[str](), Counter[str](), Counter[str]()
    for line in lines:
        row = _DECODER.decode(line)
        total.rows += 1
        if row.error:
            total.errors += 1
            total.retriable += row.error_retriable
            reasons[reason(row.error_class, row.error)] += 1
        else:
            total.audio_ms += round(1000 * (row.duration or 0.0))
            devices[row.device] += 1
            models[row.model] += 1
    total.reasons, total.devices, total.models = dict(reasons), dict(devices), dict(models)
    return total


def add_up(tallies: Iterable[Tally]) -> Tally:
    """Gives the sum."""
    total = Tally()
    reasons, devices, models = Counter[str](), Counter[str](), Counter[str]()
    for each in tallies:
        total.rows += each.rows
        total.errors += each.errors
        total.retriable += each.retriable
        total.audio_ms += each.audio_ms
        devices.update(each.devices)
        models.update(each.models)
        for name, count in each.reasons.items():
            reasons[name if name in reasons or len(reasons) < _MOST_REASONS else _OTHERS] += count
    total.reasons = dict(reasons.most_common())
    total.devices, total.models = dict(sorted(devices.items())), dict(sorted(models.items()))
    return total


def reason(error_class: str, message: str) -> str:
    """Gives why a row is bad, the same for all rows that are bad for the same reason: without place and numbers."""
    return f"{error_class}: {_NUMBER.sub('N', _PLACES.sub('', message, count=1))[:200]}"


def is_retriable(line: bytes) -> bool:
    """Whether a result is an error that another run may do better."""
    row = _DECODER.decode(line)
    return bool(row.error) and row.error_retriable
