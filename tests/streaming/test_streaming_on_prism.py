"""The streaming job on Prism, between two topics, with the real engine: what it says is what the engine says."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from heapq import merge
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from kafka import KafkaProducer
from kafka.consumer.fetcher import ConsumerRecord

from model_runtime import Audio, SessionSettings, SpeechEngine
from model_runtime.decode import decode_file, encode_linear16
from service.tail import Follower
from service.wire import ChunkHeaders, encode_headers
from transforms.kafka_config import KafkaConfig
from transforms.result import Heard, event_to_result

pytestmark = [pytest.mark.kafka, pytest.mark.prism, pytest.mark.timeout(900)]

CASES = ("s01_final_on_last", "s01_final_empty", "s01_no_final", "s01_one_word")
CASES += ("s03_odd_bytes", "s03_tiny", "s03_prime", "s03_one_big", "s04_key_reused", "s04_two_sessions")
LONG_CASE = "s05_burst_every_6s"
# Says nothing, a chunk a second, and never that it ends.
SILENT = "s08_silence"
SILENT_CHUNKS = 650
LONGEST_MS = 629_500
# Keys of one chunk each that say no more.
FORGOTTEN = tuple(f"s08_forgotten.{number}" for number in range(100))
SAMPLES = Path(__file__).resolve().parents[2] / "samples"
DOOR_CODE = SAMPLES / "door_code.wav"
# Its speaker pauses between the words.
COUNTDOWN = SAMPLES / "countdown.wav"
NO_KEYS = (None, b"", b"\xff")
SAID = ("type", "utterance", "revision", "text", "words", "start_ms", "end_ms")


class Piece(NamedTuple):
    session: str
    event_ms: int
    payload: bytes | None
    headers: ChunkHeaders
    extra: tuple[tuple[str, bytes], ...] = ()


class Run(NamedTuple):
    """What one run of the job has read and written."""

    sent: dict[str, list[bytes]]
    results: list[dict[str, Any]]
    enhanced: dict[str, bytes]
    dead_letters: list[dict[str, str]]
    exit_code: int
    topic: str


def field_case(shared: Path, name: str) -> Iterator[Piece]:
    folder = shared / "field-cases"
    for line in (folder / "stream" / f"{name}.jsonl").read_text().splitlines():
        row = json.loads(line)
        first, last = row["pcm"]
        heard = b"" if row["wav"] == "zeros" else (folder / row["wav"]).read_bytes()[44:][first:last]
        # Behind a recording's end there is silence.
        data = heard.ljust(last - first, b"\0")
        size = row.get("cut", len(data)) or 1
        parts = [data[at : at + size] for at in range(0, len(data), size)] or [b""]
        for number in range(row.get("repeat", 1) * len(parts)):
            times, place = divmod(number, len(parts))
            event_ms = row.get("event_ms", 0) + times * row.get("event_step_ms", 0) + place * size // 32
            headers = ChunkHeaders("LINEAR16", 16_000, 1, row.get("seq", number), row["final"])
            yield Piece(f"{name}.{row['key']}", event_ms, parts[place], headers)


def endless() -> list[list[Piece]]:
    """Field case S08: an open microphone in a silent room, and keys of which nothing is heard behind a first chunk."""
    silence, headers = bytes(3_200), ChunkHeaders("LINEAR16", 16_000, 1, 0)
    forgotten = [Piece(session, 0, silence, headers) for session in FORGOTTEN]
    places = range(SILENT_CHUNKS)
    return [forgotten, [Piece(SILENT, 1_000 * n, silence, headers._replace(sequence=n)) for n in places]]


def spoilt(shared: Path) -> Iterator[Piece]:
    """The reference recording as floats, with a chunk in the middle that holds a NaN."""
    samples = decode_file(shared / "field-cases" / "wav" / "ref_pcm16.wav").samples
    bad = np.array([0.1, np.nan], "<f4")
    for sequence, part in enumerate([samples[:16_000], bad, samples[16_000:]]):
        headers = ChunkHeaders("FLOAT32", 16_000, 1, sequence, sequence == 2)
        yield Piece("spoilt", 1_000 * sequence, part.astype("<f4").tobytes(), headers)


def telephone(shared: Path) -> Iterator[Piece]:
    samples = decode_file(shared / "field-cases" / "wav" / "mono_8k.wav").samples
    for sequence, part in enumerate(np.array_split(samples, 10)):
        headers = ChunkHeaders("LINEAR16", 8_000, 1, sequence, sequence == 9)
        yield Piece("telephone", 300 * sequence, encode_linear16(part), headers)


def asking() -> Iterator[Piece]:
    """A session with settings of its own, one of them out of bounds."""
    samples = decode_file(COUNTDOWN).samples
    extra = ("silence_after_speech_ms", b"700"), ("tentative_end_ms", b"200"), ("max_utterance_ms", b"999")
    for sequence, part in enumerate(np.array_split(samples, 20)):
        headers = ChunkHeaders("LINEAR16", 16_000, 1, sequence, sequence == 19)
        yield Piece("asking", 150 * sequence, encode_linear16(part), headers, () if sequence else extra)


def odd() -> Iterator[Piece]:
    """Field cases K02 and K09: between good chunks, records without a value and records that nobody can use."""
    first, second = np.split(decode_file(DOOR_CODE).samples, 2)

    def piece(sequence: int, payload: bytes | None, *extra: tuple[str, bytes]) -> Piece:
        headers = ChunkHeaders("LINEAR16", 16_000, 1, sequence, sequence == 6)
        return Piece("odd", 1_000 * sequence, payload, headers, extra)

    yield piece(0, encode_linear16(first))
    yield piece(1, None)
    yield piece(2, b"")
    yield piece(3, b"OggS", ("encoding", b"OPUS"))
    yield piece(4, bytes(600_000))
    yield piece(4, b"{", ("sequence", b"four"))
    yield piece(5, b"\0\0", ("sample_rate_hertz", b"8000"))
    yield piece(6, encode_linear16(second))


@pytest.fixture(scope="module")
def run(
    shared: Path,
    make_module_config: Callable[..., KafkaConfig],
    read_topic: Callable[[str], list[ConsumerRecord]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    config = make_module_config(partitions=3)
    # What is long comes first, at its own pace; then all the others, for which time stands still.
    pieces = [*merge(field_case(shared, LONG_CASE), *endless(), key=lambda piece: piece.event_ms)]
    pieces += [piece for name in CASES for piece in field_case(shared, name)]
    pieces += [*spoilt(shared), *telephone(shared), *asking(), *odd()]
    # s04_key_reused and s04_two_sessions are two sessions each, as is what has no end.
    ends = len(CASES) + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 2 + len(FORGOTTEN)
    log = (tmp_path_factory.mktemp("job") / "log").open("w+")
    # Before the job begins: whatever takes long here, no partition is taken for one that is quiet.
    send(config, pieces)
    job = start_job(config, log)
    try:
        follower = Follower(config.bootstrap_servers, config.topics.results, from_beginning=True)
        results: list[dict[str, Any]] = []
        for value in follower.results(timeout_s=600):
            results += [] if value is None else [json.loads(value)]
            if sum(result["type"] == "session_end" for result in results) == ends or job.poll() is not None:
                break
        follower.close()
    finally:
        job.send_signal(signal.SIGINT)
        code = job.wait(60)
        log.seek(0)
        print(log.read())
    sent: dict[str, list[list[bytes]]] = {}
    for piece in pieces:
        parts = sent.setdefault(piece.session, [])
        if not parts or piece.headers.sequence == 0:
            parts.append([])
        parts[-1].append(piece.payload or b"")
    enhanced: dict[str, list[bytes]] = {}
    for record in read_topic(config.topics.enhanced):
        enhanced.setdefault(key_of(record), []).append(record.value or b"")
    letters = [
        {**{name: text.decode() for name, text in record.headers if name.startswith("dlt.")}, "key": key_of(record)}
        for record in read_topic(config.topics.dead_letters)
    ]
    whole = {session: [b"".join(part) for part in parts] for session, parts in sent.items()}
    clean = {session: b"".join(parts) for session, parts in enhanced.items()}
    return Run(whole, results, clean, letters, code, config.topics.audio)


def start_job(config: KafkaConfig, log: Any) -> subprocess.Popen[bytes]:
    topics = {f"kafka.topics.{name}": getattr(config.topics, name) for name in config.topics.__struct_fields__}
    settings = {"kafka.bootstrap_servers": config.bootstrap_servers, "kafka.start": "earliest", **topics}
    settings |= {
        "session.max_chunk_bytes": "500000",
        "session.idle_timeout_ms": "2000",
        "session.max_session_ms": str(LONGEST_MS),
        "results.enhanced": "true",
        "kafka.group_id": "prism-test",
    }
    command = [sys.executable, "-m", "pipelines.streaming", "--runner=DirectRunner", "--streaming"]
    return subprocess.Popen([*command, *(f"--set={k}={v}" for k, v in settings.items())], stdout=log, stderr=log)


def send(config: KafkaConfig, pieces: list[Piece]) -> None:
    producer = KafkaProducer(bootstrap_servers=config.bootstrap_servers, acks="all")
    topic, base_ms = config.topics.audio, int(time.time() * 1000) - 700_000
    for key in NO_KEYS:
        producer.send(topic, b"no session", key=key, timestamp_ms=base_ms)
    for piece in pieces:
        headers = [*encode_headers(piece.headers), *piece.extra]
        key = piece.session.encode()
        producer.send(topic, piece.payload, key=key, headers=headers, timestamp_ms=base_ms + piece.event_ms)
    producer.close()


def key_of(record: ConsumerRecord) -> str:
    return record.key.decode("utf-8", "backslashreplace") if record.key else "null"


def said_by(engine: SpeechEngine, audio: Audio) -> list[tuple[Any, ...]]:
    (events,) = engine.run([audio])
    results = [event_to_result(event, Heard("", 0, audio.sample_rate_hz, 0), engine.made_by()) for event in events]
    rows = [result._asdict() for result in results if result is not None]
    for row in rows:
        row["words"] = [word._asdict() for word in row["words"]]
    return [tuple(row[name] for name in SAID) for row in rows]


def incarnations(run: Run, session: str) -> list[list[dict[str, Any]]]:
    """The results of each session that used a key, in order."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for result in run.results:
        if result["session"] == session:
            parts.setdefault(result["result_id"].split("/")[-3], []).append(result)
    return [parts[name] for name in sorted(parts, key=int)]


