"""Plays audio files into Kafka as live sessions, all at the same time and at their own speed.

python -m service.produce samples/*.wav --bootstrap-servers 127.0.0.1:19092
"""

import argparse
import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
from kafka import KafkaProducer
from kafka.errors import KafkaError

from model_runtime.audio import Audio
from model_runtime.decode import ENCODINGS, decode_file, encode_linear16
from model_runtime.errors import AudioError
from service.wire import ChunkHeaders, encode_headers

DEFAULT_BOOTSTRAP_SERVERS = "127.0.0.1:19092"


class Recording(NamedTuple):
    """Audio to be played under a session's id."""

    session: str
    audio: Audio


class Piece(NamedTuple):
    """One record to send: due_ms after the start; its first sample is captured at captured_ms after the start."""

    due_ms: float
    session: str
    captured_ms: float
    payload: bytes
    headers: list[tuple[str, bytes]]


def cut(
    recording: Recording, chunk_ms: int, encoding: str, speed: float, extra: Sequence[tuple[str, bytes]] = ()
) -> Iterator[Piece]:
    """Gives a recording's records: each is due when its last sample has been captured; the last one ends the stream.

    With speed 0 all are due at once and were captured as if the recording had just ended. Each has the `extra` headers.
    """
    samples, rate_hz = recording.audio
    size = max(1, round(rate_hz * chunk_ms / 1000))
    count = max(1, -(-len(samples) // size))
    for sequence in range(count):
        first, last = sequence * size, min(len(samples), (sequence + 1) * size)
        captured_ms, due_ms = (1000 * position / rate_hz for position in (first, last))
        if speed:
            captured_ms, due_ms = captured_ms / speed, due_ms / speed
        else:
            captured_ms, due_ms = captured_ms - 1000 * len(samples) / rate_hz, 0.0
        headers = ChunkHeaders(encoding, rate_hz, 1, sequence, sequence == count - 1)
        payload = _ENCODERS[encoding](samples[first:last])
        yield Piece(due_ms, recording.session, captured_ms, payload, [*encode_headers(headers), *extra])


def play(
    recordings: Sequence[Recording],
    bootstrap_servers: str,
    topic: str,
    chunk_ms: int = 100,
    encoding: str = "LINEAR16",
    speed: float = 1.0,
    extra: Sequence[tuple[str, bytes]] = (),
) -> int:
    """Plays recordings at the same time and gives the number of records, all of which have been acknowledged.

    Raises:
        KafkaError: a record was not acknowledged.
    """
    pieces = [cut(recording, chunk_ms, encoding, speed, extra) for recording in recordings]
    futures = []
    producer = KafkaProducer(
        bootstrap_servers=bootstrap_servers, acks="all", enable_idempotence=True, allow_auto_create_topics=False
    )
    try:
        start_s = time.time()
        for piece in merge(*pieces, key=lambda piece: piece.due_ms):
            time.sleep(max(0.0, start_s + piece.due_ms / 1000 - time.time()))
            futures.append(
                producer.send(
                    topic,
                    piece.payload,
                    key=piece.session.encode(),
                    headers=piece.headers,
                    timestamp_ms=round(start_s * 1000 + piece.captured_ms),
                )
            )
        for future in futures:
            future.get(timeout=60)
    finally:
        producer.close(timeout=10)
    return len(futures)


def session_names(paths: Sequence[Path], name: str | None) -> list[str]:
    """Gives one id per file: its name without the ending, or the one that was asked for; numbered where they clash."""
    names: list[str] = []
    for path in paths:
        wanted = unique = name or path.stem
        number = 1
        while unique in names:
            number += 1
            unique = f"{wanted}-{number}"
        names.append(unique)
    return names


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 all played, 1 Kafka could not take it, 2 a file or an argument is wrong."""
    parser = argparse.ArgumentParser("python -m service.produce", description="Plays audio files into Kafka.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="WAV, FLAC, Ogg, MP3")
    parser.add_argument("--bootstrap-servers", default=DEFAULT_BOOTSTRAP_SERVERS, help="default: %(default)s")
    parser.add_argument("--topic", default="speech.audio", help="default: %(default)s")
    parser.add_argument("--speed", type=float, default=1.0, help="1 as it was spoken, 2 twice as fast, 0 at once")
    parser.add_argument("--chunk-ms", type=int, default=100, help="audio in one record, default: %(default)s ms")
    parser.add_argument("--encoding", choices=ENCODINGS, default="LINEAR16", help="default: %(default)s")
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a further header of each record, such as tentative_end_ms=300; can be given again",
    )
    parser.add_argument("--session", help="the session's id; default: the file's name without its ending")
    args = parser.parse_args(argv)
    if args.speed < 0 or args.chunk_ms < 1:
        parser.error("--speed must be 0 or more, --chunk-ms 1 or more")
    extra = [(name, value.encode()) for name, _, value in (header.partition("=") for header in args.header)]
    if not all(name and value for name, value in extra):
        parser.error(f"--header must be NAME=VALUE, got {args.header}")
    try:
        audios = [decode_file(path) for path in args.files]
    except AudioError as error:
        print(error, file=sys.stderr)
        return 2
    names = session_names(args.files, args.session)
    recordings = [Recording(name, audio) for name, audio in zip(names, audios, strict=True)]
    try:
        count = play(recordings, args.bootstrap_servers, args.topic, args.chunk_ms, args.encoding, args.speed, extra)
    except KafkaError as error:
        print(f"{args.topic} on {args.bootstrap_servers}: {error}", file=sys.stderr)
        return 1
    print(f"{len(recordings)} sessions, {count} records: {', '.join(names)}")
    return 0


def _encode_float32(samples: np.ndarray) -> bytes:
    return bytes(samples.astype("<f4").tobytes())


def _encode_g711(subtype: str) -> Callable[[np.ndarray], bytes]:
    def encode(samples: np.ndarray) -> bytes:
        buffer = io.BytesIO()
        soundfile.write(buffer, samples, 8000, format="RAW", subtype=subtype)
        return buffer.getvalue()

    return encode


_ENCODERS: dict[str, Callable[[np.ndarray], bytes]] = {
    "LINEAR16": encode_linear16,
    "FLOAT32": _encode_float32,
    "MULAW": _encode_g711("ULAW"),
    "ALAW": _encode_g711("ALAW"),
}


if __name__ == "__main__":
    sys.exit(main())
