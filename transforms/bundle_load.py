"""Whether this process is still busy with what it has read, so that its sources can wait before they hand on more."""

import threading
from weakref import WeakSet


class BundleLoad:
    """The DoFns that are in the middle of a bundle; thread-safe. One whose bundle failed goes when it is deleted."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: WeakSet[object] = WeakSet()

    def begin(self, fn: object) -> None:
        """Takes note that a bundle has begun."""
        with self._changed:
            self._running.add(fn)

    def end(self, fn: object) -> None:
        """Takes note that a bundle has ended."""
        with self._changed:
            self._running.discard(fn)
            self._changed.notify_all()

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Waits until no bundle runs, at most `timeout_s`; says whether none does."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, timeout_s)


INFERENCE = BundleLoad()
"""The bundles of InferSessions in this process."""
