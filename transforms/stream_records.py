"""The records that flow through the streaming job: from Kafka, through a session, to Kafka."""

from typing import NamedTuple

from model_runtime.errors import SpeechError
from model_runtime.records import Utterance
from transforms.dead_letter import DeadLetter, Header
from transforms.record_coder import register
from transforms.result import Heard, Result


class KafkaPartition(NamedTuple):
    """One partition to read; `added`: it was not there when the job began."""

    topic: str
    partition: int
    added: bool = False


class KafkaRecord(NamedTuple):
    """One record as it came.

    event_ms: its timestamp (Unix ms), or the time it was read where that is unusable (`substituted`); stream_ms: the
    time of its partition when it was read, never before event_ms, never falling from record to record, and rising
    between rounds. It is the record's Beam timestamp, so a runner that sorts by time keeps the order of the offsets.
    read_ms: the clock when it was read; behind: how many records of its partition were still to be read after it.
    lost_before: the offset at which reading has gone on after the newest records that were lost (-1: none were).
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]
    event_ms: int
    substituted: bool
    stream_ms: int
    read_ms: int
    behind: int
    lost_before: int = -1


class Chunk(NamedTuple):
    """One piece of a session's audio, described but not yet decoded; payload: None where the record had no value.

    substituted: event_ms is the time of reading, since the record's own was unusable; read_ms, behind, lost_before:
    those of its record; taken_ms: the clock when it began to wait for chunks before it (0: it did not wait).
    """

    session: str
    sequence: int
    encoding: str
    sample_rate_hz: int
    channels: int
    end_of_stream: bool
    payload: bytes | None
    event_ms: int
    stream_ms: int
    topic: str
    partition: int
    offset: int
    headers: list[Header]
    substituted: bool = False
    read_ms: int = 0
    behind: int = 0
    taken_ms: int = 0
    lost_before: int = -1


class EnhancedChunk(NamedTuple):
    """A piece of a session's clean audio: mono LINEAR16; sequence counts from 0; the last one may be empty.

    start_samples: where it stands in the session, whose incarnation tells it from others of its key. A replay may cut
    the audio at other places, but what stands at one position is always the same.
    """

    session: str
    sequence: int
    sample_rate_hz: int
    end_of_stream: bool
    payload: bytes
    event_ms: int
    incarnation: int
    start_samples: int


class SpokenUtterance(NamedTuple):
    """An utterance to be transcribed apart from its session, so that no chunk has to wait for it.

    utterance: None where there is only something to be said after all finals before; pcm: its audio until now, LINEAR16
    at the models' rate; heard: what its final or partial says about the session; then: what is said after that.
    """

    utterance: Utterance | None
    pcm: bytes
    heard: Heard
    then: list[Result]

    def is_over(self) -> bool:
        """Tells whether this is the last of its utterance, or of its session."""
        return self.utterance is None or self.utterance.over


class SessionAudio(NamedTuple):
    """What a session's engine has heard in a turn: mono LINEAR16, silence in gaps included.

    life: of session_life; start_samples: position of its first sample in the session.
    """

    life: str
    sample_rate_hz: int
    start_samples: int
    pcm: bytes


class SessionPart(NamedTuple):
    """One thing that is kept of a session: a result, or audio."""

    result: Result | None
    audio: SessionAudio | None


class KafkaOutput(NamedTuple):
    """One record to write; timestamp_ms None lets the producer take its clock."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[Header]
    timestamp_ms: int | None


def refused_record(record: KafkaRecord, stage: str, error: SpeechError) -> DeadLetter:
    """Gives the dead letter of a record that is no chunk."""
    return DeadLetter(
        stage=stage,
        key=(record.key or b"").decode("utf-8", "backslashreplace"),
        error_class=type(error).__name__,
        message=str(error),
        payload=record.value,
        record_key=record.key,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        headers=record.headers,
    )


def refused_chunk(chunk: Chunk, stage: str, error: SpeechError) -> DeadLetter:
    """Gives the dead letter of a chunk that its session cannot use: the record it came in, untouched."""
    return DeadLetter(
        stage=stage,
        key=chunk.session,
        error_class=type(error).__name__,
        message=str(error),
        payload=chunk.payload,
        record_key=chunk.session.encode(),
        topic=chunk.topic,
        partition=chunk.partition,
        offset=chunk.offset,
        headers=chunk.headers,
    )


register(KafkaPartition, KafkaRecord, Chunk, EnhancedChunk, KafkaOutput, SessionAudio, SessionPart, SpokenUtterance)
