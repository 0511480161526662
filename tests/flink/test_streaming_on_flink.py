"""The streaming job on Flink, while parts of it are killed: each final is said once, and as the engine says it."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from pipelines.local_flink import wait_until

pytestmark = [pytest.mark.flink, pytest.mark.kafka, pytest.mark.timeout(1200)]

# tests/flink/conftest.py; a test cannot import it.
LiveJob = Any
FINALS = 16


def exact(delivery: Any) -> bool:
    return bool(delivery.is_exact()) and delivery.expected == FINALS


def test_a_clean_run_says_what_the_engine_says(job: LiveJob) -> None:
    delivery = job.delivery("clean", job.speak("clean"))
    assert (delivery.expected, delivery.lost, delivery.doubled, delivery.changed) == (FINALS, 0, 0, 0)
    assert delivery.repeated == 0


def kill_a_worker(job: LiveJob) -> None:
    os.kill(job.flink.workers()[0], signal.SIGKILL)


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
        job.send(f"--savepoint_path={savepoint}")
        assert job.flink.restores(job.id) == 1

    results = job.speak("savepoint", stop_and_go_on)
    delivery = job.delivery("savepoint", results)
    assert (delivery.expected, delivery.lost, delivery.doubled, delivery.changed) == (FINALS, 0, 0, 0)
    assert delivery.repeated == 0
    wait_until(lambda: job.flink.runs(job.id), "the job works", 300)
