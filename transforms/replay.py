"""Replay: records of a range through the live job's session logic, with its clock instead of ours. Knows no Beam.

The live runner hands records on in rounds, and between two of them fires the timers that the watermark has passed, in
the order of their times. The same is done here, with the time of the next record for the clock.
"""

import heapq
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from model_runtime.errors import AudioError
from service.wire import AudioDefaults
from transforms.dead_letter import DeadLetter
from transforms.kafka_chunks import decode_record
from transforms.kafka_range import Span
from transforms.read_kafka_range import RangeReader
from transforms.result import Result
from transforms.session_book import decode_book, place_of_incarnation
from transforms.session_logic import SessionLogic
from transforms.session_turn import Turn
from transforms.stream_records import Chunk, KafkaRecord, refused_record

# A round of a live job that is busy. What a session says does not depend on it.
_ROUND_MS = 1_000
_ROUND_RECORDS = 500
_ROUND_BYTES = 16 << 20


class ReplayedFinal(NamedTuple):
    """A final, and where its session began: the partition and the offset of its first record."""

    partition: int
    offset: int
    final: Result


class Replay:
    """One part of a range: the sessions whose keys fall to it. For one thread, once."""

    def __init__(
        self,
        logic: SessionLogic,
        defaults: AudioDefaults,
        spans: Sequence[Span],
        allowed_disorder_ms: int,
        part: tuple[int, int] = (0, 1),
    ) -> None:
        """part: its number, and how many there are."""
        self._logic = logic
        self._defaults = defaults
        self._spans = {span.partition: span for span in spans}
        self._disorder_ms = allowed_disorder_ms
        self._part = part
        self._books: dict[str, bytes] = {}
        self._timers: list[tuple[int, str]] = []
        # Sessions that have not ended, and whether they began in the range.
        self._open: dict[str, bool] = {}

    @property
    def unfinished(self) -> int:
        """How many sessions of the range have not ended: they still go on, or did when the range was looked up."""
        return sum(self._open.values())

    def play(self, reader: RangeReader, now_ms: int) -> Iterator[ReplayedFinal | DeadLetter]:
        """Gives the finals and the dead letters of the sessions that began in the range, in the order of their times.

        Args:
            now_ms: how far time has gone on since the last record.
        """
        for records, watermark_ms in self._rounds(reader.records()):
            letters, chunks_by_session = self._decode(records)
            yield from letters
            for session, chunks in chunks_by_session.items():
                yield from self._take(session, self._logic.advance(self._books.get(session), chunks))
            yield from self._fire(watermark_ms)
            if reader.past and not self.unfinished:
                return
        yield from self._fire(now_ms)

    def _rounds(self, records: Iterable[KafkaRecord]) -> Iterator[tuple[list[KafkaRecord], int]]:
        """Gives records in rounds, and where the watermark stands when the next round begins."""
        hand: list[KafkaRecord] = []
        size, watermark_ms = 0, 0
        for record in records:
            watermark_ms = record.stream_ms - self._disorder_ms
            due = bool(self._timers) and self._timers[0][0] <= watermark_ms
            full = len(hand) >= _ROUND_RECORDS or size >= _ROUND_BYTES
            if hand and (due or full or record.stream_ms - hand[0].stream_ms >= _ROUND_MS):
                yield hand, watermark_ms
                hand, size = [], 0
            hand.append(record)
            size += len(record.value or b"")
        if hand:
            yield hand, watermark_ms

    def _decode(self, records: Sequence[KafkaRecord]) -> tuple[list[DeadLetter], dict[str, list[Chunk]]]:
        """Gives the chunks of a round by session, and what is no chunk."""
        letters: list[DeadLetter] = []
        sessions: dict[str, list[Chunk]] = {}
        number, parts = self._part
        for record in records:
            if zlib.crc32(record.key or b"") % parts != number:
                continue
            try:
                chunk = decode_record(record, self._defaults)
            except AudioError as error:
                letters += self._of_range(refused_record(record, "wire", error))
                continue
            # What comes behind the range only goes on with what began before.
            known = chunk.session in self._open or chunk.session in sessions
            if known or record.offset < self._spans[record.partition].last:
                sessions.setdefault(chunk.session, []).append(chunk)
        return letters, sessions

    def _fire(self, now_ms: int) -> Iterator[ReplayedFinal | DeadLetter]:
        """Fires the timers up to a time, those too that others have set meanwhile."""
        while self._timers and self._timers[0][0] <= now_ms:
            timer_ms, session = heapq.heappop(self._timers)
            if session in self._books:
                yield from self._take(session, self._logic.expire(self._books[session], session, timer_ms))

    def _take(self, session: str, turn: Turn) -> Iterator[ReplayedFinal | DeadLetter]:
        """Keeps a session's memory, and gives what it has said of the range."""
        if turn.book is None:
            self._books.pop(session, None)
        else:
            self._books[session] = turn.book
            if turn.timer_ms is not None:
                heapq.heappush(self._timers, (turn.timer_ms, session))
            self._note_open(session, turn.book, turn.counts["sessions_opened"], turn.counts["sessions_ended"])
        for letter in turn.dead_letters:
            yield from self._of_range(letter)
        for result in turn.results:
            partition, offset = place_of_incarnation(int(result.result_id.split("/")[-3]))
            if result.type == "final" and self._holds(partition, offset):
                yield ReplayedFinal(partition, offset, result)

    def _note_open(self, session: str, book: bytes, opened: int, ended: int) -> None:
        if opened or ended:
            was_open = session in self._open
            self._open.pop(session, None)
            if was_open + opened > ended:
                self._open[session] = self._holds(*place_of_incarnation(decode_book(book).incarnation))

    def _of_range(self, letter: DeadLetter) -> list[DeadLetter]:
        return [letter] if self._holds(letter.partition, letter.offset) else []

    def _holds(self, partition: int, offset: int) -> bool:
        span = self._spans[partition]
        return span.first <= offset < span.last
