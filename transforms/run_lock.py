"""A lock against two runs that write to the same folder; the system takes it back from a process that dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from model_runtime.errors import LockedError


@contextmanager
def run_lock(path: Path, owner: str) -> Iterator[None]:
    """Holds the lock while the block runs.

    Args:
        owner: what the error of another run says of this one.

    Raises:
        LockedError: names the run that holds it.
    """
    with open(path, "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise LockedError(f"{path.parent}: another run is writing there ({file.read().strip()})") from None
        file.truncate(0)
        file.write(owner)
        file.flush()
        # Left in place: a lock file that is removed could be held by two.
        yield
        os.ftruncate(file.fileno(), 0)
