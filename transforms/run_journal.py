"""What the workers of a run have done so far, in one file that all of them append to."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from transforms.tally import Tally, add_up


class Done(msgspec.Struct, frozen=True, array_like=True):
    """One entry: rows that are finished since a worker's last entry, and what it took.

    tally: of these rows; reused: how many were taken over from earlier runs; audio_ms: of those that were done anew;
    quarantined: rows that killed their worker; restarts: workers that had to be started again; wait_ms: how long the
    models waited for audio; calls, called_rows: of models, and the rows in them; filled_samples, padding_samples: in
    rows that are filled up to a length, and how many of them only fill; fixed: of CallTally; number, part: the part
    that is finished with this entry.
    """

    tally: Tally = msgspec.field(default_factory=Tally)
    reused: int = 0
    audio_ms: int = 0
    quarantined: int = 0
    restarts: int = 0
    wait_ms: int = 0
    calls: int = 0
    called_rows: int = 0
    filled_samples: int = 0
    padding_samples: int = 0
    fixed: dict[str, int] = {}
    number: int = -1
    part: str = ""

    @property
    def rows(self) -> int:
        """Rows that are finished."""
        return self.tally.rows

    @property
    def errors(self) -> int:
        """Those of them that are bad."""
        return self.tally.errors


_SUMMED = Done.__struct_fields__[1:-3]


class RunJournal(NamedTuple):
    """The journal of one run. A line is written at once, so entries of several processes do not mix."""

    path: str

    def add(self, done: Done) -> None:
        """Appends an entry."""
        with open(self.path, "ab", buffering=0) as file:
            file.write(msgspec.json.encode(done) + b"\n")

    def remove(self) -> None:
        """Removes the file, where there is one."""
        Path(self.path).unlink(missing_ok=True)

    def follow(self) -> "JournalReader":
        """Gives a reader that starts at the first entry."""
        return JournalReader(self.path)


class JournalReader:
    """Sums up a journal while it grows."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._at = 0
        self.total = Done()
        # Number of a part -> its name.
        self.parts: dict[int, str] = {}

    def read(self) -> Done:
        """Gives the sum of all entries up to now."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._at)
                text = file.read()
        except FileNotFoundError:
            return self.total
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        for line in whole.splitlines():
            entry = msgspec.json.decode(line, type=Done)
            sums = {name: getattr(self.total, name) + getattr(entry, name) for name in _SUMMED}
            tally = add_up([self.total.tally, entry.tally])
            fixed = self.total.fixed | entry.fixed
            self.total = msgspec.structs.replace(self.total, tally=tally, fixed=fixed, **sums)
            if entry.part:
                self.parts[entry.number] = entry.part
        return self.total
