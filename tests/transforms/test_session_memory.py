"""Field case S08: what an endless session, and very many sessions, cost to remember."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from model_runtime import Recipe, SpeechEngine
from model_runtime.decode import decode_file
from model_runtime.recipe import AsrConfig, VadConfig
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_logic import SessionLogic
from transforms.stream_records import Chunk

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
MINUTE = 960_000
# Wider numbers: positions, counts and times of an hour take a few bytes more than those of five minutes.
WIDER_BYTES = 40


@pytest.fixture(scope="module")
def logic() -> SessionLogic:
    """Without a denoiser: an hour of audio is heard in seconds. A chunk of a minute is no silence."""
    engine = SpeechEngine.load(Recipe("hour", None, VadConfig("unison-vad"), AsrConfig("unison-asr-stream")))
    return SessionLogic(engine, SessionConfig(idle_timeout_ms=120_000), OutputConfig(enhanced=False))


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    """A minute that begins with four utterances or so and is silent then."""
    minute = np.zeros(MINUTE, np.float32)
    said = decode_file(SAMPLES / "door_code.wav").samples
    minute[: len(said)] = said
    return minute


def hour(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], minute: np.ndarray
) -> tuple[list[int], list[list[str]]]:
    """Bytes of memory after each minute, and what was said in it."""
    book, sizes, said = None, [], []
    for number in range(60):
        turn = logic.advance(book, [make_chunk(number, minute, event_ms=1_000_000 + 60_000 * number)])
        book = turn.book
        sizes.append(len(book or b""))
        said.append([f"{result.type} {result.text}" for result in turn.results])
    return sizes, said


def test_an_hour_of_silence_says_nothing_and_costs_no_memory(
    logic: SessionLogic, make_chunk: Callable[..., Chunk]
) -> None:
    sizes, said = hour(logic, make_chunk, np.zeros(MINUTE, np.float32))
    assert said == [[]] * 60
    assert max(sizes[5:]) - min(sizes[5:]) <= WIDER_BYTES
    assert max(sizes) < 50_000


def test_an_hour_of_speech_says_the_same_every_minute_and_costs_no_memory(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], speech: np.ndarray
) -> None:
    sizes, said = hour(logic, make_chunk, speech)
    assert any(line.startswith("final ") and len(line) > 10 for line in said[0])
    assert said == [said[0]] * 60
    assert max(sizes[5:]) - min(sizes[5:]) <= WIDER_BYTES


def test_ten_thousand_sessions_without_an_end_leave_nothing_behind(
    stand_in: object, make_chunk: Callable[..., Chunk], noise: np.ndarray
) -> None:
    logic = SessionLogic(stand_in, SessionConfig(idle_timeout_ms=5_000, tombstone_ms=60_000), OutputConfig())
    books: dict[str, bytes] = {}
    timers: dict[str, int] = {}

    def keep(key: str, book: bytes | None, timer_ms: int | None) -> None:
        """What InferSessions does with a turn."""
        if book is None:
            del books[key]
        else:
            books[key] = book
        if timer_ms is not None:
            timers[key] = timer_ms

    def pass_time(now_ms: int) -> list[str]:
        ended = []
        for key in [key for key, timer_ms in timers.items() if timer_ms <= now_ms]:
            del timers[key]
            turn = logic.expire(books[key], key, now_ms)
            keep(key, turn.book, turn.timer_ms)
            ended += [result.reason for result in turn.results if result.type == "session_end"]
        return ended

    for number in range(10_000):
        key = f"k{number}"
        turn = logic.advance(None, [make_chunk(0, noise[:1600], session=key)])
        keep(key, turn.book, turn.timer_ms)
    assert (len(books), len(timers)) == (10_000, 10_000)
    assert pass_time(1_005_100) == ["idle"] * 10_000
    assert (len(books), len(timers)) == (10_000, 10_000)
    assert max(map(len, books.values())) < 150
    assert pass_time(1_065_100) == []
    assert (len(books), len(timers)) == (0, 0)
