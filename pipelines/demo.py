"""The demonstration: live sessions through Kafka and the streaming job, and the batch job on the same recordings.

    python -m pipelines.demo

Starts a broker of its own and the streaming job, plays the recordings in `samples/` at the same time and in real time,
shows what is recognised as it is said, then runs the batch job and shows that both say the same. Where Whisper has been
imported, it does so once more with sentences. Whatever happens, it stops what it started.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

import msgspec
import numpy as np
from kafka.errors import KafkaError

from model_runtime.audio import Audio
from model_runtime.card import USER_MODELS
from model_runtime.decode import decode_file
from pipelines.local_jobs import (
    ROOT,
    LocalJobError,
    check_alive,
    create_topics,
    free_port,
    last_words,
    running_broker,
    running_streaming_job,
)
from service.produce import Recording, play
from service.tail import Display, Fields, Follower
from service.wire import decode_result
from transforms.kafka_config import TopicsConfig

_TOPICS = TopicsConfig()
_READY_S = 180
_AFTER_S = 60
_PROBE = "demo-probe"


class Act(NamedTuple):
    """Recordings (a folder with a manifest.jsonl), and what both jobs are told.

    They run the same recipe: the answers are then the same to the letter.
    """

    samples: Path
    settings: dict[str, str]
    streaming_settings: dict[str, str]


_WORDS = Act(ROOT / "samples", {"recipe": "streaming"}, {})
_SENTENCES = Act(
    ROOT / "samples" / "sentences",
    {"recipe": "sentences", "route.variants": "[dynamic, float32]"},
    {"results.enhanced": "false"},
)
_WHISPER = USER_MODELS / "whisper-tiny.en" / "card.yaml"


class Transcript(NamedTuple):
    """What a job says about a recording: the text, and its words with their times."""

    text: str
    words: list[Fields]


class _Live(NamedTuple):
    """The streaming job as it runs: its results, its process, and the folder of its log."""

    follower: Follower
    job: "subprocess.Popen[bytes]"
    folder: Path


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 both jobs agree, 1 they do not or something failed, 130 stopped by Ctrl-C."""
    parser = argparse.ArgumentParser("python -m pipelines.demo", description="Shows both jobs on the same recordings.")
    parser.add_argument("--samples", type=Path, help="folder with a manifest.jsonl, instead of the project's own")
    parser.add_argument("--port", type=int, help="port of the broker; default: a free one")
    parser.add_argument("--speed", type=float, default=1.0, help="1 as it was spoken, 2 twice as fast")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        acts = [_WORDS] if args.samples is None else [_WORDS._replace(samples=args.samples)]
        if args.samples is None and _WHISPER.is_file():
            acts.append(_SENTENCES)
        elif args.samples is None:
            _note(f"no sentences: deploy/whisper.sh makes {_WHISPER.parent.name}")
        return max([_run(act, args.port or free_port(), args.speed) for act in acts])
    except LocalJobError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130


def _run(act: Act, port: int, speed: float) -> int:
    manifest = act.samples / "manifest.jsonl"
    rows = [msgspec.json.decode(line) for line in manifest.read_bytes().splitlines()]
    paths = [act.samples / row["audio_filepath"] for row in rows]
    recordings = [Recording(path.stem, decode_file(path)) for path in paths]
    said = {path.stem: row["text"] for path, row in zip(paths, rows, strict=True)}
    servers = f"127.0.0.1:{port}"
    with ExitStack() as started:
        folder = Path(started.enter_context(tempfile.TemporaryDirectory(prefix="unison-demo-")))
        began = time.monotonic()
        _note(f"starting a Kafka broker and the streaming job, recipe {act.settings['recipe']}")
        started.enter_context(running_broker(port, folder))
        create_topics(servers, _TOPICS)
        job = started.enter_context(running_streaming_job(servers, folder, act.settings | act.streaming_settings))
        follower = Follower(servers, _TOPICS.results, from_beginning=True)
        started.callback(follower.close)
        live = _Live(follower, job, folder)
        _wait_until_ready(live, servers)
        _note(f"ready after {time.monotonic() - began:.1f} s; playing {len(recordings)} recordings at the same time")
        streaming = _play_and_follow(live, recordings, servers, speed)
    with tempfile.TemporaryDirectory(prefix="unison-demo-") as output:
        _note("running the batch job on the same recordings")
        batch = _batch(manifest, Path(output), act.settings)
    return _compare(said, streaming, batch)


