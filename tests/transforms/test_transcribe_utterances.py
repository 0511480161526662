"""A recogniser that hears utterances whole says in the streaming job what it says of the whole clip."""

from collections.abc import Callable
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.testing.test_stream import TestStream
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Timestamp

from model_runtime import Audio, Final, Partial, RouteConfig, SpeechEngine
from model_runtime.decode import decode_file
from transforms.infer_sessions import UTTERANCES, InferSessions
from transforms.result import RESULTS, Heard
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_logic import SessionLogic
from transforms.stream_records import Chunk, SpokenUtterance
from transforms.transcribe_utterances import _place

ROOT = Path(__file__).resolve().parents[2]
AGREEING = "{name: agreeing, vad: {model: unison-vad}, asr: {model: unison-asr-batch, agreement_interval_ms: 400}}"
SESSION = SessionConfig(idle_timeout_ms=5_000, tombstone_ms=60_000)


@pytest.fixture(scope="module")
def recording() -> Audio:
    """One of the project's recordings at 16 kHz, that LINEAR16 carries exactly, with several utterances in it."""
    files = sorted((ROOT / "samples").glob("*.wav"))
    audio = next(audio for audio in map(decode_file, files) if audio.sample_rate_hz == 16_000)
    pause = np.zeros(24_000, np.float32)
    return Audio(np.concatenate([audio.samples, pause, audio.samples]), 16_000)


@pytest.fixture(scope="module")
def whole(recording: Audio) -> list[Final]:
    (events,) = SpeechEngine.load("batch").run([recording])
    return [event for event in events if isinstance(event, Final)]


def chunks_of(recording: Audio, make_chunk: Callable[..., Chunk], **fields: object) -> list[Chunk]:
    pieces = [recording.samples[at : at + 1600] for at in range(0, len(recording.samples), 1600)]
    return [make_chunk(i, piece, **fields) for i, piece in enumerate(pieces)]


def stamped(chunk: Chunk) -> TimestampedValue:
    return TimestampedValue((chunk.session, [chunk]), Timestamp(micros=chunk.stream_ms * 1000))


def live_pipeline() -> beam.Pipeline:
    options = beam.options.pipeline_options.PipelineOptions(["--streaming"])
    return beam.Pipeline(runner=BundleBasedDirectRunner(), options=options)


def feed(pipeline: beam.Pipeline, chunks: list[Chunk]) -> beam.PCollection:
    """Each chunk alone, the watermark at its heels."""
    events = TestStream(coder=beam.coders.FastPrimitivesCoder())
    for chunk in chunks:
        events.advance_watermark_to(Timestamp(micros=chunk.stream_ms * 1000))
        events.add_elements([stamped(chunk)])
    events.advance_watermark_to_infinity()
    return pipeline | events | beam.Map(lambda pair: pair).with_output_types(tuple[str, list[Chunk]])


def test_finals_are_those_of_the_whole_clip_and_come_before_the_end_of_the_session(
    recording: Audio, whole: list[Final], make_chunk: Callable[..., Chunk]
) -> None:
    assert len(whole) > 1
    chunks = chunks_of(recording, make_chunk)
    chunks[-1] = chunks[-1]._replace(end_of_stream=True)
    output = OutputConfig(partials=False, segments=False, enhanced=False)
    infer = InferSessions("batch", RouteConfig(), SESSION, output, defer=True)
    expected = [(f"s/500/{final.utterance}/0", final.text, list(final.words)) for final in whole]
    with live_pipeline() as pipeline:
        fed = feed(pipeline, chunks)
        said = fed | infer
        finals = said[UTTERANCES] | infer.transcription()
        rows = finals | beam.Map(lambda r: (r.result_id, r.text, [tuple(word) for word in r.words]))
        assert_that(said[RESULTS], equal_to([]), "nothing on the way")
        end = ("s/500/-1/end", "", [])
        assert_that(rows, equal_to([*((i, t, [tuple(w) for w in ws]) for i, t, ws in expected), end]), "finals")


