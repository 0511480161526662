"""A live run on Prism, then the same topic as input of the batch job: the same finals, id for id and word for word."""

import json
import random
import re
import shlex
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from model_runtime.decode import decode_file, encode_linear16
from pipelines.batch import main
from pipelines.local_jobs import running_streaming_job
from pipelines.run_record import RunRecord, read_record
from service.tail import Follower
from service.wire import ChunkHeaders, encode_headers
from transforms.kafka_config import KafkaConfig

pytestmark = [pytest.mark.kafka, pytest.mark.prism, pytest.mark.timeout(900)]

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "batch.md"
BEGIN_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
CHUNK_MS = 100
# Off the grid of the chunks' times: a deadline that falls on a chunk's very time is one or the other side of it by the
# millisecond that each round of reading adds.
IDLE_MS = 5_017
SESSION = {"session.idle_timeout_ms": str(IDLE_MS), "session.reorder_ms": "1037"}


class Sent(NamedTuple):
    """A chunk as it is sent. at_ms: its timestamp, from BEGIN_MS on."""

    session: str
    at_ms: int
    payload: bytes
    headers: list[tuple[str, bytes]]


def chunks(session: str, name: str, begin_ms: int, ends: bool = True) -> list[Sent]:
    audio = decode_file(SAMPLES / name)
    size = audio.sample_rate_hz * CHUNK_MS // 1000
    parts = np.split(audio.samples, range(size, len(audio.samples), size))
    last = len(parts) - 1
    headers = [ChunkHeaders("LINEAR16", audio.sample_rate_hz, 1, n, ends and n == last) for n in range(len(parts))]
    return [
        Sent(session, begin_ms + CHUNK_MS * n, encode_linear16(part), encode_headers(headers[n]))
        for n, part in enumerate(parts)
    ]


def conversation() -> list[Sent]:
    """Sessions of all kinds, in the order in which the broker gets them."""
    shuffled = chunks("shuffled", "lift.wav", 0)
    for at in range(4, len(shuffled) - 8, 9):
        shuffled[at : at + 4] = random.Random(at).sample(shuffled[at : at + 4], 4)
    twice = [chunk for chunk in chunks("twice", "crane.wav", 50) for _ in range(2)]
    gap = chunks("gap", "door_code.wav", 100)
    # What is missing comes three seconds later, when it has long been given up.
    gap = [*gap[:20], *gap[22:50], *gap[20:22], *gap[50:]]
    silent = chunks("no-end", "phone_number.wav", 200, ends=False)
    spoilt = chunks("spoilt", "lights.wav", 300)
    spoilt[5] = spoilt[5]._replace(headers=[("sample_rate_hertz", b"1e4"), ("sequence", b"5")])
    reused = chunks("reused", "telephone_8khz.wav", 0) + chunks("reused", "lights.wav", 9_000)
    pause = chunks("pause", "door_code.wav", 400, ends=False)
    pause = pause[:30] + [chunk._replace(at_ms=chunk.at_ms + 3 * IDLE_MS) for chunk in pause[30:]]
    later = chunks("later", "crane.wav", 40_000)
    together = sorted([*silent, *spoilt, *reused, *pause, *later], key=lambda chunk: chunk.at_ms)
    # These are late or early on purpose: a stable merge by place keeps that.
    for disordered in (shuffled, twice, gap):
        step = len(together) / len(disordered)
        for n, chunk in reversed(list(enumerate(disordered))):
            together.insert(min(len(together), int(n * step * 0.4)), chunk)
    return together


class Live(NamedTuple):
    """What the live run said. offsets: of each session's first record, by (partition, session)."""

    config: KafkaConfig
    finals: dict[str, dict[str, Any]]
    dead_letters: int


@pytest.fixture(scope="module")
def live(make_module_config: Callable[..., KafkaConfig], tmp_path_factory: pytest.TempPathFactory) -> Live:
    config = make_module_config(partitions=3)
    topics = {f"kafka.topics.{name}": getattr(config.topics, name) for name in config.topics.__struct_fields__}
    settings = {**topics, **SESSION, "kafka.allowed_disorder_ms": "500"}
    producer = KafkaProducer(bootstrap_servers=config.bootstrap_servers, acks="all")
    for session, at_ms, payload, headers in conversation():
        producer.send(
            config.topics.audio, payload, key=session.encode(), headers=headers, timestamp_ms=BEGIN_MS + at_ms
        )
    producer.send(config.topics.audio, b"nobody's", timestamp_ms=BEGIN_MS + 20_000)
    producer.close()
    sessions = 10  # reused and pause are two each
    with running_streaming_job(config.bootstrap_servers, tmp_path_factory.mktemp("job"), settings):
        follower = Follower(config.bootstrap_servers, config.topics.results, from_beginning=True)
        finals, ended = {}, 0
        for value in follower.results(timeout_s=600):
            result = json.loads(value) if value is not None else {"type": ""}
            if result["type"] == "final":
                finals[result["result_id"]] = result
            ended += result["type"] == "session_end"
            if ended == sessions:
                break
        follower.close()
    assert ended == sessions
    return Live(config, finals, 4)


@pytest.fixture
def replay(live: Live, tmp_path: Path) -> Callable[..., tuple[list[dict[str, Any]], RunRecord]]:
    """Runs the batch job over a range, FROM..TO, and gives its rows and its record."""

    def run(span: str, *arguments: str) -> tuple[list[dict[str, Any]], RunRecord]:
        out = tmp_path / "out"
        settings = [
            f"input=kafka:{live.config.topics.audio}{span}",
            f"output={out}",
            "recipe=streaming",
            f"kafka.bootstrap_servers={live.config.bootstrap_servers}",
            "kafka.allowed_disorder_ms=500",
            *(f"{name}={value}" for name, value in SESSION.items()),
        ]
        assert main([part for setting in settings for part in ("--set", setting)] + [*arguments]) == 0
        record = read_record(out)
        assert record is not None
        return [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()], record

    return run


