"""Records into chunks: what the wire says, its defaults, and what cannot be a chunk (field case K02)."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils.timestamp import Timestamp

from service.wire import NO_SEQUENCE, AudioDefaults
from transforms.dead_letter import DEAD_LETTERS, Header
from transforms.kafka_chunks import CHUNKS, DecodeChunks, decode_record
from transforms.stream_records import Chunk, KafkaRecord

DEFAULTS = AudioDefaults(encoding="MULAW", sample_rate_hz=8_000, channels=2)


def record(key: bytes | None, value: bytes | None, headers: list[Header], offset: int = 0) -> KafkaRecord:
    return KafkaRecord("audio", 0, offset, key, value, headers, 1_000, False, 2_000, 1_500, 7)


def test_headers_describe_a_chunk() -> None:
    said = {"encoding": b"linear16", "sample_rate_hertz": b"48000", "channels": b"1", "sequence": b"7"}
    headers = [(name, value) for name, value in said.items()] + [("end_of_stream", b"1")]
    chunk = decode_record(record(b"s", b"xy", headers), DEFAULTS)
    assert chunk[:7] == ("s", 7, "LINEAR16", 48_000, 1, True, b"xy")
    assert (chunk.event_ms, chunk.stream_ms, chunk.headers) == (1_000, 2_000, headers)


def test_what_is_known_of_the_partition_goes_with_the_chunk() -> None:
    chunk = decode_record(record(b"s", b"xy", [])._replace(lost_before=7), DEFAULTS)
    assert chunk.lost_before == 7


def test_missing_null_and_empty_headers_take_the_defaults() -> None:
    chunk = decode_record(record(b"s", None, [("encoding", None), ("channels", b"")]), DEFAULTS)
    assert chunk[:7] == ("s", NO_SEQUENCE, "MULAW", 8_000, 2, False, None)


def test_field_case_k02_uses_or_reports_every_record(shared: Path) -> None:
    rows = map(json.loads, (shared / "field-cases/stream/k02_null_fields.jsonl").read_text().splitlines())
    records = [
        record(
            row["key"] if row["key"] is None else base64.b64decode(row["key"]),
            row["value"] if row["value"] is None else base64.b64decode(row["value"]),
            [(name, None if value is None else base64.b64decode(value)) for name, value in row["headers"]],
            row["offset"],
        )
        for row in rows
    ]
    with TestPipeline(runner="FnApiRunner") as pipeline:
        decoded = pipeline | beam.Create(records) | DecodeChunks(AudioDefaults())
        groups = decoded[CHUNKS] | "Offsets" >> beam.MapTuple(
            lambda key, chunks: (key, [c[11:12] + c[6:7] for c in chunks])
        )
        reasons = decoded[DEAD_LETTERS] | "Reasons" >> beam.Map(lambda letter: (letter.offset, letter.message))
        audio = bytes(3)
        assert_that(groups, equal_to([("sess", [(0, audio), (2, None), (4, b""), (6, audio)])]), "used")
        assert_that(
            reasons,
            equal_to(
                [
                    (1, "key must hold the session's id, got null"),
                    (3, "key must hold the session's id, got null"),
                    (5, "key must hold the session's id, got an empty one"),
                    (7, "key must be UTF-8, got b'\\xff\\xfe\\xfd'"),
                ]
            ),
            "reported",
        )


@pytest.mark.parametrize("value", [b"-1", b"1.5", b"0x10", b"1_000", "٣".encode(), b"9" * 19])
def test_a_number_that_is_none_is_refused_with_the_name_of_its_header(value: bytes) -> None:
    with pytest.raises(Exception, match="header sequence must be a whole number in ASCII digits"):
        decode_record(record(b"s", b"", [("sequence", value)]), DEFAULTS)


def test_field_case_b01_what_comes_together_keeps_its_session_and_its_event_times() -> None:
    records = [
        record(key, b"xx", [("sequence", b"%d" % number)], offset)._replace(stream_ms=5_000 + offset)
        for offset, (key, number) in enumerate([(b"a", 0), (b"b", 0), (b"a", 1), (b"b", 1), (b"a", 2)])
    ]
    with TestPipeline(runner="FnApiRunner") as pipeline:
        decoded = pipeline | beam.Create(records, reshuffle=False) | DecodeChunks(AudioDefaults())
        assert_that(
            decoded[CHUNKS] | beam.ParDo(_Stamps()),
            equal_to([("a", 5_000, [5_000, 5_002, 5_004]), ("b", 5_001, [5_001, 5_003])]),
        )


class _Stamps(beam.DoFn):
    """Gives (session, the group's Beam timestamp in ms, its chunks' stream times)."""

    def process(
        self, element: tuple[str, list[Chunk]], stamp: Timestamp = beam.DoFn.TimestampParam
    ) -> Iterator[tuple[str, int, list[int]]]:
        session, chunks = element
        yield session, stamp.micros // 1000, [chunk.stream_ms for chunk in chunks]


def test_a_group_that_is_handed_on_for_its_size_has_the_time_of_its_first_chunk_too() -> None:
    half = bytes(600_000)
    records = [record(b"a", half, [], offset)._replace(stream_ms=5_000 + 1_000 * offset) for offset in range(3)]
    with TestPipeline(runner="FnApiRunner") as pipeline:
        decoded = pipeline | beam.Create(records, reshuffle=False) | DecodeChunks(AudioDefaults())
        assert_that(
            decoded[CHUNKS] | beam.ParDo(_Stamps()), equal_to([("a", 5_000, [5_000, 6_000]), ("a", 7_000, [7_000])])
        )


def test_a_time_that_was_substituted_is_marked() -> None:
    assert decode_record(record(b"s", b"", [])._replace(substituted=True), DEFAULTS).substituted
