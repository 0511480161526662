"""Ranges of topics as they are written."""

import pytest

from model_runtime.errors import ConfigError
from transforms.kafka_range import Edge, KafkaRange, is_range, parse_range


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("kafka:speech.audio@..", KafkaRange("speech.audio", None, None, None)),
        ("kafka:a_b-c/3@5..9", KafkaRange("a_b-c", 3, Edge(offset=5), Edge(offset=9))),
        ("kafka:a@..2026-01-01", KafkaRange("a", None, None, Edge(time_ms=1_767_225_600_000))),
        ("kafka:a@2026-01-01T00:00:00.250Z..", KafkaRange("a", None, Edge(time_ms=1_767_225_600_250), None)),
        ("kafka:a@2026-01-01T02:00+02:00..7", KafkaRange("a", None, Edge(time_ms=1_767_225_600_000), Edge(offset=7))),
    ],
)
def test_a_range_is_read_as_it_is_written(text: str, wanted: KafkaRange) -> None:
    assert (is_range(text), parse_range(text)) == (True, wanted)


@pytest.mark.parametrize(
    "text", ["kafka:a", "kafka:a@5", "kafka:@..", "kafka:a b@..", "kafka:a/x@..", "kafka:a@x..", "kafka:a@-1.."]
)
def test_what_is_no_range_is_refused_with_the_form_or_the_edge(text: str) -> None:
    with pytest.raises(ConfigError, match=r"must be kafka:TOPIC@FROM\.\.TO|is neither an offset nor"):
        parse_range(text)