def essence(final: dict[str, Any], text: str) -> tuple[object, ...]:
    names = ("result_id", "session", "utterance", "revision", "words", "model", "device")
    return (final[text], *(final[name] for name in names))


def by_id(rows: list[dict[str, Any]]) -> dict[str, tuple[object, ...]]:
    good = {row["result_id"]: essence(row, "pred_text") for row in rows if not row["error"]}
    assert len(good) == sum(not row["error"] for row in rows)
    return good


def test_the_whole_topic_gives_the_finals_of_the_live_run(live: Live, replay: Callable[..., Any]) -> None:
    rows, record = replay("@..")
    assert by_id(rows) == {name: essence(final, "text") for name, final in live.finals.items()}
    assert len({row["session"] for row in rows if not row["error"]}) == 8
    for row in rows:
        final = live.finals.get(row.get("result_id"), {"start_ms": 0, "end_ms": 0})
        spans = [] if row["error"] else [{"start_ms": final["start_ms"], "end_ms": final["end_ms"]}]
        assert row["segments"] == spans
    assert (record.rows_in, record.results, record.errors) == (len(rows), len(live.finals), live.dead_letters)


def test_dead_letters_of_the_range_are_error_rows(live: Live, replay: Callable[..., Any]) -> None:
    rows, _ = replay("@..")
    bad = sorted((row["session"], row["stage"], row["error_class"]) for row in rows if row["error"])
    assert bad == [("", "wire", "AudioError"), ("gap", "order", "AudioError"), ("gap", "order", "AudioError")] + [
        ("spoilt", "wire", "AudioError")
    ]
    assert {row["source_file"].rpartition("/")[0] for row in rows} == {f"kafka:{live.config.topics.audio}"}


def test_a_session_belongs_to_the_range_in_which_it_begins(live: Live, replay: Callable[..., Any]) -> None:
    """Two ranges with a border in the middle of most sessions give together what the whole topic gives."""
    first, _ = replay("@..2026-01-01T00:00:03Z", "--force")
    second, _ = replay("@2026-01-01T00:00:03..", "--force")
    assert by_id(first) | by_id(second) == {name: essence(final, "text") for name, final in live.finals.items()}
    assert by_id(first).keys() & by_id(second).keys() == set()
    assert {row["session"] for row in second if not row["error"]} >= {"later", "reused"}


def test_a_finished_replay_is_not_done_again(live: Live, replay: Callable[..., Any]) -> None:
    rows, _ = replay("@..")
    again, record = replay("@..")
    assert (again, record.reused) == (rows, len(rows))


def said(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without what tells where the reading stood when they were written."""
    return [{name: value for name, value in row.items() if name not in ("gaps", "duplicates")} for row in rows]


def test_a_partition_of_its_own_and_offsets(live: Live, replay: Callable[..., Any]) -> None:
    whole, _ = replay("@..")
    rows, _ = replay("/0@0..100000")
    assert said(rows) == said([row for row in whole if row["source_file"].endswith("/0")])


def test_two_workers_give_the_same_rows(live: Live, replay: Callable[..., Any]) -> None:
    rows, _ = replay("@..")
    both, record = replay("@..", "--force", "--direct_running_mode=multi_processing", "--direct_num_workers=2")
    assert (both, record.reused) == (rows, 0)


def test_a_topic_that_is_not_there_ends_with_two(live: Live, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    servers = f"kafka.bootstrap_servers={live.config.bootstrap_servers}"
    for source, reason in (
        ("kafka:nowhere@..", "not on .*: nowhere"),
        ("kafka:nowhere@1", "must be kafka:TOPIC@FROM..TO"),
        ("kafka:a@yesterday..", "'yesterday' is neither an offset nor an ISO 8601 time"),
        ("[kafka:a@.., x.wav]", "must stand alone, got 2 inputs"),
        (f"kafka:{live.config.topics.audio}/7@..", r"has the partitions \[0.*\], not 7"),
    ):
        arguments = [f"input={source}", f"output={tmp_path / 'out'}", servers]
        assert main([part for setting in arguments for part in ("--set", setting)]) == 2
        assert re.search(reason, capfd.readouterr().err)


def test_the_command_of_the_page_replays_a_day(
    live: Live, admin: KafkaAdminClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (command,) = re.findall(r"^python -m pipelines.batch (.*kafka:.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    if "speech.audio" not in admin.list_topics():
        admin.create_topics([NewTopic("speech.audio", 1, 1)])
        producer = KafkaProducer(bootstrap_servers=live.config.bootstrap_servers)
        for day in (29, 30):
            begin_ms = BEGIN_MS + (datetime(2026, 11, day) - datetime(2026, 1, 1)) // timedelta(milliseconds=1)
            for session, at_ms, payload, headers in chunks(f"day{day}", "lights.wav", begin_ms):
                producer.send("speech.audio", payload, session.encode(), headers=headers, timestamp_ms=at_ms)
        producer.close()
    monkeypatch.chdir(tmp_path)
    servers = f"kafka.bootstrap_servers={live.config.bootstrap_servers}"
    assert main([*shlex.split(command), "--set", servers]) == 0
    rows = [json.loads(line) for line in Path("out/results.jsonl").read_text().splitlines()]
    assert {row["session"] for row in rows} == {"day30"}
    assert " ".join(row["pred_text"] for row in rows) == "on off on no"
