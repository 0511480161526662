"""Headers and keys of audio records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_runtime.errors import AudioError
from service.wire import AudioDefaults, ChunkHeaders, decode_headers, decode_result, decode_session, encode_headers

DEFAULTS = AudioDefaults()


@given(
    st.builds(
        ChunkHeaders,
        st.sampled_from(["LINEAR16", "FLOAT32", "MULAW", "ALAW"]),
        st.integers(0, 10**9),
        st.integers(0, 99),
        st.integers(-1, 10**17),
        st.booleans(),
    )
)
def test_what_is_encoded_is_decoded(headers: ChunkHeaders) -> None:
    assert decode_headers(encode_headers(headers), DEFAULTS) == headers


def test_only_what_says_something_is_encoded() -> None:
    assert encode_headers(ChunkHeaders("ALAW", 8_000, 2)) == [
        ("encoding", b"ALAW"),
        ("sample_rate_hertz", b"8000"),
        ("channels", b"2"),
    ]


def test_the_last_header_of_a_name_counts_and_strange_ones_do_not() -> None:
    headers = [("sequence", b"1"), ("trace", b"\xff"), ("sequence", b"2")]
    assert decode_headers(headers, DEFAULTS) == ChunkHeaders("LINEAR16", 16_000, 1, 2)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("end_of_stream", b"yes", "header end_of_stream must be 1 or 0, got b'yes'"),
        ("encoding", b"\xff", r"header encoding must be ASCII, got b'\\xff'"),
        ("channels", b"two", "header channels must be a whole number in ASCII digits, got b'two'"),
    ],
)
def test_a_header_that_cannot_be_read_is_named(name: str, value: bytes, message: str) -> None:
    with pytest.raises(AudioError, match=message):
        decode_headers([(name, value)], DEFAULTS)


def test_a_key_is_a_session() -> None:
    assert decode_session("wagen-12/ü".encode()) == "wagen-12/ü"


@pytest.mark.parametrize("key", [None, b"", b"\xff"])
def test_a_key_that_is_no_session_is_refused(key: bytes | None) -> None:
    with pytest.raises(AudioError, match="key must"):
        decode_session(key)


def test_a_result_is_a_json_object() -> None:
    assert decode_result(b'{"type":"final","words":[]}') == {"type": "final", "words": []}
