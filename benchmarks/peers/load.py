"""Feeds sessions into a topic: live, each chunk when its last sample has been captured, or as fast as it goes."""

import time
from heapq import merge
from itertools import islice
from typing import NamedTuple

from confluent_kafka import Producer

from benchmarks.peers.expected import CHUNK_MS, RATE_HZ
from benchmarks.peers.play import Play
from model_runtime import Audio
from service.produce import Recording, cut

_FLUSH_S = 120
_QUEUED_RECORDS = 1_000_000


class Played(NamedTuple):
    """capture_ms: the Unix ms to which due times and offsets are added; begun_ms: when the first record was sent."""

    capture_ms: float
    begun_ms: float


class Load:
    """A producer of audio records."""

    def __init__(self, servers: str, topic: str) -> None:
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "linger.ms": 1,
                "queue.buffering.max.messages": _QUEUED_RECORDS,
            }
        )

    def play(self, plays: list[Play], live: bool = True, chunks: int | None = None) -> Played:
        """Plays sessions side by side, or so many chunks of each, and ends when all have been acknowledged.

        Live, each chunk is sent when it is due. Otherwise all are sent at once, in the same order, with such
        timestamps as if the last of them had just been captured.

        Raises:
            TimeoutError: they were not acknowledged.
        """
        recordings = [Recording(play.session, Audio(play.script.audio, RATE_HZ)) for play in plays]
        pieces = [islice(cut(recording, CHUNK_MS, "LINEAR16", 1.0), chunks) for recording in recordings]
        offsets_ms = {play.session: play.offset_ms for play in plays}
        begun_ms = capture_ms = time.time() * 1000
        if not live:
            capture_ms -= CHUNK_MS * (1 + max(play.script.chunks() for play in plays))
        for piece in merge(*pieces, key=lambda piece: piece.due_ms + offsets_ms[piece.session]):
            start_ms = capture_ms + offsets_ms[piece.session]
            if live:
                time.sleep(max(0.0, (start_ms + piece.due_ms) / 1000 - time.time()))
            self._producer.produce(
                self._topic,
                piece.payload,
                piece.session.encode(),
                headers=piece.headers,
                timestamp=round(start_ms + piece.captured_ms),
            )
            self._producer.poll(0)
        left = self._producer.flush(_FLUSH_S)
        if left:
            raise TimeoutError(f"the broker has not acknowledged {left} records")
        return Played(capture_ms, begun_ms)
