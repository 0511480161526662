"""What becomes of a session whose state other models have written: what can be said of it is said, and it goes on."""

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from model_runtime.errors import StateError
from model_runtime.records import (
    Event,
    Final,
    MadeBy,
    Partial,
    SpeechBegin,
    SpeechEnd,
    Utterance,
    UtteranceAudio,
)
from transforms.open_utterance import OpenUtterance, follow
from transforms.result import Heard
from transforms.session_book import SessionBook, decode_book
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_logic import SessionLogic
from transforms.stream_records import Chunk, SpokenUtterance

A = MadeBy("a:1", "cpu")


@pytest.fixture
def logic(stand_in: object) -> SessionLogic:
    return SessionLogic(stand_in, SessionConfig(), OutputConfig(enhanced=False))


@pytest.fixture
def upgraded(stand_in: object, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, the engine is another one: it cannot read what has been written before."""

    def other(blob: bytes) -> object:
        raise StateError("of other models")

    def upgrade() -> None:
        monkeypatch.setattr(stand_in, "thaw", other)
        monkeypatch.setattr(stand_in, "made_by", lambda: MadeBy("stand-in:2", "npu"))

    return upgrade


def test_the_newest_partial_becomes_the_final_in_the_name_of_the_models_that_made_it(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray, upgraded: Callable[[], None]
) -> None:
    before = logic.advance(None, [make_chunk(0, part), make_chunk(1, part)])
    assert [(result.result_id, result.text) for result in before.results] == [("s/500/0/0", "1"), ("s/500/0/1", "2")]
    upgraded()
    turn = logic.advance(before.book, [make_chunk(2, part)])
    said = [(r.type, r.result_id, r.text, r.model, r.device, r.reason) for r in turn.results]
    assert said == [
        ("speech_end", "s/500/0/end", "", "stand-in:1", "cpu", "state"),
        ("final", "s/500/0/2", "2", "stand-in:1", "cpu", "state"),
        ("session_end", "s/500/-1/end", "", "stand-in:2", "npu", "state"),
        ("partial", "s/502/0/0", "1", "stand-in:2", "npu", ""),
    ]
    assert [(r.start_ms, r.end_ms) for r in turn.results] == [(0, 200), (0, 200), (0, 200), (0, 100)]


def test_what_waits_for_a_missing_chunk_is_heard_by_the_new_models(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], noise: np.ndarray, upgraded: Callable[[], None]
) -> None:
    parts = np.split(noise, 10)
    before = logic.advance(None, [make_chunk(0, parts[0]), make_chunk(2, parts[2]), make_chunk(3, parts[3])])
    upgraded()
    last = make_chunk(4, parts[4], end_of_stream=True)
    turn = logic.advance(before.book, [make_chunk(1, parts[1]), last])
    (final,) = [result for result in turn.results if result.type == "final" and not result.reason]
    assert final.text.split()[0] == "6400"
    assert (turn.counts["chunks"], turn.counts["chunks_missing"], turn.counts["chunks_late"]) == (4, 0, 0)


@pytest.mark.parametrize("reason", ["state", "length"])
def test_a_frame_that_the_sender_has_cut_apart_is_joined_across_the_border(
    logic: SessionLogic,
    make_chunk: Callable[..., Chunk],
    part: np.ndarray,
    upgraded: Callable[[], None],
    stand_in: object,
    reason: str,
) -> None:
    data = make_chunk(0, part).payload or b""
    config = SessionConfig(max_session_ms=99 if reason == "length" else 10_000)
    logic = SessionLogic(stand_in, config, OutputConfig(enhanced=False))
    before = logic.advance(None, [make_chunk(0, data[:3199])])
    if reason == "state":
        upgraded()
    last = make_chunk(1, data[3199:] + data[:2], end_of_stream=True)
    turn = logic.advance(before.book, [last])
    assert [r.reason for t in (before, turn) for r in t.results if r.type == "session_end"] == [reason, "end_of_stream"]
    assert turn.results[-1].audio_ms == 0
    assert turn.counts["frames_cut_off"] == 0
    assert turn.results[-2].text.split()[0] == "2"


def test_an_idle_session_of_other_models_is_ended_by_its_timer(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray, upgraded: Callable[[], None]
) -> None:
    before = logic.advance(None, [make_chunk(0, part)])
    upgraded()
    turn = logic.expire(before.book or b"", "s", decode_book(before.book or b"").deadline_ms)
    assert [(r.type, r.text, r.reason) for r in turn.results] == [
        ("speech_end", "", "state"),
        ("final", "1", "state"),
        ("session_end", "", "state"),
    ]


def test_the_audio_of_an_utterance_that_is_heard_whole_goes_to_the_new_models(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray, stand_in: object, upgraded: Callable
) -> None:
    stand_in.defers, stand_in.sample_rate_hz = True, 16_000
    heard: list[Event] = [SpeechBegin(0, 800), UtteranceAudio(0, b"\0" * 1600)]
    stand_in.step = lambda state, samples: (state, heard)
    before = logic.advance(None, [make_chunk(0, part)])
    assert (before.audio, before.utterances) == (b"\0" * 1600, [])
    stand_in.step = lambda state, samples: (state, [])
    upgraded()
    turn = logic.advance(before.book, [make_chunk(1, part)])
    spoken, end = turn.utterances
    assert spoken == SpokenUtterance(Utterance(0, 0, 800, 1600, 16_000), b"", spoken.heard, [])
    assert (turn.continues, turn.audio_over, [result.reason for result in end.then]) == (True, True, ["state"])


def test_an_utterance_is_open_from_its_beginning_to_its_end() -> None:
    begun = follow(None, SpeechBegin(3, 100), A)
    assert begun == OpenUtterance(3, 100, 100, "a:1", "cpu")
    partial = follow(begun, Partial(3, 4, "yes", 100, 900), A)
    assert partial == OpenUtterance(3, 100, 900, "a:1", "cpu", revision=5, text="yes")
    assert follow(partial, UtteranceAudio(3, b"1234"), A) == msgspec.structs.replace(partial, audio_bytes=4)
    assert follow(partial, SpeechEnd(3, 100, 900, "silence"), A) is None
    assert follow(partial, Final(3, 5, "yes", (), 1.0, 100, 900), A) is None


def test_an_utterance_without_a_partial_only_ends() -> None:
    begun = OpenUtterance(0, 16, 32, "a:1", "cpu")
    (ended,) = begun.last_words(Heard("s", 7, 16_000, 2))
    assert (ended.type, ended.result_id, ended.reason) == ("speech_end", "s/7/0/end", "state")


def test_a_book_from_before_there_were_open_utterances_is_read(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray
) -> None:
    fields = msgspec.msgpack.decode(logic.advance(None, [make_chunk(0, part)]).book or b"")
    assert len(fields) == len(SessionBook.__struct_fields__)
    before = SessionBook.__struct_fields__.index("open_utterance")
    old = decode_book(msgspec.msgpack.encode(fields[:before]))
    assert (old.open_utterance, old.samples) == (None, 1600)
