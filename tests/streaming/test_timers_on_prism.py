"""Field case B02 on Prism: what is due by time happens by event-time timers, when it is due and not before.

The partition never counts as idle here, so that stream time goes on with the records alone, and by 1 ms per round.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kafka.consumer.fetcher import ConsumerRecord

from model_runtime.decode import decode_file
from transforms.kafka_config import KafkaConfig

pytestmark = [pytest.mark.kafka, pytest.mark.prism, pytest.mark.timeout(900)]

LIFT = Path(__file__).resolve().parents[2] / "samples" / "lift.wav"
SETTINGS = {
    "kafka.idle_partition_ms": "3600000",
    "kafka.allowed_disorder_ms": "0",
    "session.reorder_ms": "1000",
    "session.max_session_ms": "20000",
    "session.idle_timeout_ms": "8000",
    "session.tombstone_ms": "15000",
}


def test_gaps_idleness_the_longest_session_and_tombstones_run_out_by_timers_alone(
    make_config: Callable[..., KafkaConfig],
    speak: Callable[..., None],
    run_job: Callable[..., AbstractContextManager[Any]],
    read_topic: Callable[[str], list[ConsumerRecord]],
) -> None:
    config = make_config()
    audio = decode_file(LIFT).samples
    parts = dict(enumerate(np.array_split(audio, 4)))
    start_ms = int(time.time() * 1000) - 100_000
    # The second chunk of one never comes; the next has a pulse, and no end.
    speak(config, "gap", {number: part for number, part in parts.items() if number != 1}, at_ms=start_ms)
    speak(config, "long", {0: parts[0]}, at_ms=start_ms)
    speak(config, "short", parts, end=True, at_ms=start_ms)
    with run_job(config, SETTINGS) as job:

        def pass_time(to_ms: int) -> None:
            """Sends a session of its own, captured `to_ms` after the start, and waits until it has been heard."""
            name = f"at {to_ms}"
            speak(config, name, {0: audio[:1600]}, end=True, at_ms=start_ms + to_ms)
            job.wait_for_end(name)

        def gaps() -> bool:
            return any(result["gaps"] for result in job.of("gap"))

        job.wait_for_end("short")
        pass_time(400)
        assert not gaps()
        pass_time(1_600)
        job.wait_until(gaps)
        speak(config, "long", {1: audio[:160]}, at_ms=start_ms + 7_000)
        # Its last chunk lasts a quarter of the recording, and 8 s behind that it is idle.
        idle_ms = 8_000 + len(parts[3]) // 16
        pass_time(idle_ms - 600)
        assert job.ends("gap") == []
        pass_time(idle_ms + 600)
        job.wait_for_end("gap")
        speak(config, "long", {2: audio[:160]}, at_ms=start_ms + 14_000)
        speak(config, "short", {4: audio[:160]}, at_ms=start_ms + 14_001)
        pass_time(19_400)
        assert job.ends("long") == []
        pass_time(20_600)
        job.wait_for_end("long")
        pass_time(idle_ms + 15_600)
        late = 5
        while len(job.ends("short")) < 2:
            # Late until the timer has cleared the tombstone, a session of its own after that.
            assert late < 100, "the key is never forgotten"
            speak(config, "short", {late: audio[:160]}, end=True, at_ms=start_ms + 30_000 + late)
            pass_time(30_100 + late)
            pass_time(32_000 + late)
            late += 1
    assert [job.ends(session) for session in ("gap", "long")] == [["idle"], ["length"]]
    assert job.ends("short") == ["end_of_stream"] * 2
    letters = [dict(record.headers) for record in read_topic(config.topics.dead_letters)]
    assert {letter["dlt.stage"] for letter in letters} == {b"order"}
    assert letters[0]["sequence"] == b"4"
