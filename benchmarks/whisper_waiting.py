"""Measures how long other sessions' chunks wait while utterances are transcribed, into docs/whisper.md.

    python -m benchmarks.whisper_waiting [--transcriptions 1 8] [--talkers 1 9] [--seconds 90]

Talkers, who fall silent after 25 s, one 0.3 s after the other, so that each utterance can begin a bundle of its own,
and listeners with faint noise, live through a real broker and the job on Prism. What a listener's chunk waits is the
time from the capture of its last sample to its clean audio; chunks that came while an utterance was being transcribed
(from a talker's speech_end to its final) are told from the others.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from kafka import KafkaConsumer

from benchmarks.page import put_table
from benchmarks.read_speech import RATE_HZ, load_recordings
from model_runtime import Audio
from pipelines.local_jobs import create_topics, free_port, running_broker, running_streaming_job
from service.produce import Recording, play
from service.tail import Follower
from transforms.kafka_config import TopicsConfig

ROOT = Path(__file__).resolve().parents[1]
_COMMAND = "python -m benchmarks.whisper_waiting"
_LISTENERS = 4
_SPEECH_S = 25
_START_S = 300
_LATER_SAMPLES = 4_800
_RECIPE = """
name: waiting
denoise: {model: unison-denoise}
vad: {model: unison-vad}
asr: {model: whisper-tiny.en, hears: original, agreement_interval_ms: INTERVAL}
endpoint: {silence_after_speech_ms: 1500, max_utterance_ms: 28000}
"""
_HEAD = """| transcriptions | utterances that end together | chunks wait, ms: nothing is transcribed | meanwhile | \
longest | last final after, s |
|---|---|---|---|---|---|"""


class Heard(NamedTuple):
    """Clean audio of a listener: when it came (Unix s), and what it had waited."""

    at_s: float
    waited_ms: float


class _Listening(threading.Thread):
    """Reads clean audio as it comes, until it is stopped."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.heard: list[Heard] = []
        self._stopped = threading.Event()
        self._consumer = KafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest")

    def run(self) -> None:
        while not self._stopped.is_set():
            for records in self._consumer.poll(timeout_ms=100).values():
                now_s = time.time()
                for record in records:
                    end_ms = record.timestamp + len(record.value) / 2 * 1000 / RATE_HZ
                    if record.value and record.key.startswith(b"listener"):
                        self.heard.append(Heard(now_s, now_s * 1000 - end_ms))

    def stop(self) -> list[Heard]:
        self._stopped.set()
        self.join()
        self._consumer.close()
        return self.heard


def talk(shared: Path) -> np.ndarray:
    """Gives read speech without long pauses, and silence behind it."""
    clips = [recording.samples for recording in load_recordings(shared) if recording.is_read]
    speech = np.concatenate([*clips, *clips])[: _SPEECH_S * RATE_HZ]
    return np.concatenate([speech, np.zeros(3 * RATE_HZ, np.float32)])


def measure(transcriptions: int, talkers: int, seconds: int, interval_ms: int, speech: np.ndarray) -> str:
    """Runs the job; gives a row of the table."""
    noise = np.random.default_rng(5).normal(0, 0.001, seconds * RATE_HZ).astype(np.float32)
    recordings = [
        Recording(f"talker-{number}", Audio(np.concatenate([noise[: number * _LATER_SAMPLES], speech]), RATE_HZ))
        for number in range(talkers)
    ]
    recordings += [Recording(f"listener-{number}", Audio(noise, RATE_HZ)) for number in range(_LISTENERS)]
    topics = TopicsConfig()
    with tempfile.TemporaryDirectory(prefix="unison-waiting-") as name:
        folder, port = Path(name), free_port()
        servers, recipe = f"127.0.0.1:{port}", folder / "recipe.yaml"
        recipe.write_text(_RECIPE.replace("INTERVAL", str(interval_ms)))
        settings = {"recipe": str(recipe), "transcriptions": str(transcriptions)}
        settings["route.variants"] = "[dynamic, float32]"
        with running_broker(port, folder):
            create_topics(servers, topics)
            with running_streaming_job(servers, folder, settings):
                follower = Follower(servers, topics.results, from_beginning=True)
                warm_up = Recording("warm-up", Audio(speech[: 4 * RATE_HZ], RATE_HZ))
                play([warm_up], servers, topics.audio, speed=0)
                _follow(follower, 1, _START_S)
                listening = _Listening(servers, topics.enhanced)
                listening.start()
                player = threading.Thread(target=play, args=(recordings, servers, topics.audio), daemon=True)
                player.start()
                begun, ended = _follow(follower, talkers + _LISTENERS, seconds + _START_S)
                player.join()
                heard = listening.stop()
                follower.close()
    return row(transcriptions, talkers, heard, begun, ended)


def row(transcriptions: int, talkers: int, heard: list[Heard], begun: list[float], ended: list[float]) -> str:
    """Gives the row; begun, ended: when transcriptions began, all at once, and when their finals came."""
    first_s, last_s = min(begun), max(ended)
    during = [one.waited_ms for one in heard if first_s <= one.at_s <= last_s + 0.2]
    # The first chunks find everything cold.
    others = [one.waited_ms for one in heard[len(heard) // 20 :] if not first_s <= one.at_s <= last_s + 0.2]
    spans = [f"p50 {np.percentile(waits, 50):.0f}, p99 {np.percentile(waits, 99):.0f}" for waits in (others, during)]
    return f"| {transcriptions} | {talkers} | {spans[0]} | {spans[1]} | {max(during):.0f} | {last_s - first_s:.1f} |"


def _follow(follower: Follower, sessions: int, timeout_s: float) -> tuple[list[float], list[float]]:
    """Waits until so many sessions have ended; gives when utterances had ended and when their finals came."""
    begun: list[float] = []
    ended: list[float] = []
    over = 0
    for value in follower.results(timeout_s):
        result = json.loads(value) if value is not None else {"type": "none"}
        begun += [time.time()] * (result["type"] == "speech_end")
        ended += [time.time()] * (result["type"] == "final")
        over += result["type"] == "session_end"
        if over == sessions:
            return begun, ended
    raise TimeoutError(f"{over} of {sessions} sessions ended within {timeout_s} s")


def main() -> int:
    """Measures, prints and writes the table."""
    parser = argparse.ArgumentParser(_COMMAND, description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--transcriptions", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--talkers", type=int, nargs="+", default=[1, 9])
    parser.add_argument("--seconds", type=int, default=90, help="what listeners last; longer than all transcriptions")
    parser.add_argument("--agreement-interval-ms", type=int, default=0, help="partials on the way, too")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "whisper.md")
    options = parser.parse_args()
    speech, lines = talk(options.shared), [_HEAD]
    for talkers in options.talkers:
        for transcriptions in options.transcriptions:
            interval_ms = options.agreement_interval_ms
            lines.append(measure(transcriptions, talkers, options.seconds, interval_ms, speech))
            print(lines[-1], flush=True)
    put_table(options.page, _COMMAND, "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
