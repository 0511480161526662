"""What the streaming job keeps by windows of event time on Flink, and what it leaves out where it is behind."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from benchmarks.delivery import expected_finals
from pipelines.local_jobs import wait_until
from service.tail import Follower

pytestmark = [pytest.mark.flink, pytest.mark.kafka, pytest.mark.timeout(1200)]

# tests/flink/conftest.py; a test cannot import it.
LiveJob = Any
NAME = "kept"
WRITTEN_S = 240


class Kept(NamedTuple):
    """A job that was behind all the time, what it has said, and what it has kept."""

    job: LiveJob
    results: list[dict[str, Any]]
    stats: list[dict[str, Any]]
    archive: Path

    def finals(self) -> list[dict[str, Any]]:
        return [result for result in self.results if result["type"] == "final"]

    def table(self, kind: str) -> list[dict[str, Any]]:
        return [row for path in self.archive.glob(f"{kind}/*.parquet") for row in pq.read_table(path).to_pylist()]


@pytest.fixture(scope="module")
def kept(make_job: Callable[..., LiveJob], tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Windows of 10 s, so that all are over soon after the last word; whoever lags by more than 1 ms is behind."""
    archive = tmp_path_factory.mktemp("archive")
    windows = {"stats__write": "true", "stats__window_ms": "10000", "archive__window_ms": "10000"}
    job = make_job(**windows, archive__folder=str(archive), overload__partials_off_ms="1")
    run = Kept(job, job.speak(NAME), [], archive)
    sessions = len(job.recordings(NAME))
    follower = Follower(job.broker.servers, job.topics.stats, from_beginning=True)
    for value in follower.results(WRITTEN_S):
        run.stats.extend([] if value is None else [json.loads(value)])
        if sum(sum(window["sessions_ended"].values()) for window in run.stats) == sessions:
            break
    follower.close()
    wait_until(lambda: len(run.table("sessions")) >= sessions, "all sessions lie in the archive", WRITTEN_S)
    wait_until(lambda: len(run.table("finals")) >= len(run.finals()), "all finals lie in the archive", WRITTEN_S)
    return run


def test_the_archive_has_every_final_and_every_session_once(kept: Kept) -> None:
    finals = {final["result_id"]: (final["text"], final["event_ms"]) for final in kept.finals()}
    rows = [(row["result_id"], row["text"], round(row["ended"].timestamp() * 1000)) for row in kept.table("finals")]
    assert sorted(rows) == sorted((name, *said) for name, said in finals.items())
    places = kept.job.places()
    for row in kept.table("sessions"):
        audio = kept.job.recordings(NAME).pop(row["session"])
        said = expected_finals(kept.job.engine, row["session"], places[row["session"]][0], audio).values()
        assert row["text"] == " ".join(text for text, *_ in said if text)
        assert row["duration"] == pytest.approx(len(audio.samples) / audio.sample_rate_hz, abs=0.001)
    assert sorted(row["session"] for row in kept.table("sessions")) == sorted(kept.job.recordings(NAME))


def test_the_figures_of_all_windows_add_up_to_what_was_sent_and_said(kept: Kept) -> None:
    sessions = kept.job.recordings(NAME)

    def total(name: str) -> float:
        return float(sum(window[name] for window in kept.stats))

    assert total("sessions_opened") == len(sessions)
    assert total("chunks") == sum(len(places) for places in kept.job.places().values())
    assert total("audio_s") == pytest.approx(
        sum(len(a.samples) / a.sample_rate_hz for a in sessions.values()), abs=0.01
    )
    assert total("finals") == len(kept.finals())
    ended = sum((Counter(window["sessions_ended"]) for window in kept.stats), Counter[str]())
    assert ended == {"end_of_stream": len(sessions)}
    assert len({window["stats_id"] for window in kept.stats}) == len(kept.stats)


def test_who_is_behind_says_no_partials_and_the_finals_all_the_same(kept: Kept) -> None:
    assert [result for result in kept.results if result["type"] == "partial"] == []
    assert [final["shed"] for final in kept.finals()] == [["partials"]] * len(kept.finals())
    delivery = kept.job.delivery(NAME, kept.results)
    assert delivery.expected == len(kept.finals())
    assert delivery.is_exact()