@pytest.fixture(scope="module")
def engine() -> SpeechEngine:
    return SpeechEngine.load("streaming")


def test_every_session_says_what_the_engine_says_about_its_samples(run: Run, engine: SpeechEngine) -> None:
    assert len(run.sent) == len(CASES) + 7 + len(FORGOTTEN)
    for session, parts in run.sent.items():
        if session in ("spoilt", "telephone", "asking", "odd", SILENT):
            continue
        heard = [[tuple(r[name] for name in SAID) for r in part[:-1]] for part in incarnations(run, session)]
        samples = [np.frombuffer(part, "<i2").astype(np.float32) / 32768 for part in parts]
        assert heard == [said_by(engine, Audio(part, 16_000)) for part in samples], session


def test_finals_equal_stepping_through_the_whole_recording(run: Run, engine: SpeechEngine, shared: Path) -> None:
    audio = decode_file(shared / "field-cases" / "wav" / "ref_pcm16.wav")
    state, events = engine.step(engine.start(16_000), audio.samples)
    texts = [event.text for event in events + engine.finish(state)[1] if type(event).__name__ == "Final"]
    for session in ("s01_final_on_last.s", "s01_no_final.s", "s03_tiny.s", "s03_one_big.s"):
        (results,) = incarnations(run, session)
        assert [result["text"] for result in results if result["type"] == "final"] == texts


