"""The streaming job on Flink, while parts of it are killed: each final is said once, and as the engine says it."""

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.delivery import compare, expected_finals, said
from model_runtime import Audio, SpeechEngine
from model_runtime.devices import RouteConfig
from model_runtime.errors import ConfigError
from pipelines.command_line import parse_command_line
from pipelines.flink import check_job_server_flags
from pipelines.local_flink import FLAGS
from pipelines.local_jobs import kill_process

pytestmark = [pytest.mark.flink, pytest.mark.kafka, pytest.mark.timeout(1200)]

# tests/flink/conftest.py; a test cannot import it.
LiveJob = Any
FINALS = 16
CHUNK_MS = 100
SPAN = ("text", "start_ms", "end_ms")


def test_a_clean_run_says_what_the_engine_says(job: LiveJob) -> None:
    delivery = job.delivery("clean", job.speak("clean"))
    assert (delivery.expected, delivery.lost, delivery.doubled, delivery.changed) == (FINALS, 0, 0, 0)
    assert delivery.repeated == 0


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
    assert (delivery.expected, delivery.lost, delivery.doubled, delivery.changed) == (FINALS, 0, 0, 0)
    assert job.flink.restores(job.id) > restores


def test_a_broker_that_is_killed_and_comes_back_costs_nothing(job: LiveJob) -> None:
    delivery = job.delivery("broker", job.speak("broker", lambda: kill_the_broker(job)))
    assert (delivery.expected, delivery.lost, delivery.doubled, delivery.changed) == (FINALS, 0, 0, 0)


def test_a_job_stopped_with_a_savepoint_goes_on_with_what_was_sent_meanwhile(job: LiveJob) -> None:
    def stop_and_go_on() -> None:
        savepoint = job.flink.stop_with_savepoint(job.id)
        assert job.driver.wait(60) == 0
        job.send(f"--savepoint_path={savepoint}")
        assert job.flink.restores(job.id) == 1

    results = job.speak("savepoint", stop_and_go_on)
    delivery = job.delivery("savepoint", results)
    assert (delivery.expected, delivery.lost, delivery.doubled, delivery.changed) == (FINALS, 0, 0, 0)
    assert delivery.repeated == 0


def test_the_job_goes_on_when_the_command_that_sent_it_ends(job: LiveJob) -> None:
    assert job.leave() == 0
    assert job.flink.runs(job.id)
    delivery = job.delivery("left", job.speak("left"))
    assert (delivery.expected, delivery.lost, delivery.doubled, delivery.changed) == (FINALS, 0, 0, 0)


def test_other_models_take_over_at_a_savepoint(job: LiveJob) -> None:
    sending = job.send_halves("upgrade")
    next(sending)
    # One utterance from its beginning to its end, so it is under way then.
    spoken = "upgrade-crane"
    job.hear("upgrade", lambda results: any((r["session"], r["type"]) == (spoken, "partial") for r in results))
    savepoint = job.flink.stop_with_savepoint(job.id)
    next(sending)
    job.send(f"--savepoint_path={savepoint}", "--set=route.variants=[int8, float32]")
    sessions = job.recordings("upgrade")
    results = job.hear("upgrade", lambda results: len(over(results)) == len(sessions))
    engine = SpeechEngine.load("streaming", RouteConfig(variants=("int8", "float32")))
    places, cut_short = job.places(), set()
    for session, audio in sessions.items():
        old, *new = incarnations(results, session)
        finals = {row["result_id"]: said(row) for row in old if row["type"] == "final" and not row["reason"]}
        expected = expected_finals(job.engine, session, places[session][0], audio)
        assert finals.items() <= expected.items()
        for last in (row for row in old if row["type"] == "final" and row["reason"]):
            cut_short.add(session)
            partial = [row for row in old if row["type"] == "partial" and row["utterance"] == last["utterance"]][-1]
            assert (last["reason"], last["words"], last["model"]) == ("state", [], job.engine.made_by().model)
            assert [last[name] for name in SPAN] == [partial[name] for name in SPAN]
        assert old[-1]["reason"] == ("state" if new else "end_of_stream")
        if new:
            (rows,) = new
            first = int(rows[0]["result_id"].split("/")[-3])
            chunk_samples = round(audio.sample_rate_hz * CHUNK_MS / 1000)
            rest = audio.samples[places[session].index(first) * chunk_samples :]
            expected = expected_finals(engine, session, first, Audio(rest, audio.sample_rate_hz))
            assert compare(expected, rows).is_exact()
            assert (rows[-1]["reason"], rows[-1]["model"]) == ("end_of_stream", engine.made_by().model)
    assert spoken in cut_short
    assert job.flink.restores(job.id) == 1


def over(results: list[dict[str, Any]]) -> set[str]:
    return {row["session"] for row in results if row["reason"] == "end_of_stream"}


def incarnations(results: list[dict[str, Any]], session: str) -> list[list[dict[str, Any]]]:
    """The results of each session that used a key, in order, each once."""
    parts: dict[int, dict[str, dict[str, Any]]] = {}
    for row in results:
        if row["session"] == session:
            parts.setdefault(int(row["result_id"].split("/")[-3]), {})[row["result_id"]] = row
    return [list(parts[first].values()) for first in sorted(parts)]
