"""The players and the demonstration against a real broker, as people call them; and what the scripts say."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from apache_beam.utils.shared import Shared
from kafka.consumer.fetcher import ConsumerRecord

from service import produce, tail
from service.wire import AudioDefaults, decode_headers
from transforms.kafka_config import KafkaConfig
from transforms.stream_records import KafkaOutput
from transforms.write_kafka import WriteToKafka

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).resolve().parents[2]


def test_files_are_played_as_sessions(
    make_config: Callable[..., KafkaConfig],
    read_topic: Callable[[str], list[ConsumerRecord]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = make_config()
    files = [str(ROOT / "samples" / name) for name in ("lift.wav", "telephone_8khz.wav")]
    place = ["--bootstrap-servers", config.bootstrap_servers, "--topic", config.topics.audio]
    assert produce.main([*files, *place, "--speed", "0", "--header", "tentative_end_ms=300"]) == 0
    assert capsys.readouterr().out.endswith("records: lift, telephone_8khz\n")
    records = read_topic(config.topics.audio)
    assert all(("tentative_end_ms", b"300") in record.headers for record in records)
    headers = [(record.key, decode_headers(record.headers, AudioDefaults())) for record in records]
    for key, rate in ((b"lift", 16_000), (b"telephone_8khz", 8_000)):
        session = [header for name, header in headers if name == key]
        assert [header.sequence for header in session] == list(range(len(session)))
        assert [header.end_of_stream for header in session] == [False] * (len(session) - 1) + [True]
        assert {header.sample_rate_hz for header in session} == {rate}


def test_a_topic_that_is_not_there_is_named(servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--bootstrap-servers", servers, "--topic", "no.such.topic"]
    assert tail.main(place) == 1
    assert f"no.such.topic on {servers}" in capsys.readouterr().err


def as_it_is(fields: dict[str, object], topic: str) -> KafkaOutput:
    return KafkaOutput(topic, b"s", json.dumps(fields).encode(), [], None)


def write_results(config: KafkaConfig, kinds: list[str]) -> None:
    fn = WriteToKafka(config, config.topics.results, as_it_is, Shared())._write
    fn.setup()
    fn.start_bundle()
    for number, kind in enumerate(kinds):
        fields = {"type": kind, "session": "s", "text": "yes", "start_ms": 0, "end_ms": 500, "latency_ms": 60}
        fields |= {"result_id": f"s/0/0/{number}", "audio_ms": 600, "reason": ""}
        fn.process(fields)
    fn.finish_bundle()


def test_results_are_shown_until_so_many_sessions_have_ended(
    make_config: Callable[..., KafkaConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    config = make_config()
    write_results(config, ["partial", "final", "session_end"])
    place = ["--bootstrap-servers", config.bootstrap_servers, "--topic", config.topics.results, "--from-beginning"]
    assert tail.main([*place, "--sessions", "1", "--timeout", "30"]) == 0
    assert capsys.readouterr().out == "s  0.00-0.50  yes  (60 ms)\n"
    assert tail.main([*place, "--json", "--sessions", "1", "--timeout", "30"]) == 0
    kinds = [json.loads(line)["type"] for line in capsys.readouterr().out.splitlines()]
    assert kinds == ["partial", "final", "session_end"]


def test_too_few_sessions_within_the_time_are_a_failure(
    make_config: Callable[..., KafkaConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    config = make_config()
    place = ["--bootstrap-servers", config.bootstrap_servers, "--topic", config.topics.results]
    assert tail.main([*place, "--sessions", "1", "--timeout", "0.5"]) == 1
    assert "0 of 1 sessions have ended within 0.5 s" in capsys.readouterr().err


@pytest.mark.prism
def test_the_demonstration_shows_that_both_jobs_agree_and_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipelines.demo", "--speed", "4"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    shown = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280)
    assert shown.returncode == 0, shown.stderr
    assert "8 of 8 recordings: both jobs say the same words at the same times" in shown.stdout
    assert list(tmp_path.glob("unison-demo-*")) == []


def script(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["/bin/bash", str(ROOT / "deploy" / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={"HOME": "/nowhere", **environment})


def test_scripts_say_what_is_missing_and_how_to_get_it(tmp_path: Path) -> None:
    few = tmp_path / "bin"
    few.mkdir()
    for tool in ("mkdir", "mktemp", "cat", "dirname"):
        (few / tool).symlink_to(f"/usr/bin/{tool}")
    kafka = script("kafka.sh", "fetch", PATH=str(few), UNISON_CACHE=str(tmp_path))
    assert kafka.returncode == 1
    assert "java is missing; install it with: apt-get install openjdk-17-jre-headless maven" in kafka.stderr
    flink = script("flink.sh", "fetch", PATH=str(few), UNISON_CACHE=str(tmp_path))
    assert flink.returncode == 1
    assert "java is missing; install it with: apt-get install openjdk-17-jre-headless maven" in flink.stderr
    prism = script("prism.sh", "2.77.0", PATH=str(few), UNISON_CACHE=str(tmp_path))
    assert prism.returncode == 1
    assert "go is missing; install Go" in prism.stderr


def test_a_cluster_that_does_not_run_is_said_so(tmp_path: Path) -> None:
    stopped = script("flink.sh", "stop", "--data", str(tmp_path), PATH=os.environ["PATH"])
    assert (stopped.returncode, stopped.stderr) == (0, "flink.sh: not running\n")
    asked = script("flink.sh", "status", "--data", str(tmp_path), PATH=os.environ["PATH"])
    parts = "jobmanager taskmanager-1 taskmanager-2 workers jobserver"
    assert (asked.returncode, asked.stderr) == (3, f"flink.sh: not running: {parts}\n")


def test_a_broker_that_does_not_run_is_said_so(tmp_path: Path) -> None:
    for command, code in (("status", 3), ("stop", 0)):
        done = script("kafka.sh", command, "--data", str(tmp_path), PATH=os.environ["PATH"])
        assert (done.returncode, done.stderr) == (code, "kafka.sh: not running\n")
