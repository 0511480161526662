"""What chunks and deadlines do to a session: the engine is a stand-in that can be reckoned by hand."""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model_runtime.decode import decode_pcm
from service.wire import NO_SEQUENCE
from transforms.result import Result
from transforms.session_book import decode_book
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_logic import SessionLogic
from transforms.session_turn import Turn
from transforms.stream_records import Chunk

CONFIG = SessionConfig(idle_timeout_ms=5_000, tombstone_ms=60_000, max_session_ms=10_000)


class Heard(NamedTuple):
    turns: list[Turn]
    book: bytes | None

    def results(self, kind: str) -> list[Result]:
        return [result for turn in self.turns for result in turn.results if result.type == kind]

    def texts(self) -> list[str]:
        return [result.text for result in self.results("final")]

    def ends(self) -> list[str]:
        return [result.reason for result in self.results("session_end")]

    def counts(self) -> Counter[str]:
        return sum((turn.counts for turn in self.turns), Counter())

    def deadline_ms(self) -> int:
        return decode_book(self.book or b"").deadline_ms

    def refusals(self) -> list[tuple[str, int, str]]:
        return [(letter.stage, letter.offset, letter.message) for turn in self.turns for letter in turn.dead_letters]


@pytest.fixture
def logic(stand_in: object) -> SessionLogic:
    return SessionLogic(stand_in, CONFIG, OutputConfig(enhanced=True))


def play(logic: SessionLogic, chunks: Iterable[Chunk], book: bytes | None = None) -> Heard:
    turns = []
    for chunk in chunks:
        turns.append(logic.advance(book, [chunk]))
        book = turns[-1].book
    return Heard(turns, book)


@pytest.fixture
def chunks(make_chunk: Callable[..., Chunk], noise: np.ndarray) -> list[Chunk]:
    """One second of noise in ten chunks, the last of which ends the stream."""
    parts = np.split(noise, 10)
    return [make_chunk(i, part, end_of_stream=i == 9) for i, part in enumerate(parts)]


def test_end_of_stream_flushes_the_engine_and_then_ends_the_session(
    logic: SessionLogic, chunks: list[Chunk], noise: np.ndarray, final_of: Callable[[np.ndarray], str]
) -> None:
    heard = play(logic, chunks)
    assert heard.texts() == [final_of(noise)]
    assert [result.type for result in heard.turns[-1].results] == ["partial", "final", "session_end"]
    assert heard.ends() == ["end_of_stream"]
    assert heard.counts() == {"sessions_opened": 1, "sessions_ended": 1, "chunks": 10, "audio_us": 1_000_000}


def test_an_empty_last_chunk_and_idleness_end_a_session_with_the_same_words(
    logic: SessionLogic, chunks: list[Chunk], make_chunk: Callable[..., Chunk]
) -> None:
    unended = [chunk._replace(end_of_stream=False) for chunk in chunks]
    by_flag = play(logic, chunks)
    by_empty = play(logic, [*unended, make_chunk(10, b"", end_of_stream=True)])
    open_ = play(logic, unended)
    expired = logic.expire(open_.book or b"", "s", open_.deadline_ms())
    by_time = Heard([*open_.turns, expired], expired.book)
    assert by_empty.texts() == by_flag.texts() == by_time.texts()
    assert by_empty.ends() == ["end_of_stream"]
    assert by_time.ends() == ["idle"]


def test_the_deadline_is_the_idle_timeout_after_the_last_sample(logic: SessionLogic, chunks: list[Chunk]) -> None:
    assert play(logic, chunks[:3]).deadline_ms() == 1_000_200 + 100 + 5_000


def test_a_timer_that_fires_early_changes_nothing(logic: SessionLogic, chunks: list[Chunk]) -> None:
    open_ = play(logic, chunks[:3])
    early = logic.expire(open_.book or b"", "s", open_.deadline_ms() - 1)
    before, after = decode_book(open_.book or b""), decode_book(early.book or b"")
    assert (after.engine, after.deadline_ms, early.results) == (before.engine, before.deadline_ms, [])
    assert early.timer_ms == after.deadline_ms


