"""What is written to Kafka: results, clean audio and dead letters."""

import json

import pytest

from model_runtime.records import Final, MadeBy, Word
from transforms import kafka_outputs
from transforms.dead_letter import DeadLetter
from transforms.kafka_outputs import dead_letter_output, enhanced_output, result_output
from transforms.result import Gap, Heard, event_to_result, result_to_json
from transforms.stream_records import EnhancedChunk


def test_a_result_is_one_json_object_with_its_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_outputs, "clock_ms", lambda: 1_790_000_000_250)
    final = Final(2, 5, "yes", (Word("yes", 1000, 1400, 0.75),), 0.75, 16_000, 24_000)
    heard = Heard("ü", 41, 16_000, 1_500, gaps=[Gap(200, 300, 1)], duplicates=2, captured_ms=1_790_000_000_100)
    output = result_output(event_to_result(final, heard, MadeBy("m:1", "npu")), "results")
    assert (output.topic, output.key, output.headers) == ("results", "ü".encode(), [])
    assert json.loads(output.value) == {
        "result_id": "ü/41/2/5",
        "session": "ü",
        "utterance": 2,
        "revision": 5,
        "type": "final",
        "text": "yes",
        "words": [{"text": "yes", "start_ms": 1000, "end_ms": 1400, "confidence": 0.75}],
        "start_ms": 1000,
        "end_ms": 1500,
        "audio_ms": 1500,
        "model": "m:1",
        "device": "npu",
        "gaps": [{"start_ms": 200, "end_ms": 300, "chunks": 1}],
        "duplicates": 2,
        "reason": "",
        "latency_ms": 150,
        "stability": None,
        "event_ms": None,
        "shed": [],
        "timing": None,
    }


@pytest.mark.parametrize("captured_ms", [None, 6], ids=["no clock", "ahead of the clock"])
def test_where_capture_is_not_known_there_is_no_latency(captured_ms: int | None) -> None:
    heard = Heard("clip", 0, 8_000, 0, captured_ms=captured_ms)
    result = event_to_result(Final(0, 0, "", (), 1.0, 0, 0), heard, MadeBy("m", "cpu"))
    assert json.loads(result_to_json(result, now_ms=5))["latency_ms"] is None


def test_clean_audio_has_the_headers_of_audio() -> None:
    output = enhanced_output(EnhancedChunk("s", 4, 48_000, True, b"\x01\x02", 77, 500, 9_600), "clean")
    assert output[:3] == ("clean", b"s", b"\x01\x02")
    assert output.timestamp_ms == 77
    assert output.headers == [
        ("encoding", b"LINEAR16"),
        ("sample_rate_hertz", b"48000"),
        ("channels", b"1"),
        ("sequence", b"4"),
        ("end_of_stream", b"1"),
        ("incarnation", b"500"),
        ("start_sample", b"9600"),
    ]


def test_a_dead_letter_is_the_original_record_with_the_reason_in_headers() -> None:
    letter = DeadLetter("wire", "?", "AudioError", "no key", b"raw", None, "audio", 2, 9, [("a", b"1")])
    output = dead_letter_output(letter, "dlt")
    assert output[:3] == ("dlt", None, b"raw")
    assert output.headers == [
        ("a", b"1"),
        ("dlt.stage", b"wire"),
        ("dlt.reason", b"no key"),
        ("dlt.exception", b"AudioError"),
        ("dlt.topic", b"audio"),
        ("dlt.partition", b"2"),
        ("dlt.offset", b"9"),
    ]


def test_nulls_that_no_producer_can_write_become_empty_and_are_named() -> None:
    letter = DeadLetter("wire", "", "AudioError", "no key", None, None, "audio", 2, 9, [("seq", None)])
    output = dead_letter_output(letter, "dlt")
    assert output.value == b""
    assert output.headers[0] == ("seq", b"")
    assert output.headers[-1] == ("dlt.nulls", b"seq,value")