def test_partials_and_finals_are_those_of_the_whole_clip(
    recording: Audio, make_chunk: Callable[..., Chunk], tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(AGREEING)
    (events,) = SpeechEngine.load(recipe).run([recording])
    said = [event for event in events if isinstance(event, Partial | Final)]
    assert sum(isinstance(event, Partial) for event in said) > 4
    chunks = chunks_of(recording, make_chunk)
    chunks[-1] = chunks[-1]._replace(end_of_stream=True)
    output = OutputConfig(segments=False, enhanced=False)
    infer = InferSessions(str(recipe), RouteConfig(), SESSION, output, defer=True)
    expected = [(type(e).__name__.lower(), f"s/500/{e.utterance}/{e.revision}", e.text) for e in said]
    with live_pipeline() as pipeline:
        results = feed(pipeline, chunks) | infer
        rows = results[UTTERANCES] | infer.transcription() | beam.Map(lambda r: (r.type, r.result_id, r.text))
        assert_that(rows, equal_to([*expected, ("session_end", "s/500/-1/end", "")]))


@pytest.fixture(scope="module")
def engine() -> SpeechEngine:
    return SpeechEngine.load("batch", defer=True)


@pytest.fixture(scope="module")
def logic(engine: SpeechEngine) -> SessionLogic:
    return SessionLogic(engine, SESSION, OutputConfig(partials=False, segments=False, enhanced=False))


def test_what_turns_keep_and_hand_on_is_all_of_the_utterances(
    recording: Audio,
    whole: list[Final],
    make_chunk: Callable[..., Chunk],
    engine: SpeechEngine,
    logic: SessionLogic,
) -> None:
    book: bytes | None = None
    kept, handed_on = b"", []
    chunks = chunks_of(recording, make_chunk)
    chunks[-1] = chunks[-1]._replace(end_of_stream=True)
    for chunk in chunks:
        turn = logic.advance(book, [chunk])
        book = turn.book
        for place, spoken in enumerate(turn.utterances):
            before = kept if turn.continues and not place else b""
            if spoken.utterance is not None:
                handed_on.append((spoken.utterance, before + spoken.pcm))
        kept = (b"" if turn.audio_over else kept) + turn.audio
        # A session holds a second of float32 audio at most, to look back, however long its utterances are.
        assert book is not None and len(book) < 4 * 16_000
    assert kept == b""
    assert engine.transcribe(handed_on) == whole


def test_the_end_of_a_session_waits_for_its_last_final(
    recording: Audio, make_chunk: Callable[..., Chunk], logic: SessionLogic
) -> None:
    chunks = chunks_of(recording, make_chunk)[:12]
    chunks[-1] = chunks[-1]._replace(end_of_stream=True)
    turn = logic.advance(None, chunks)
    assert [result.type for result in turn.results] == []
    assert [[result.type for result in spoken.then] for spoken in turn.utterances] == [[], ["session_end"]]


def test_a_session_that_cannot_go_on_leaves_no_audio_to_the_next_one(
    recording: Audio, make_chunk: Callable[..., Chunk], logic: SessionLogic
) -> None:
    first, *_, last = chunks = chunks_of(recording, make_chunk)[:12]
    turn = logic.advance(None, chunks[:-1])
    assert turn.audio and not turn.utterances
    other = SessionLogic(
        SpeechEngine.load("streaming"), SESSION, OutputConfig(partials=False, segments=False, enhanced=False)
    )
    assert turn.book is not None
    ended = other.advance(turn.book, [last])
    assert [(result.type, result.reason) for result in ended.results] == [("session_end", "state")]
    assert ended.audio_over and ended.audio == b""
    assert first.payload


def test_all_that_a_session_says_comes_to_one_of_so_many_places() -> None:
    spoken = [SpokenUtterance(None, b"", Heard(f"s{number % 50}", 0, 16_000, 0), []) for number in range(100)]
    placed = [_place(one, 3) for one in spoken]
    assert [one for _, one in placed] == spoken
    assert {place for place, _ in placed} == {"0", "1", "2"}
    assert len({(place, one.heard.session) for place, one in placed}) == 50


def test_of_an_utterance_under_way_the_newest_is_handed_on_if_partials_are_wanted(
    recording: Audio, make_chunk: Callable[..., Chunk], tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(AGREEING)
    engine = SpeechEngine.load(recipe, defer=True)
    first, second = (chunks_of(recording, make_chunk)[piece] for piece in (slice(0, 18), slice(18, 24)))
    logic = SessionLogic(engine, SESSION, OutputConfig(segments=False, enhanced=False))
    turn = logic.advance(None, first)
    later = logic.advance(turn.book, second)
    for one, begun_before in ((turn, False), (later, True)):
        (spoken,) = one.utterances
        assert spoken.utterance is not None
        assert (one.continues, spoken.is_over(), one.audio_over) == (True, False, False)
        so_far = (turn.audio if begun_before else b"") + spoken.pcm
        heard = spoken.utterance.end_samples - spoken.utterance.start_samples
        assert heard == 6400 * (spoken.utterance.revision + 1)
        assert 2 * heard <= len(so_far) < 2 * (heard + 6400)
    silent = SessionLogic(engine, SESSION, OutputConfig(partials=False, segments=False, enhanced=False))
    assert silent.advance(None, first).utterances == []
