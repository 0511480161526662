"""Whether a process is busy: bundles that run, that end, and that fail."""

import gc
import threading

from transforms.bundle_load import BundleLoad


class Fn:
    """Stands for a DoFn."""


def test_who_waits_goes_on_when_the_last_bundle_ends() -> None:
    load, first, second = BundleLoad(), Fn(), Fn()
    load.begin(first)
    load.begin(second)
    load.end(first)
    assert not load.wait_until_idle(0)
    idle: list[bool] = []
    waiting = threading.Thread(target=lambda: idle.append(load.wait_until_idle(60)))
    waiting.start()
    load.end(second)
    waiting.join(60)
    assert idle == [True]


def test_a_bundle_that_has_failed_does_not_count_for_ever() -> None:
    load, failed = BundleLoad(), Fn()
    load.begin(failed)
    del failed
    gc.collect()
    assert load.wait_until_idle(0)