def test_a_tombstone_is_forgotten_at_its_deadline(logic: SessionLogic, chunks: list[Chunk]) -> None:
    ended = play(logic, chunks)
    deadline_ms = ended.deadline_ms()
    assert deadline_ms == 1_000_900 + 100 + 5_000 + 60_000
    assert len(ended.book or b"") < 110
    assert logic.expire(ended.book or b"", "s", deadline_ms).book is None


def test_results_say_whose_they_are_what_was_heard_and_who_made_them(logic: SessionLogic, chunks: list[Chunk]) -> None:
    heard = play(logic, chunks)
    (final,), (end,) = heard.results("final"), heard.results("session_end")
    assert (final.result_id, end.result_id) == ("s/500/0/10", "s/500/-1/end")
    assert (final.audio_ms, final.model, final.device) == (1000, "stand-in:1", "cpu")
    assert final.captured_ms == 1_000_900 + 100
    assert (end.utterance, end.start_ms, end.end_ms) == (-1, 0, 1000)


@given(cuts=st.lists(st.integers(0, 32_000), max_size=12))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_cutting_of_the_bytes_gives_the_same_words_partials_and_clean_audio(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], chunks: list[Chunk], cuts: list[int]
) -> None:
    data = b"".join(chunk.payload or b"" for chunk in chunks)
    borders = [0, *sorted(cuts), len(data)]
    parts = [data[first:last] for first, last in pairwise(borders)]
    cut = play(logic, [make_chunk(i, part, end_of_stream=i == len(parts) - 1) for i, part in enumerate(parts)])
    whole = play(logic, chunks)
    assert cut.texts() == whole.texts()
    assert [p.text for p in cut.results("partial")] == [p.text for p in whole.results("partial")]
    assert clean_audio(cut) == clean_audio(whole) == data


def clean_audio(heard: Heard) -> bytes:
    return b"".join(chunk.payload for turn in heard.turns for chunk in turn.enhanced)


def test_clean_audio_is_numbered_and_its_last_chunk_ends_the_stream(logic: SessionLogic, chunks: list[Chunk]) -> None:
    pieces = [piece for turn in play(logic, chunks).turns for piece in turn.enhanced]
    assert [piece.sequence for piece in pieces] == list(range(11))
    assert [piece.end_of_stream for piece in pieces] == [False] * 10 + [True]
    assert [piece.event_ms for piece in pieces] == [1_000_000 + 100 * i for i in range(11)]
    assert [(piece.incarnation, piece.start_samples) for piece in pieces] == [(500, 1600 * i) for i in range(11)]


def test_a_replay_in_other_turns_gives_the_same_audio_at_the_same_places(
    logic: SessionLogic, chunks: list[Chunk]
) -> None:
    first = logic.advance(None, chunks[:3])
    replayed = logic.advance(None, chunks[:2])
    places: dict[int, bytes] = {}
    for piece in (piece for turn in (first, replayed) for piece in turn.enhanced):
        at = {piece.start_samples + i: piece.payload[2 * i : 2 * i + 2] for i in range(len(piece.payload) // 2)}
        assert all(places.get(place, sample) == sample for place, sample in at.items())
        places |= at
    assert sorted(places) == list(range(4_800))


def test_a_chunk_that_comes_twice_is_dropped_and_counted(logic: SessionLogic, chunks: list[Chunk]) -> None:
    twice = [chunk for chunk in chunks[:9] for _ in range(2)] + chunks[9:]
    heard = play(logic, twice)
    assert heard.texts() == play(logic, chunks).texts()
    assert heard.counts()["chunks_duplicate"] == 9
    assert heard.results("session_end")[0].duplicates == 9


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sample_rate_hz": 8_000}, "sample_rate_hertz must not change within a session, was 16000, got 8000"),
        ({"channels": 2}, "channels must not change within a session, was 1, got 2"),
        ({"encoding": "OPUS"}, "encoding must be one of LINEAR16, FLOAT32, MULAW, ALAW, got 'OPUS'"),
        ({"payload": bytes(9_000_000)}, "a chunk must have at most 8388608 bytes, got 9000000"),
    ],
)
def test_a_chunk_that_cannot_be_used_is_refused_and_the_session_goes_on_without_it(
    logic: SessionLogic, chunks: list[Chunk], fields: dict[str, object], message: str
) -> None:
    bad = [chunk._replace(**fields) if i == 4 else chunk for i, chunk in enumerate(chunks)]
    heard = play(logic, bad)
    without = play(logic, [chunk._replace(sequence=NO_SEQUENCE) for i, chunk in enumerate(chunks) if i != 4])
    assert heard.refusals() == [("audio", 504, message)]
    assert heard.texts() == without.texts()
    assert heard.results("session_end")[0].gaps == []


