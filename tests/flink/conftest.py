"""A real Flink cluster, a real broker, and the streaming job between them: one of each for all of these tests."""

import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.delivery import Delivery, chunk_offsets, compare, expected_finals
from model_runtime import Audio, SpeechEngine
from model_runtime.decode import decode_file
from pipelines.local_flink import LocalFlink, is_fetched, running_flink
from pipelines.local_jobs import LocalBroker, create_topics, free_port, running_broker
from service.produce import Recording, play
from service.tail import Follower
from service.wire import decode_result
from transforms.kafka_config import TopicsConfig

ROOT = Path(__file__).resolve().parents[2]
_SAMPLES = sorted((ROOT / "samples").glob("*.wav"))
_ALL_SAID_S = 600


class LiveJob:
    """The streaming job on Flink, and what is sent to it and said by it."""

    def __init__(self, flink: LocalFlink, broker: LocalBroker, folder: Path) -> None:
        self.flink = flink
        self.broker = broker
        self.topics = TopicsConfig()
        self.log = folder / "driver.log"
        self.engine = SpeechEngine.load("streaming")
        settings = {"kafka.bootstrap_servers": broker.servers, "kafka.start": "earliest"}
        self._settings = [f"--set={name}={value}" for name, value in settings.items()]
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
        follower = Follower(self.broker.servers, self.topics.results, from_beginning=True)
        player.start()
        results: list[dict[str, Any]] = []
        happened = False
        for value in follower.results(_ALL_SAID_S):
            result = {} if value is None else decode_result(value)
            if str(result.get("session")).startswith(name):
                results.append(result)
            if not happened and result in results and result["type"] == "final":
                happens()
                happened = True
            if ended(results) == sessions.keys():
                break
        follower.close()
        player.join()
        return results

    def recordings(self, name: str) -> dict[str, Audio]:
        """Gives each sample under the id of its session."""
        return {f"{name}-{path.stem}": decode_file(path) for path in _SAMPLES}

    def delivery(self, name: str, results: list[dict[str, Any]]) -> Delivery:
        """Gives what became of the finals of these sessions."""
        offsets = self.offsets()
        expected = {}
        for session, audio in self.recordings(name).items():
            expected |= expected_finals(self.engine, session, offsets[session][0], audio)
        return compare(expected, results)

    def offsets(self) -> dict[str, list[int]]:
        """Gives the offset of every chunk of every session."""
        return chunk_offsets(self.broker.servers, self.topics.audio)


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
def job(flink: LocalFlink, broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJob]:
    live = LiveJob(flink, broker, tmp_path_factory.mktemp("job"))
    yield live
    live.leave()
    flink.cancel(live.id)
