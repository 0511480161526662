"""What a worker has written of a state is not asked for again: Prism's tokens, and Beam's cache in the worker."""

from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.coders import BytesCoder
from apache_beam.runners.worker.sdk_worker import GlobalCachingStateHandler
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import (
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
    RuntimeTimer,
    TimerSpec,
    on_timer,
)
from apache_beam.utils.timestamp import Timestamp

from pipelines.prism import streaming_options

pytestmark = pytest.mark.prism

BUNDLES = 6


class ChainFn(beam.DoFn):
    """Adds a letter to what it finds, in as many bundles as there are timers: each sets the next."""

    TEXT = ReadModifyWriteStateSpec("text", BytesCoder())
    NEXT = TimerSpec("next", TimeDomain.WATERMARK)

    def __init__(self, file: Path) -> None:
        self._file = file

    def process(
        self,
        element: tuple[str, int],
        text: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(TEXT),  # noqa: B008
        timer: RuntimeTimer = beam.DoFn.TimerParam(NEXT),  # noqa: B008
    ) -> None:
        self._write(text, timer)

    @on_timer(NEXT)
    def on_next(
        self,
        text: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(TEXT),  # noqa: B008
        timer: RuntimeTimer = beam.DoFn.TimerParam(NEXT),  # noqa: B008
    ) -> None:
        self._write(text, timer)

    def _write(self, text: ReadModifyWriteRuntimeState, timer: RuntimeTimer) -> None:
        letters = (text.read() or b"") + b"x"
        text.write(letters)
        self._file.write_bytes(letters)
        if len(letters) < BUNDLES:
            timer.set(Timestamp(len(letters)))


def test_a_state_is_asked_for_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[bytes] = []
    get_raw = GlobalCachingStateHandler._get_raw

    def note(handler: GlobalCachingStateHandler, state_key: Any, token: bytes | None) -> Any:
        asked.append(state_key.bag_user_state.key)
        return get_raw(handler, state_key, token)

    # Prism's worker is a thread of this process.
    monkeypatch.setattr(GlobalCachingStateHandler, "_get_raw", note)
    with beam.Pipeline(options=streaming_options([])) as pipeline:
        pipeline | beam.Create([("key", 0)]) | beam.ParDo(ChainFn(tmp_path / "text"))
    assert (tmp_path / "text").read_bytes() == b"x" * BUNDLES
    assert len(asked) == 1