def test_a_dead_letter_holds_the_record_as_it_was(logic: SessionLogic, make_chunk: Callable[..., Chunk]) -> None:
    bad = make_chunk(0, b"1234", encoding="OPUS")
    (letter,) = logic.advance(None, [bad]).dead_letters
    assert (letter.key, letter.record_key, letter.payload, letter.headers) == ("s", b"s", b"1234", bad.headers)
    assert (letter.topic, letter.partition, letter.offset) == ("audio", 0, 500)
    assert letter.error_class == "AudioError"


def test_samples_that_the_engine_refuses_leave_no_trace(make_chunk: Callable[..., Chunk], stand_in: object) -> None:
    logic = SessionLogic(stand_in, CONFIG, OutputConfig())
    good = np.full(1600, 0.25, "<f4").tobytes()
    bad = np.array([0.1, np.nan], "<f4").tobytes()
    payloads = [good, bad, good]
    heard = play(logic, [make_chunk(i, part, encoding="FLOAT32") for i, part in enumerate(payloads)])
    assert [stage for stage, _, _ in heard.refusals()] == ["audio"]
    assert [result.text for result in heard.results("partial")] == ["1", "2"]


def test_a_refused_chunk_that_ends_the_stream_ends_it_all_the_same(logic: SessionLogic, chunks: list[Chunk]) -> None:
    heard = play(logic, [*chunks[:9], chunks[9]._replace(encoding="OPUS")])
    assert heard.ends() == ["end_of_stream"]


def test_chunks_without_audio_keep_a_session_alive_but_open_none(
    logic: SessionLogic, chunks: list[Chunk], make_chunk: Callable[..., Chunk]
) -> None:
    opened = play(logic, [make_chunk(i, part, sequence=NO_SEQUENCE) for i, part in enumerate([None, b""])])
    assert (opened.book, opened.counts()) == (None, {"chunks_without_audio": 2})
    kept = play(logic, [*chunks[:2], make_chunk(2, b"", event_ms=1_004_000), make_chunk(3, None)])
    assert kept.deadline_ms() == 1_009_000
    assert kept.ends() == []


def test_a_stream_that_ends_before_it_has_begun_says_so(logic: SessionLogic, make_chunk: Callable[..., Chunk]) -> None:
    heard = play(logic, [make_chunk(0, None, end_of_stream=True)])
    assert heard.ends() == ["end_of_stream"]
    assert heard.results("session_end")[0].audio_ms == 0


def test_a_multichannel_session_is_heard_as_its_mean(logic: SessionLogic, make_chunk: Callable[..., Chunk]) -> None:
    stereo = np.array([[1000, 3000]] * 1600, "<i2").tobytes()
    heard = play(logic, [make_chunk(0, stereo, channels=2, end_of_stream=True)])
    assert clean_audio(heard) == np.full(1600, 2000, "<i2").tobytes()
    assert len(decode_pcm(stereo, "LINEAR16", 2, 16_000)) == 1600
