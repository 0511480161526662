"""Files that appear whole or not at all."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class AtomicFile:
    """A file under a temporary name in the folder of its own. Two writers of the same file do not disturb each other:
    the last one to end wins.
    """

    def __init__(self, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        self._target = target
        self.path = target.with_name(f".{target.name[:80]}.{uuid.uuid4().hex}.tmp")

    def keep(self) -> None:
        """Gives it its own name."""
        os.replace(self.path, self._target)

    def discard(self) -> None:
        """Removes it, where it is there."""
        self.path.unlink(missing_ok=True)


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Gives a temporary path in the same folder; it takes the place of `path` when the block ends well."""
    file = AtomicFile(path)
    try:
        yield file.path
        file.keep()
    finally:
        file.discard()
