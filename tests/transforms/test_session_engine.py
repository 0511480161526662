"""Sessions with the real engine: frozen after every chunk they say what it says, and their memory stays small."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from model_runtime import Audio, SpeechEngine
from model_runtime.decode import decode_file, encode_linear16
from transforms.result import Heard, Result, event_to_result
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_logic import SessionLogic
from transforms.stream_records import Chunk

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


@pytest.fixture(scope="module")
def engine() -> SpeechEngine:
    return SpeechEngine.load("streaming")


@pytest.fixture
def logic(engine: SpeechEngine) -> SessionLogic:
    return SessionLogic(engine, SessionConfig(), OutputConfig())


def essence(result: Result) -> tuple[object, ...]:
    return (result.type, result.utterance, result.revision, result.text, result.words, result.start_ms, result.end_ms)


@pytest.mark.parametrize("name", ["door_code.wav", "telephone_8khz.wav", "studio_48khz.flac"])
@pytest.mark.parametrize("size", [1_607, 4_800])
def test_a_session_says_what_the_engine_says_about_the_whole_recording(
    logic: SessionLogic, engine: SpeechEngine, make_chunk: Callable[..., Chunk], name: str, size: int
) -> None:
    audio = decode_file(SAMPLES / name)
    parts = np.split(audio.samples, range(size, len(audio.samples), size))
    book, said = None, []
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        fields = {"encoding": "FLOAT32", "sample_rate_hz": audio.sample_rate_hz, "end_of_stream": last}
        turn = logic.advance(book, [make_chunk(i, part.astype("<f4").tobytes(), **fields)])
        book = turn.book
        said += [essence(result) for result in turn.results]
    (events,) = engine.run([audio])
    heard = Heard("", 0, audio.sample_rate_hz, 0)
    whole = [event_to_result(event, heard, engine.made_by()) for event in events]
    assert said[:-1] == [essence(result) for result in whole if result is not None]
    assert said[-1][0] == "session_end"


def test_an_endless_silent_session_stays_small_and_says_nothing(
    logic: SessionLogic, make_chunk: Callable[..., Chunk]
) -> None:
    book, sizes, said = None, [], []
    for i in range(600):
        turn = logic.advance(book, [make_chunk(i, np.zeros(1_600, np.float32))])
        book = turn.book
        sizes.append(len(book or b""))
        said += turn.results
    assert said == []
    assert max(sizes[100:]) <= max(sizes[:100]) + 64
    assert max(sizes) < 200_000


def test_a_loud_session_does_not_colour_a_silent_one(
    logic: SessionLogic, engine: SpeechEngine, make_chunk: Callable[..., Chunk]
) -> None:
    loud = decode_file(SAMPLES / "lift.wav").samples[:32_000]
    books: dict[str, bytes | None] = {}
    quiet: list[Result] = []
    for i, part in enumerate(np.split(loud, 20)):
        for session, samples in (("loud", part), ("quiet", np.zeros(1_600, np.float32))):
            turn = logic.advance(books.get(session), [make_chunk(i, samples, session=session, end_of_stream=i == 19)])
            books[session] = turn.book
            quiet += turn.results if session == "quiet" else []
    assert [result.type for result in quiet] == ["session_end"]
    (alone,) = engine.run([Audio(np.zeros(32_000, np.float32), 16_000)])
    assert [type(event).__name__ for event in alone if type(event).__name__ != "Enhanced"] == []


def test_samples_that_are_no_numbers_are_refused_and_do_not_reach_the_state(
    logic: SessionLogic, make_chunk: Callable[..., Chunk]
) -> None:
    audio = decode_file(SAMPLES / "lift.wav").samples[:16_000]
    bad = encode_linear16(audio[:1_600])
    first = logic.advance(None, [make_chunk(0, audio.astype("<f4").tobytes(), encoding="FLOAT32")])
    nan = logic.advance(first.book, [make_chunk(1, np.full(10, np.nan, "<f4").tobytes(), encoding="FLOAT32")])
    assert [letter.stage for letter in nan.dead_letters] == ["audio"]
    with_bad = logic.advance(nan.book, [make_chunk(2, bad, end_of_stream=True)])
    without = logic.advance(first.book, [make_chunk(1, bad, end_of_stream=True)])
    assert [essence(result) for result in with_bad.results] == [essence(result) for result in without.results]
