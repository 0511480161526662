"""What the streaming job keeps by windows of event time, on Prism with a real broker: figures and an archive."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest
from kafka import KafkaProducer

from model_runtime.decode import decode_file, encode_linear16
from pipelines.batch import main as run_batch
from service.tail import Follower
from service.wire import ChunkHeaders, encode_headers
from transforms.kafka_config import KafkaConfig

pytestmark = [pytest.mark.kafka, pytest.mark.prism]

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = sorted((ROOT / "samples").glob("*.wav"))[:4]
WINDOW_MS = 60_000
# The begin of a window, an hour or two before any run of this test, and long after 2011.
BASE_MS = 1_700_000_040_000
CHUNK_SAMPLES = 1_600
EARLY_S = 60


# Longer than any pause of this test: no partition follows the clock, so no window is over before the job is stopped.
NEVER_MS = 3_600_000


class Run(NamedTuple):
    """What one run of the job has written; early: finals, by their ids, that the archive held before it was stopped."""

    results: list[dict[str, Any]]
    stats: list[dict[str, Any]]
    archive: Path
    early: list[str]


@pytest.fixture(scope="module")
def run(make_module_config: Callable[..., KafkaConfig], tmp_path_factory: pytest.TempPathFactory) -> Run:
    config = make_module_config(partitions=2)
    archive = tmp_path_factory.mktemp("archive")
    log = (tmp_path_factory.mktemp("job") / "log").open("w+")
    job = start_job(config, archive, log)
    try:
        follower = Follower(config.bootstrap_servers, config.topics.results, from_beginning=True)
        send(config)
        results: list[dict[str, Any]] = []
        for value in follower.results(timeout_s=200):
            results += [] if value is None else [json.loads(value)]
            if sum(result["type"] == "session_end" for result in results) == len(RECORDINGS) or job.poll() is not None:
                break
        follower.close()
        early = early_finals(archive, sum(result["type"] == "final" for result in results))
    finally:
        # Windows that are still open end with the job.
        job.send_signal(signal.SIGINT)
        code = job.wait(90)
        log.seek(0)
        print(log.read())
    assert code == 0
    follower = Follower(config.bootstrap_servers, config.topics.stats, from_beginning=True)
    stats = []
    for value in follower.results(timeout_s=60):
        if value is None:
            break
        stats.append(json.loads(value))
    follower.close()
    return Run(results, stats, archive, early)


def early_finals(archive: Path, wanted: int) -> list[str]:
    """Gives the ids of the finals in the archive once there are so many, or after some time."""
    end_s = time.monotonic() + EARLY_S
    while True:
        # A file is replaced whole or not at all.
        tables = [pq.read_table(path) for path in archive.glob("finals/*.parquet")]
        found = [name for table in tables for name in table["result_id"].to_pylist()]
        if len(found) >= wanted or time.monotonic() > end_s:
            return found
        time.sleep(0.1)


def start_job(config: KafkaConfig, archive: Path, log: Any) -> subprocess.Popen[bytes]:
    topics = {f"kafka.topics.{name}": getattr(config.topics, name) for name in config.topics.__struct_fields__}
    settings = {"kafka.bootstrap_servers": config.bootstrap_servers, "kafka.start": "earliest", **topics}
    settings |= {"stats.write": "true", "stats.window_ms": str(WINDOW_MS), "results.enhanced": "false"}
    settings |= {"kafka.idle_partition_ms": str(NEVER_MS), "session.idle_timeout_ms": str(NEVER_MS)}
    settings |= {"archive.folder": str(archive), "archive.window_ms": str(WINDOW_MS), "archive.early_firing_s": "1"}
    command = [sys.executable, "-m", "pipelines.streaming", "--runner=DirectRunner", "--streaming"]
    return subprocess.Popen([*command, *(f"--set={k}={v}" for k, v in settings.items())], stdout=log, stderr=log)


def send(config: KafkaConfig) -> None:
    """Each recording is a session in a window of its own, the last one goes over into a fifth."""
    producer = KafkaProducer(bootstrap_servers=config.bootstrap_servers, acks="all")
    for number, path in enumerate(RECORDINGS):
        begin_ms = BASE_MS + WINDOW_MS * number + (WINDOW_MS - 500 if number == len(RECORDINGS) - 1 else 0)
        parts = chunks(path)
        for sequence, part in enumerate(parts):
            headers = ChunkHeaders("LINEAR16", 16_000, 1, sequence, sequence == len(parts) - 1)
            producer.send(
                config.topics.audio,
                encode_linear16(part),
                key=path.stem.encode(),
                headers=encode_headers(headers),
                timestamp_ms=begin_ms + 100 * sequence,
            )
    producer.close()


def chunks(path: Path) -> list[np.ndarray]:
    samples = decode_file(path).samples
    return np.split(samples, range(CHUNK_SAMPLES, len(samples), CHUNK_SAMPLES))


def total(run: Run, name: str) -> float:
    return sum(window[name] for window in run.stats)


def test_the_figures_of_all_windows_add_up_to_what_was_sent_and_said(run: Run) -> None:
    finals = [result for result in run.results if result["type"] == "final"]
    assert total(run, "sessions_opened") == len(RECORDINGS)
    assert total(run, "chunks") == sum(len(chunks(path)) for path in RECORDINGS)
    assert total(run, "audio_s") == pytest.approx(sum(len(decode_file(path).samples) for path in RECORDINGS) / 16_000)
    assert total(run, "finals") == len(finals) > 0
    assert total(run, "words") == sum(len(final["words"]) for final in finals) > 0
    ended = [(reason, count) for window in run.stats for reason, count in window["sessions_ended"].items()]
    assert sum(count for _, count in ended) == len(RECORDINGS)


def test_there_is_one_record_for_each_window(run: Run) -> None:
    ids = [window["stats_id"] for window in run.stats]
    assert len(set(ids)) == len(ids)
    assert all(window["end_ms"] - window["begin_ms"] == WINDOW_MS for window in run.stats)
    assert all(window["begin_ms"] % WINDOW_MS == 0 for window in run.stats)


def test_the_stretches_of_a_finals_way_add_up_to_its_latency(run: Run) -> None:
    finals = [result for result in run.results if result["type"] == "final"]
    assert [sum(final["timing"].values()) for final in finals] == [final["latency_ms"] for final in finals]
    assert all(result["timing"] is None for result in run.results if result["type"] != "final")


def tables(run: Run, kind: str) -> list[dict[str, Any]]:
    """All rows of a kind, in the order of time; each lies in the window that its file is named after."""
    rows = []
    for path in sorted((run.archive / kind).glob("*.parquet")):
        inside = pq.read_table(path).to_pylist()
        names = {f"{row['ended'].replace(second=0, microsecond=0):%Y%m%dT%H%M%SZ}-60s.parquet" for row in inside}
        assert names == {path.name}
        rows += inside
    return rows


def test_the_archive_has_every_final_once_in_the_window_of_its_end(run: Run) -> None:
    finals = [result for result in run.results if result["type"] == "final"]
    expected = sorted((final["result_id"], final["text"], final["event_ms"]) for final in finals)
    rows = [(row["result_id"], row["text"], round(row["ended"].timestamp() * 1000)) for row in tables(run, "finals")]
    assert sorted(rows) == expected


def test_finals_of_a_window_that_is_open_are_in_the_archive_already(run: Run) -> None:
    # Nothing is as late as the end of the last window, so it is open until the job is stopped.
    begin_ms = BASE_MS + WINDOW_MS * len(RECORDINGS)
    finals = [result for result in run.results if result["type"] == "final"]
    in_last = {result["result_id"] for result in finals if result["event_ms"] >= begin_ms}
    assert in_last
    assert sorted(run.early) == sorted(result["result_id"] for result in finals)


def test_the_archive_has_every_session_with_its_audio_and_its_text(run: Run) -> None:
    rows = {row["session"]: row for row in tables(run, "sessions")}
    assert sorted(rows) == sorted(path.stem for path in RECORDINGS)
    for path in RECORDINGS:
        row = rows[path.stem]
        kept = decode_file(run.archive / "sessions" / row["audio"]["path"])
        np.testing.assert_array_equal(kept.samples, decode_file(path).samples)
        said = [r["text"] for r in run.results if (r["session"], r["type"]) == (path.stem, "final")]
        assert (row["text"], row["utterances"]) == (" ".join(text for text in said if text), len(said))


def test_the_batch_job_reads_the_archive_and_says_the_same(run: Run, tmp_path: Path) -> None:
    settings = {"input": str(run.archive), "output": str(tmp_path / "out"), "recipe": "streaming"}
    assert run_batch([f"--set={name}={value}" for name, value in settings.items()]) == 0
    lines = (tmp_path / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["error"] for row in rows] == [""] * len(RECORDINGS)
    assert [row["pred_text"] for row in rows] == [row["text"] for row in rows]
    assert any(row["text"] for row in rows)