def test_every_session_ends_once_and_says_why(run: Run) -> None:
    ends = [(r["session"], r["reason"], r["gaps"], r["duplicates"]) for r in run.results if r["type"] == "session_end"]
    idle = {"s01_no_final.s", f"{LONG_CASE}.s", SILENT, *FORGOTTEN}
    expected = [(s, "idle" if s in idle else "end_of_stream", [], 0) for s, parts in run.sent.items() for _ in parts]
    expected.append((SILENT, "length", [], 0))
    assert sorted(ends) == sorted(expected)
    assert len({result["result_id"] for result in run.results}) == len(run.results)


def test_field_case_s05_times_do_not_drift_over_ten_minutes(run: Run) -> None:
    (results,) = incarnations(run, f"{LONG_CASE}.s")
    begins = [result["start_ms"] for result in results if result["type"] == "speech_begin"]
    assert len(begins) == 100
    assert max(abs(begin - begins[0] - 6_100 * number) for number, begin in enumerate(begins)) <= 100
    spans = {r["utterance"]: (r["start_ms"], r["end_ms"]) for r in results if r["type"] == "speech_end"}
    for final in (result for result in results if result["type"] == "final"):
        begin_ms, end_ms = spans[final["utterance"]]
        assert all(begin_ms <= word["start_ms"] <= word["end_ms"] <= end_ms for word in final["words"])


