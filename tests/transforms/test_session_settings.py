"""What a sender asks for its session: from which chunk, within which bounds, and for how long it holds."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from model_runtime import Recipe, SessionSettings, SpeechEngine
from model_runtime.decode import decode_file
from model_runtime.recipe import AsrConfig, DenoiseConfig, EndpointConfig, VadConfig
from service.wire import ENHANCED
from transforms.dead_letter import DeadLetter, Header
from transforms.result import Result
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_logic import SessionLogic
from transforms.session_turn import Turn
from transforms.stream_records import Chunk

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
CONFIG = SessionConfig(idle_timeout_ms=5_000, tombstone_ms=60_000, max_session_ms=1_000)
SHORT = (("silence_after_speech_ms", b"300"), ("tentative_end_ms", b"150"))
OWN = "{'silence_after_speech_ms': 300, 'tentative_end_ms': 150}"


@pytest.fixture
def logic(stand_in: object) -> SessionLogic:
    return SessionLogic(stand_in, CONFIG, OutputConfig(partials=False))


@pytest.fixture
def ask(make_chunk: Callable[..., Chunk], part: np.ndarray) -> Callable[..., Chunk]:
    """Gives a chunk with these headers."""
    return lambda number, *headers, **fields: make_chunk(number, part, headers=list(headers), **fields)


def play(logic: SessionLogic, chunks: Iterable[Chunk]) -> list[Turn]:
    book, turns = None, []
    for chunk in chunks:
        turns.append(logic.advance(book, [chunk]))
        book = turns[-1].book
    return turns


def finals(turns: Iterable[Turn]) -> list[str]:
    return [result.text for turn in turns for result in turn.results if result.type == "final"]


def letters(turns: Iterable[Turn]) -> list[DeadLetter]:
    return [letter for turn in turns for letter in turn.dead_letters]


def test_the_wire_page_lists_every_setting() -> None:
    page = (SAMPLES.parent / "docs" / "streaming.md").read_text(encoding="utf-8")
    names = [*SessionSettings.__struct_fields__, ENHANCED]
    assert [name for name in names if f"\n| `{name}` | `" not in page] == []


def test_settings_of_the_first_chunk_hold_to_the_end_and_those_of_later_ones_are_left_alone(
    logic: SessionLogic, ask: Callable[..., Chunk]
) -> None:
    later = ("silence_after_speech_ms", b"900")
    turns = play(logic, [ask(0, *SHORT), ask(1, later), ask(2, later, end_of_stream=True)])
    assert finals(turns)[0].endswith(OWN)
    assert letters(turns) == []


def test_the_first_chunk_is_the_one_that_is_heard_first_also_where_it_comes_second(
    logic: SessionLogic, ask: Callable[..., Chunk]
) -> None:
    turns = play(logic, [ask(1, ("silence_after_speech_ms", b"900")), ask(0, *SHORT), ask(2, end_of_stream=True)])
    assert finals(turns)[0].endswith(OWN)


def test_a_first_chunk_may_ask_without_audio(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], ask: Callable[..., Chunk]
) -> None:
    asking = make_chunk(0, None, headers=[SHORT[0]])
    assert finals(play(logic, [asking, ask(1, SHORT[1]), ask(2, end_of_stream=True)]))[0].endswith(OWN)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (("max_utterance_ms", b"60001"), "max_utterance_ms must be 1000..60000, got 60001"),
        (("partial_interval_ms", b"-1"), "header partial_interval_ms must be a whole number in ASCII digits"),
        (("enhanced", b"perhaps"), "header enhanced must be 1 or 0, got b'perhaps'"),
    ],
)
def test_a_value_that_cannot_be_granted_is_a_dead_letter_and_the_chunk_is_heard_all_the_same(
    logic: SessionLogic,
    ask: Callable[..., Chunk],
    part: np.ndarray,
    final_of: Callable[[np.ndarray], str],
    header: Header,
    message: str,
) -> None:
    chunk = ask(0, header, *SHORT, end_of_stream=True)
    turns = play(logic, [chunk])
    (letter,) = letters(turns)
    assert (letter.stage, letter.offset, letter.error_class) == ("settings", 500, "ConfigError")
    assert letter.message.startswith(message)
    assert (letter.payload, letter.headers) == (chunk.payload, chunk.headers)
    assert finals(turns) == [f"{final_of(part)} {OWN}"]
    assert turns[0].counts["settings_refused"] == 1


def test_all_that_is_wrong_is_said_at_once(logic: SessionLogic, ask: Callable[..., Chunk]) -> None:
    (letter,) = letters(play(logic, [ask(0, ("tentative_end_ms", b"x"), ("max_utterance_ms", b"1"))]))
    assert letter.message == (
        "max_utterance_ms must be 1000..60000, got 1; "
        "header tentative_end_ms must be a whole number in ASCII digits, got b'x'"
    )


def test_a_session_may_do_without_clean_audio(logic: SessionLogic, ask: Callable[..., Chunk]) -> None:
    quiet = play(logic, [ask(0, ("enhanced", b"0")), ask(1, end_of_stream=True)])
    assert [turn.enhanced for turn in quiet] == [[], []]
    loud = play(logic, [ask(0, ("enhanced", b"1")), ask(1, end_of_stream=True)])
    assert [len(turn.enhanced) for turn in loud] == [1, 2]


def test_clean_audio_that_the_job_does_not_write_cannot_be_asked_for(
    stand_in: object, ask: Callable[..., Chunk]
) -> None:
    turns = play(SessionLogic(stand_in, CONFIG, OutputConfig(enhanced=False)), [ask(0, ("enhanced", b"1"))])
    assert [letter.message for letter in letters(turns)] == [
        "header enhanced must be 0 where the job writes no clean audio, got 1"
    ]
    assert turns[0].enhanced == []


def test_a_sender_that_goes_on_after_the_longest_session_keeps_its_settings(
    logic: SessionLogic, ask: Callable[..., Chunk]
) -> None:
    chunks = [ask(0, *SHORT, ("enhanced", b"0")), *[ask(i) for i in range(1, 12)], ask(12, end_of_stream=True)]
    turns = play(logic, chunks)
    assert [text.endswith(OWN) for text in finals(turns)] == [True, True]
    assert not any(turn.enhanced for turn in turns)


def test_a_sender_that_begins_again_begins_with_what_the_recipe_has(
    logic: SessionLogic, ask: Callable[..., Chunk]
) -> None:
    turns = play(logic, [ask(0, *SHORT), ask(1), ask(0, offset=900, event_ms=1_000_500, end_of_stream=True)])
    assert [text.endswith(OWN) for text in finals(turns)] == [True, False]


def test_settings_that_another_engine_cannot_grant_are_dropped(
    logic: SessionLogic, ask: Callable[..., Chunk], monkeypatch: pytest.MonkeyPatch, stand_in: object
) -> None:
    turns = play(logic, [ask(0, ("max_utterance_ms", b"60000"))])
    ended = logic.expire(turns[0].book or b"", "s", 1_010_000)
    monkeypatch.setattr("model_runtime.recipe.MOST_UTTERANCE_MS", 29_000)
    after = logic.advance(ended.book, [ask(1, event_ms=1_020_000, end_of_stream=True)])
    assert [result.type for result in after.results] == ["final", "session_end"]
    assert "max_utterance_ms" not in after.results[0].text


def test_with_the_real_engine_headers_do_what_the_recipe_does(make_chunk: Callable[..., Chunk]) -> None:
    def recipe(endpoint: EndpointConfig, interval_ms: int) -> SpeechEngine:
        asr = AsrConfig("unison-asr-stream", hears="original", partial_interval_ms=interval_ms)
        return SpeechEngine.load(Recipe("r", DenoiseConfig("unison-denoise"), VadConfig("unison-vad"), asr, endpoint))

    def said(engine: SpeechEngine, headers: list[Header]) -> list[Result]:
        logic = SessionLogic(engine, SessionConfig(), OutputConfig())
        chunks = [make_chunk(i, piece, headers=headers, end_of_stream=i == 29) for i, piece in enumerate(pieces)]
        return [result for turn in play(logic, chunks) for result in turn.results]

    # Its speaker pauses between the words.
    pieces = np.array_split(decode_file(SAMPLES / "countdown.wav").samples, 30)
    wishes = {"silence_after_speech_ms": 700, "tentative_end_ms": 150, "max_utterance_ms": 5_000}
    own = [(name, b"%d" % value) for name, value in {**wishes, "partial_interval_ms": 320}.items()]
    tuned = recipe(EndpointConfig(**wishes), 320)
    results = said(recipe(EndpointConfig(), 100), own)
    assert results == said(tuned, [])
    assert {"partial", "tentative_end", "speech_resumed", "final"} <= {result.type for result in results}
