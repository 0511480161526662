"""What every peer does with a record: a few lines around the engine, as somebody would write who needs no more."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks.peers.no_model import NoModel
from model_runtime import Event, Final, Partial, SpeechEngine
from model_runtime.decode import decode_pcm
from service.wire import AudioDefaults, decode_headers
from transforms.milliseconds import samples_to_ms

CHECKPOINT_S = 1.0
"""How often a candidate that keeps checkpoints makes one."""


class JobOptions(NamedTuple):
    """What a candidate is told: brokers, topics, a recipe or `none`, and a folder for whatever it keeps."""

    servers: str
    audio: str
    results: str
    model: str
    folder: Path
    durable: bool


def job_options() -> tuple[JobOptions, list[str]]:
    """Reads the command line of a candidate; gives, besides, what stands there for others."""
    parser = argparse.ArgumentParser()
    for name in ("servers", "audio", "results", "model"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--durable", action="store_true", help="keep what a restart needs")
    args, others = parser.parse_known_args()
    return JobOptions(**vars(args)), others


# Any: the state is whatever the engine has.
def hear(
    engine: SpeechEngine | NoModel, session: str, state: Any, headers: Iterable[tuple[str, bytes]], value: bytes
) -> tuple[Any, list[bytes]]:
    """Takes the next record of a session.

    Args:
        state: None at its first record.

    Returns:
        Its state from now on, None where it has ended; and the JSON of each result.
    """
    said = decode_headers(headers, AudioDefaults())
    if state is None:
        state = engine.start(said.sample_rate_hz)
    state, events = engine.step(state, decode_pcm(value, said.encoding, said.channels, said.sample_rate_hz))
    if said.end_of_stream:
        events = events + engine.finish(state)[1]
    results = [_json(session, event, said.sample_rate_hz) for event in events if isinstance(event, Partial | Final)]
    if not said.end_of_stream:
        return state, results
    return None, [*results, msgspec.json.encode({"session": session, "type": "session_end"})]


def _json(session: str, event: Event, rate_hz: int) -> bytes:
    return msgspec.json.encode(
        {
            "session": session,
            "type": type(event).__name__.lower(),
            "utterance": event.utterance,
            "revision": event.revision,
            "text": event.text,
            "start_ms": samples_to_ms(event.start_samples, rate_hz),
            "end_ms": samples_to_ms(event.end_samples, rate_hz),
        }
    )
