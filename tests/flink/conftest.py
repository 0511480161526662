"""A real Flink cluster, a real broker, and the streaming job between them: one of each for all of these tests."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from kafka import KafkaProducer

from benchmarks.delivery import Delivery, chunk_places, compare, expected_finals
from model_runtime import Audio, SpeechEngine
from model_runtime.decode import decode_file
from pipelines.local_flink import LocalFlink, is_fetched, running_flink
from pipelines.local_jobs import LocalBroker, create_topics, free_port, running_broker
from service.produce import Recording, cut, play
from service.tail import Follower
from service.wire import decode_result
from transforms.kafka_config import TopicsConfig

ROOT = Path(__file__).resolve().parents[2]
_SAMPLES = sorted((ROOT / "samples").glob("*.wav"))
_ALL_SAID_S = 600
CHUNK_MS = 100


class LiveJob:
    """The streaming job on Flink, and what is sent to it and said by it."""

    def __init__(
        self,
        flink: LocalFlink,
        broker: LocalBroker,
        folder: Path,
        topics: TopicsConfig = TopicsConfig(),  # noqa: B008  (frozen)
        **settings: str,
    ) -> None:
        """settings: of the job, with two underscores in place of the dot of a field's name."""
        self.flink = flink
        self.broker = broker
        self.topics = topics
        self.log = folder / "driver.log"
        self.engine = SpeechEngine.load("streaming")
        names = {f"kafka.topics.{name}": topic for name, topic in msgspec.structs.asdict(topics).items()}
        own = {name.replace("__", "."): value for name, value in settings.items()}
        every = {"kafka.bootstrap_servers": broker.servers, "kafka.start": "earliest", **names, **own}
        self._settings = [f"--set={name}={value}" for name, value in every.items()]
        self.send()

    def send(self, *arguments: str) -> None:
        """Sends the job anew: `id` and `driver` are those of the new one from now on."""
        self.id, self.driver = self.flink.send([*self._settings, *arguments], self.log)

    def leave(self) -> int:
        """Lets the driver go, and gives its exit code; the job goes on."""
        self.driver.send_signal(signal.SIGINT)
        return self.driver.wait(60)

    def speak(self, name: str, happens: Callable[[], object] = lambda: None) -> list[dict[str, Any]]:
        """Plays every sample as a session in real time; once a first final has come, `happens` is called.

        Gives all results of these sessions until each has ended.
        """
        sessions = self.recordings(name)
        recordings = [Recording(session, audio) for session, audio in sessions.items()]
        player = threading.Thread(target=play, args=(recordings, self.broker.servers, self.topics.audio), daemon=True)
        player.start()
        self.hear(name, lambda results: any(result["type"] == "final" for result in results))
        happens()
        results = self.hear(name, lambda results: ended(results) == sessions.keys())
        player.join()
        return results

    def send_halves(self, name: str) -> Iterator[None]:
        """Sends the first half of every sample's chunks, and when it is asked to go on the second."""
        start_ms = time.time() * 1000
        sessions = [list(cut(Recording(*each), CHUNK_MS, "LINEAR16", 0)) for each in self.recordings(name).items()]
        for half in (0, 1):
            producer = KafkaProducer(bootstrap_servers=self.broker.servers, acks="all")
            for pieces in sessions:
                middle = len(pieces) // 2
                for piece in pieces[middle:] if half else pieces[:middle]:
                    at_ms = round(start_ms + piece.captured_ms)
                    key, headers = piece.session.encode(), piece.headers
                    producer.send(self.topics.audio, piece.payload, key=key, headers=headers, timestamp_ms=at_ms)
            producer.close()
            yield

    def hear(self, name: str, enough: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """Gives all results of these sessions once they are enough, or the time is over."""
        follower = Follower(self.broker.servers, self.topics.results, from_beginning=True)
        results: list[dict[str, Any]] = []
        for value in follower.results(_ALL_SAID_S):
            result = {} if value is None else decode_result(value)
            if str(result.get("session")).startswith(name):
                results.append(result)
                if enough(results):
                    break
        follower.close()
        return results

    def recordings(self, name: str) -> dict[str, Audio]:
        """Gives each sample under the id of its session."""
        return {f"{name}-{path.stem}": decode_file(path) for path in _SAMPLES}

    def delivery(self, name: str, results: list[dict[str, Any]]) -> Delivery:
        """Gives what became of the finals of these sessions."""
        places = self.places()
        expected = {}
        for session, audio in self.recordings(name).items():
            expected |= expected_finals(self.engine, session, places[session][0], audio)
        return compare(expected, results)

    def places(self) -> dict[str, list[int]]:
        """Gives, for each chunk of each session, the incarnation of a session that begins with it."""
        return chunk_places(self.broker.servers, self.topics.audio)


def ended(results: list[dict[str, Any]]) -> set[str]:
    """Gives the sessions of which nothing more comes; one that ended for its state goes on under the same key."""
    return {row["session"] for row in results if row["type"] == "session_end" and row["reason"] != "state"}


@pytest.fixture(scope="session")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFlink]:
    if not is_fetched():
        pytest.skip("Flink's jars are not there (deploy/flink.sh fetch)")
    with running_flink(tmp_path_factory.mktemp("flink")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    with running_broker(free_port(), tmp_path_factory.mktemp("broker")) as broker:
        create_topics(broker.servers, TopicsConfig(), audio_partitions=2)
        yield broker


@pytest.fixture(scope="module")
def make_job(
    flink: LocalFlink, broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., LiveJob]]:
    """Sends a job between topics of its own, with such settings."""
    made: list[LiveJob] = []

    def make(**settings: str) -> LiveJob:
        topics = TopicsConfig(*(f"{uuid4().hex}.{name}" for name in TopicsConfig.__struct_fields__))
        create_topics(broker.servers, topics, audio_partitions=2)
        made.append(LiveJob(flink, broker, tmp_path_factory.mktemp("job"), topics, **settings))
        return made[-1]

    yield make
    for live in made:
        live.leave()
        flink.cancel(live.id)


@pytest.fixture(scope="module")
def job(flink: LocalFlink, broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJob]:
    live = LiveJob(flink, broker, tmp_path_factory.mktemp("job"))
    yield live
    live.leave()
    flink.cancel(live.id)