def test_field_case_s08_what_never_ends_is_ended_after_its_longest_time(run: Run) -> None:
    first, second = incarnations(run, SILENT)
    assert [[result["type"] for result in part] for part in (first, second)] == [["session_end"]] * 2
    # What came within its longest time was heard in it, and all the rest in the next.
    heard = LONGEST_MS // 1_000 + 1
    assert [first[0]["audio_ms"], second[0]["audio_ms"]] == [100 * heard, 100 * (SILENT_CHUNKS - heard)]


def test_clean_audio_is_as_long_as_what_was_sent(run: Run) -> None:
    lengths = {session: len(data) for session, data in run.enhanced.items()}
    expected = {session: sum(map(len, parts)) for session, parts in run.sent.items()}
    expected["spoilt"] = (expected["spoilt"] - 8) // 2
    expected["odd"] = 2 * len(decode_file(DOOR_CODE).samples)
    assert lengths == expected


def test_spoilt_chunks_and_records_without_a_key_are_dead_letters(run: Run, engine: SpeechEngine) -> None:
    reasons = [(letter["key"], letter["dlt.stage"], letter["dlt.exception"]) for letter in run.dead_letters]
    assert sorted(reasons) == [
        ("\\xff", "wire", "AudioError"),
        ("asking", "settings", "ConfigError"),
        ("null", "wire", "AudioError"),
        ("null", "wire", "AudioError"),
        ("odd", "audio", "AudioError"),
        ("odd", "audio", "AudioError"),
        ("odd", "audio", "AudioError"),
        ("odd", "wire", "AudioError"),
        ("spoilt", "audio", "AudioError"),
    ]
    (results,) = incarnations(run, "spoilt")
    samples = np.frombuffer(run.sent["spoilt"][0], "<f4")
    good = Audio(samples[~np.isnan(samples) & (np.arange(len(samples)) != 16_000)], 16_000)
    assert [tuple(result[name] for name in SAID) for result in results[:-1]] == said_by(engine, good)


def test_records_that_nobody_can_use_are_passed_over_and_say_where_they_stood_and_why(
    run: Run, engine: SpeechEngine
) -> None:
    (results,) = incarnations(run, "odd")
    assert [tuple(r[name] for name in SAID) for r in results[:-1]] == said_by(engine, decode_file(DOOR_CODE))
    assert (results[-1]["reason"], results[-1]["gaps"]) == ("end_of_stream", [])
    letters = [letter for letter in run.dead_letters if letter["key"] == "odd"]
    letters.sort(key=lambda letter: int(letter["dlt.offset"]))
    assert [letter["dlt.reason"] for letter in letters] == [
        "encoding must be one of LINEAR16, FLOAT32, MULAW, ALAW, got 'OPUS'",
        "a chunk must have at most 500000 bytes, got 600000",
        "header sequence must be a whole number in ASCII digits, got b'four'",
        "sample_rate_hertz must not change within a session, was 16000, got 8000",
    ]
    assert {letter["dlt.topic"] for letter in letters} == {run.topic}


def test_other_rates_are_heard_at_their_own(run: Run, engine: SpeechEngine, shared: Path) -> None:
    (results,) = incarnations(run, "telephone")
    audio = decode_file(shared / "field-cases" / "wav" / "mono_8k.wav")
    assert [tuple(result[name] for name in SAID) for result in results[:-1]] == said_by(engine, audio)


def test_a_session_has_the_settings_that_its_first_record_asks_for(run: Run, engine: SpeechEngine) -> None:
    audio = decode_file(COUNTDOWN)
    settings = SessionSettings(silence_after_speech_ms=700, tentative_end_ms=200)
    state, events = engine.step(engine.start(16_000, settings), audio.samples)
    kinds = ("tentative_end", "speech_resumed", "final")
    (results,) = incarnations(run, "asking")
    own = [event_to_result(event, Heard("", 0, 16_000, 0), engine.made_by()) for event in events]
    own += [event_to_result(event, Heard("", 0, 16_000, 0), engine.made_by()) for event in engine.finish(state)[1]]
    expected = [(result.type, result.text, result.end_ms) for result in own if result and result.type in kinds]
    assert [(r["type"], r["text"], r["end_ms"]) for r in results if r["type"] in kinds] == expected
    assert {kind for kind, _, _ in expected} == set(kinds)


def test_the_job_stops_in_good_order(run: Run) -> None:
    assert run.exit_code == 0
