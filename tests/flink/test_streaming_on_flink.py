"""The streaming job on Flink, while parts of it are killed: each final is said once, and as the engine says it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from benchmarks.delivery import compare, expected_finals, said
from model_runtime import Audio, SpeechEngine
from model_runtime.decode import decode_file, encode_linear16
from model_runtime.devices import RouteConfig
from model_runtime.errors import ConfigError
from pipelines.command_line import parse_command_line
from pipelines.flink import check_job_server_flags
from pipelines.local_flink import FLAGS
from pipelines.local_jobs import ROOT, kill_process, wait_until
from service.wire import NO_SEQUENCE, ChunkHeaders, encode_headers
from transforms.session_book import incarnation_at

pytestmark = [pytest.mark.flink, pytest.mark.kafka, pytest.mark.timeout(1200)]

# tests/flink/conftest.py; a test cannot import it.
LiveJob = Any
# Every recording has one at least.
FEWEST_FINALS = 7
CHUNK_MS = 100
SPAN = ("text", "start_ms", "end_ms")


def test_a_clean_run_says_what_the_engine_says(job: LiveJob) -> None:
    delivery = job.delivery("clean", job.speak("clean"))
    assert delivery.expected >= FEWEST_FINALS
    assert (delivery.lost, delivery.doubled, delivery.changed) == ([], [], [])
    assert delivery.repeated == 0


def test_flink_is_told_what_the_job_counts_and_nothing_of_beams_own(job: LiveJob) -> None:
    job.speak("counted")
    chunks = sum(map(len, job.places().values()))

    def told(end: str) -> list[float]:
        return [value for name, value in job.flink.metrics(job.id).items() if name.endswith(end)]

    wait_until(lambda: sum(told("speech_sessions_chunks")) == chunks, "all chunks are counted", 120)
    assert sum(told("speech_sessions_sessions_ended")) == len(job.places())
    # A worker of Beam's own says element_count:v1, pardo_execution_time:process_bundle_msecs:v1 and others.
    assert told("_v1") == []


def test_flags_that_the_job_server_does_not_know_are_refused(job: LiveJob) -> None:
    with pytest.raises(
        ConfigError, match=r"^--checkpoint_interval is no option: not of Beam and not of the job server"
    ):
        check_job_server_flags(["--runner=PortableRunner", *job.flink.flags(), "--checkpoint_interval=1"])
    check_job_server_flags(parse_command_line([f"@{FLAGS}", *job.flink.flags()], "job", "A job.").beam_flags)


def kill_a_worker(job: LiveJob) -> None:
    kill_process(job.flink.workers()[0])


def kill_a_taskmanager(job: LiveJob) -> None:
    job.flink.kill("taskmanager-1")
    job.flink.repair()


def kill_the_broker(job: LiveJob) -> None:
    job.broker.kill()
    job.broker.start()


@pytest.mark.parametrize("kill", [kill_a_worker, kill_a_taskmanager])
def test_a_kill_is_not_seen_by_who_reads_each_id_once(job: LiveJob, kill: Callable[[LiveJob], None]) -> None:
    restores = job.flink.restores(job.id)
    delivery = job.delivery(kill.__name__, job.speak(kill.__name__, lambda: kill(job)))
    assert delivery.expected >= FEWEST_FINALS
    assert (delivery.lost, delivery.doubled, delivery.changed) == ([], [], [])
    assert job.flink.restores(job.id) > restores


def test_a_broker_that_is_killed_and_comes_back_costs_nothing(job: LiveJob) -> None:
    delivery = job.delivery("broker", job.speak("broker", lambda: kill_the_broker(job)))
    assert delivery.expected >= FEWEST_FINALS
    assert (delivery.lost, delivery.doubled, delivery.changed) == ([], [], [])


def test_a_job_stopped_with_a_savepoint_goes_on_with_what_was_sent_meanwhile(job: LiveJob) -> None:
    def stop_and_go_on() -> None:
        savepoint = job.flink.stop_with_savepoint(job.id)
        assert job.driver.wait(60) == 0
        job.send(f"--savepoint_path={savepoint}")
        assert job.flink.restores(job.id) == 1

    results = job.speak("savepoint", stop_and_go_on)
    delivery = job.delivery("savepoint", results)
    assert delivery.expected >= FEWEST_FINALS
    assert (delivery.lost, delivery.doubled, delivery.changed) == ([], [], [])
    assert delivery.repeated == 0


def test_field_case_k05_records_that_are_deleted_before_a_restart_are_no_silent_join(job: LiveJob) -> None:
    setting = "--set=session.idle_timeout_ms=3600000"
    plain, numbered = "hole-plain", "hole-numbered"
    audio = decode_file(ROOT / "samples" / "door_code.wav").samples
    parts = np.array_split(audio, 3)
    sent: list[int] = []

    def send(part: np.ndarray, end: bool = False) -> None:
        producer = KafkaProducer(bootstrap_servers=job.broker.servers, acks="all")
        for session, sequence in ((plain, NO_SEQUENCE), (numbered, len(sent))):
            headers = encode_headers(ChunkHeaders("LINEAR16", 16_000, 1, sequence, end))
            place = producer.send(job.topics.audio, encode_linear16(part), session.encode(), headers=headers).get(60)
            places.setdefault(session, []).append(incarnation_at(place.partition, place.offset))
        sent.append(len(part))
        producer.close()

    def stop() -> str:
        savepoint = job.flink.stop_with_savepoint(job.id)
        assert job.driver.wait(60) == 0
        return f"--savepoint_path={savepoint}"

    places: dict[str, list[int]] = {}
    # A session is to be ended by the hole, not by the time that restarts take.
    job.send(stop(), setting)
    send(parts[0])
    job.hear("hole", lambda results: {r["session"] for r in results if r["type"] == "partial"} == {plain, numbered})
    savepoint = stop()
    send(parts[1])
    delete_all(job.broker.servers, job.topics.audio)
    send(parts[2], end=True)
    job.send(savepoint, setting)
    results = job.hear("hole", lambda results: over(results) == {plain, numbered})
    before, behind = incarnations(results, plain)
    for rows, place, part, reason in ((before, 0, parts[0], "lost"), (behind, 2, parts[2], "end_of_stream")):
        expected = expected_finals(job.engine, plain, places[plain][place], Audio(part, 16_000))
        assert compare(expected, rows).is_exact()
        assert rows[-1]["reason"] == reason
    (rows,) = incarnations(results, numbered)
    filled = Audio(np.concatenate([parts[0], np.zeros(sent[0], np.float32), parts[2]]), 16_000)
    assert compare(expected_finals(job.engine, numbered, places[numbered][0], filled), rows).is_exact()
    assert [gap["chunks"] for gap in rows[-1]["gaps"]] == [1]


def test_the_job_goes_on_when_the_command_that_sent_it_ends(job: LiveJob) -> None:
    assert job.leave() == 0
    assert job.flink.runs(job.id)
    delivery = job.delivery("left", job.speak("left"))
    assert delivery.expected >= FEWEST_FINALS
    assert (delivery.lost, delivery.doubled, delivery.changed) == ([], [], [])


def test_other_models_take_over_at_a_savepoint(job: LiveJob) -> None:
    sending = job.send_halves("upgrade")
    next(sending)
    # One utterance from its beginning to its end, so it is under way then.
    spoken = "upgrade-countdown"
    job.hear("upgrade", lambda results: any((r["session"], r["type"]) == (spoken, "partial") for r in results))
    savepoint = job.flink.stop_with_savepoint(job.id)
    next(sending)
    job.send(f"--savepoint_path={savepoint}", "--set=route.variants=[int8, float32]")
    sessions = job.recordings("upgrade")
    results = job.hear("upgrade", lambda results: over(results) == sessions.keys())
    engine = SpeechEngine.load("streaming", RouteConfig(variants=("int8", "float32")))
    places, cut_short = job.places(), []
    for session, audio in sessions.items():
        before, *after = incarnations(results, session)
        assert before[-1]["reason"] == ("state" if after else "end_of_stream")
        cut_short += [session] * said_before(job.engine, audio, before)
        for rows in after:
            said_after(engine, audio, places[session], rows)
    assert spoken in cut_short
    assert job.flink.restores(job.id) == 1


def said_before(engine: SpeechEngine, audio: Audio, rows: list[dict[str, Any]]) -> bool:
    """Checks what the first models have said; says whether an utterance of theirs was cut short."""
    expected = expected_finals(engine, rows[0]["session"], incarnation(rows), audio)
    finals = [row for row in rows if row["type"] == "final"]
    assert {row["result_id"]: said(row) for row in finals if not row["reason"]}.items() <= expected.items()
    last = [row for row in finals if row["reason"]]
    for row in last:
        partial = [other for other in rows if (other["type"], other["utterance"]) == ("partial", row["utterance"])][-1]
        assert (row["reason"], row["words"], row["model"]) == ("state", [], engine.made_by().model)
        assert [row[name] for name in SPAN] == [partial[name] for name in SPAN]
    return bool(last)


def said_after(engine: SpeechEngine, audio: Audio, places: list[int], rows: list[dict[str, Any]]) -> None:
    """Checks what the second models have said of the chunks from the one that began their session."""
    first = places.index(incarnation(rows)) * round(audio.sample_rate_hz * CHUNK_MS / 1000)
    rest = Audio(audio.samples[first:], audio.sample_rate_hz)
    assert compare(expected_finals(engine, rows[0]["session"], incarnation(rows), rest), rows).is_exact()
    assert (rows[-1]["reason"], rows[-1]["model"]) == ("end_of_stream", engine.made_by().model)


def incarnation(rows: list[dict[str, Any]]) -> int:
    return int(rows[0]["result_id"].split("/")[-3])


def delete_all(servers: str, topic: str) -> None:
    """Deletes every record that a topic has now, as retention does."""
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        ends = consumer.end_offsets([TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)])
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.delete_records(ends)
    admin.close()


def over(results: list[dict[str, Any]]) -> set[str]:
    return {row["session"] for row in results if row["reason"] == "end_of_stream"}


def incarnations(results: list[dict[str, Any]], session: str) -> list[list[dict[str, Any]]]:
    """The results of each session that used a key, in order, each once."""
    parts: dict[int, dict[str, dict[str, Any]]] = {}
    for row in results:
        if row["session"] == session:
            parts.setdefault(incarnation([row]), {})[row["result_id"]] = row
    return [list(parts[first].values()) for first in sorted(parts)]
