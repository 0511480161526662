"""Listens to a candidate's results."""

import time
from collections.abc import Callable

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from benchmarks.peers.judgement import Said
from benchmarks.peers.play import Play


class Listener:
    """Follows a topic of results, whose records the broker itself stamps when it takes them."""

    def __init__(self, servers: str, topic: str) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": topic, "enable.auto.commit": False, "fetch.wait.max.ms": 50}
        )
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        self._decoder = msgspec.json.Decoder(Said)

    def collect(self, plays: list[Play], timeout_s: float, alive: Callable[[], bool]) -> list[tuple[Said, float]]:
        """Gives the results of these sessions with their stamps, until all have ended, or time or the job is over."""
        open_sessions = {play.session for play in plays}
        sessions, said = set(open_sessions), []
        end_s = time.monotonic() + timeout_s
        while open_sessions and time.monotonic() < end_s and alive():
            for message in self._consumer.consume(500, 0.1):
                if message.error():
                    raise RuntimeError(f"results cannot be read: {message.error()}")
                result = self._decoder.decode(message.value())
                if result.session in sessions:
                    said.append((result, message.timestamp()[1]))
                if result.type == "session_end":
                    open_sessions.discard(result.session)
        return said

    def close(self) -> None:
        """Lets go of the broker."""
        self._consumer.close()
