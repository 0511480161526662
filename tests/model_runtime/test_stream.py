"""Recordings that are heard block by block: what the whole clip says, with no more than a block in hand."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from model_runtime import Audio, AudioError, Event, SpeechEngine
from model_runtime.stream import Stream


def _blocks(samples: np.ndarray, size: int) -> Iterator[np.ndarray]:
    return (samples[at : at + size] for at in range(0, len(samples), size))


def _heard(engine: SpeechEngine, audio: Audio, size: int) -> list[Event]:
    events: list[Event] = []
    engine.run_streams([Stream(audio.sample_rate_hz, _blocks(audio.samples, size), events.extend)])
    return events


@pytest.mark.parametrize("name", ["streaming", "batch"])
def test_recording_says_in_blocks_what_step_says(
    engine: Callable[..., SpeechEngine], samples: list[Audio], name: str
) -> None:
    """At the models' rate and at two others; byte for byte but for where the clean audio is cut."""
    loaded = engine(name)
    for audio in (next(each for each in samples if each.sample_rate_hz == rate) for rate in (8000, 16000, 48000)):
        state, events = loaded.start(audio.sample_rate_hz), []
        for block in _blocks(audio.samples, 30_011):
            state, more = loaded.step(state, block)
            events += more
        assert _heard(loaded, audio, 30_011) == events + loaded.finish(state)[1]


def test_block_is_read_when_all_before_it_has_been_heard(engine: Callable[..., SpeechEngine]) -> None:
    log: list[str] = []

    def blocks() -> Iterator[np.ndarray]:
        for number in range(3):
            log.append(f"read {number}")
            yield np.zeros(16_000, np.float32)

    engine("segment").run_streams([Stream(16_000, blocks(), lambda events: log.append("heard"))])
    assert log == ["read 0", "heard", "read 1", "heard", "read 2", "heard", "heard"]


def test_bad_sample_of_a_block_is_refused(engine: Callable[..., SpeechEngine]) -> None:
    with pytest.raises(AudioError, match="sample 1 of 2 is nan"):
        _heard(engine("segment"), Audio(np.array([0, 0, 0, np.nan], np.float32), 16_000), 2)