def _wait_until_ready(live: _Live, servers: str) -> None:
    """Waits until a session of no audio has passed through the whole job."""
    play([Recording(_PROBE, Audio(np.zeros(0, np.float32), 16_000))], servers, _TOPICS.audio, speed=0)
    for value in live.follower.results(_READY_S):
        if value is not None and decode_result(value)["type"] == "session_end":
            return
        check_alive(live.job, live.folder)
    raise LocalJobError(f"the streaming job was not ready within {_READY_S} s: {last_words(live.folder)}")


def _play_and_follow(live: _Live, recordings: Sequence[Recording], servers: str, speed: float) -> dict[str, Transcript]:
    """Plays the recordings, shows what is said about them as it comes, and gives the transcripts."""
    problems: list[Exception] = []
    player = threading.Thread(target=_played, args=(recordings, servers, speed, problems), daemon=True)
    player.start()
    display = Display(shutil.get_terminal_size().columns if sys.stdout.isatty() else None)
    finals: dict[str, list[Fields]] = {recording.session: [] for recording in recordings}
    waiting = set(finals)
    seconds = max(len(audio.samples) / audio.sample_rate_hz for _, audio in recordings)
    for value in live.follower.results(seconds / speed + _AFTER_S):
        if problems:
            raise LocalJobError(f"the recordings could not be played: {problems[0]}")
        if value is None:
            check_alive(live.job, live.folder)
            continue
        result: Fields = decode_result(value)
        sys.stdout.write(display.show(result))
        sys.stdout.flush()
        if result["type"] == "final":
            finals[result["session"]].append(result)
        elif result["type"] == "session_end":
            waiting.discard(result["session"])
        if not waiting:
            return {session: _joined(results) for session, results in finals.items()}
    raise LocalJobError(f"no end was seen of: {', '.join(sorted(waiting))}; {last_words(live.folder)}")


def _played(recordings: Sequence[Recording], servers: str, speed: float, problems: list[Exception]) -> None:
    try:
        # 16 bits would round the mean of two channels; so both jobs hear the same samples.
        play(recordings, servers, _TOPICS.audio, encoding="FLOAT32", speed=speed)
    except KafkaError as error:
        problems.append(error)


def _joined(finals: list[Fields]) -> Transcript:
    finals = sorted(finals, key=lambda final: int(final["utterance"]))
    text = " ".join(final["text"] for final in finals if final["text"])
    return Transcript(text, [word for final in finals for word in final["words"]])


def _batch(manifest: Path, output: Path, settings: dict[str, str]) -> dict[str, Transcript]:
    command = [sys.executable, "-m", "pipelines.batch"]
    everything = {"input": str(manifest), "output": str(output)} | settings
    command += [f"--set={field}={value}" for field, value in everything.items()]
    # Its own session: a Ctrl-C reaches this process alone, which then stops everything in good order.
    job = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        if job.wait():
            raise LocalJobError("the batch job has failed; its reason stands above")
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGTERM)
            job.wait()
    rows = map(msgspec.json.decode, (output / "results.jsonl").read_bytes().splitlines())
    return {Path(row["audio_filepath"]).stem: Transcript(row["pred_text"], row["words"]) for row in rows}


def _compare(spoken: dict[str, str], live: dict[str, Transcript], batch: dict[str, Transcript]) -> int:
    """Prints what was spoken and what both jobs heard; they agree if all words and their times are the same."""
    rows: list[tuple[str, ...]] = [("recording", "spoken", "streaming", "batch", "")]
    agree = [live.get(name) == batch.get(name) is not None for name in spoken]
    for (name, text), same in zip(spoken.items(), agree, strict=True):
        heard = [job[name].text if name in job else "(nothing)" for job in (live, batch)]
        rows.append((name, text, *heard, "same" if same else "DIFFERENT"))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print(f"\n{sum(agree)} of {len(agree)} recordings: both jobs say the same words at the same times")
    if not any(transcript.text for transcript in live.values()):
        print("nothing was recognised at all")
        return 1
    return 0 if all(agree) else 1


def _note(text: str) -> None:
    print(f"== {text}", flush=True)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
