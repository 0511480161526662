"""From results, clean audio and dead letters to the records of their topics, after the wire (docs/streaming.md)."""

from service.wire import INCARNATION, START_SAMPLE, ChunkHeaders, encode_headers
from transforms.dead_letter import DeadLetter, Header
from transforms.result import Result, result_to_json
from transforms.stream_records import EnhancedChunk, KafkaOutput
from transforms.timing import clock_ms
from transforms.window_stats import WindowStats, stats_id, stats_to_json


def result_output(result: Result, topic: str) -> KafkaOutput:
    """Gives the record of a result; its latency is measured here."""
    value = result_to_json(result, now_ms=clock_ms())
    return KafkaOutput(topic, result.session.encode(), value, [], None)


def stats_output(stats: WindowStats, topic: str) -> KafkaOutput:
    """Gives the record of a window's figures."""
    return KafkaOutput(topic, stats_id(stats).encode(), stats_to_json(stats), [], None)


def enhanced_output(chunk: EnhancedChunk, topic: str) -> KafkaOutput:
    """Gives the record of a piece of clean audio: mono LINEAR16 with the headers of audio records, and its place."""
    headers = ChunkHeaders("LINEAR16", chunk.sample_rate_hz, 1, chunk.sequence, chunk.end_of_stream)
    place = [(INCARNATION, b"%d" % chunk.incarnation), (START_SAMPLE, b"%d" % chunk.start_samples)]
    return KafkaOutput(topic, chunk.session.encode(), chunk.payload, [*encode_headers(headers), *place], chunk.event_ms)


def dead_letter_output(letter: DeadLetter, topic: str) -> KafkaOutput:
    """Gives the record of a dead letter: the original one, with the reason in further headers.

    Producers cannot write a header without a value, nor a record with neither key nor value: those nulls become
    empty, and `dlt.nulls` names them.
    """
    nulls = [name for name, value in letter.headers if value is None]
    value = letter.payload
    if value is None and letter.record_key is None:
        value = b""
        nulls.append("value")
    said = {
        "dlt.stage": letter.stage,
        "dlt.reason": letter.message,
        "dlt.exception": letter.error_class,
        "dlt.topic": letter.topic,
        "dlt.partition": str(letter.partition),
        "dlt.offset": str(letter.offset),
    }
    if nulls:
        said["dlt.nulls"] = ",".join(nulls)
    headers: list[Header] = [(name, value or b"") for name, value in letter.headers]
    headers += [(name, text.encode()) for name, text in said.items()]
    return KafkaOutput(topic, letter.record_key, value, headers, None)
