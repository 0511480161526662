"""Measures Whisper against faster-whisper (CTranslate2) on the same weights, in one run, into docs/whisper.md.

    deploy/whisper.sh
    python -m venv .venv-faster-whisper
    .venv-faster-whisper/bin/python -m pip install faster-whisper==1.2.1
    python -m benchmarks.whisper [--rounds 5] [--threads 1] [--shared ../shared]

Both hear the same samples, each clip padded to a window of 30 s, and search greedily. The rows of a precision and batch
size are of processes that take turns, pass by pass, so that whatever else the machine does hits both alike.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.page import put_table
from benchmarks.read_speech import RATE_HZ, Recording, load_recordings, words
from model_runtime.card import load_card
from pipelines.text_errors import word_errors

ROOT = Path(__file__).resolve().parents[1]
_COMMAND = "python -m benchmarks.whisper"
_HEAD = """| | batch | CPU s per s of audio | of faster-whisper | peak memory, MB | words that differ | word errors |
|---|---|---|---|---|---|---|"""
# What is compared: the peer's precision, and this project's variant of the same size.
_PRECISIONS = (("float32", "float32"), ("int8", "dynamic"))


class Passes(NamedTuple):
    """What a contender did: texts of all clips; the median pass in CPU seconds; its peak memory."""

    texts: list[str]
    cpu_s: float
    peak_mb: float


class Contender(NamedTuple):
    """What runs, under which Python."""

    python: str
    engine: str
    model: str
    variant: str


@contextmanager
def running(contender: Contender, batch: int, threads: int, clips: Path) -> Iterator["subprocess.Popen[str]"]:
    """Runs a contender's process, loaded and warm."""
    settings = {**contender._asdict(), "batch": batch, "threads": threads, "clips": str(clips)}
    command = [contender.python, "-m", "benchmarks.whisper_worker", json.dumps(settings)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        _answer(worker)
        yield worker
        worker.stdin.close()


def _answer(worker: "subprocess.Popen[str]") -> str:
    line = worker.stdout.readline()
    if not line:
        raise RuntimeError(f"{worker.args[0]} has ended with exit code {worker.wait()}; its reason stands above")
    return line


def take_turns(contenders: Sequence[Contender], batch: int, threads: int, clips: Path, rounds: int) -> list[Passes]:
    """Runs passes over all clips, each contender in turn."""
    with ExitStack() as stack:
        workers = [stack.enter_context(running(one, batch, threads, clips)) for one in contenders]
        passes: list[list[dict]] = [[] for _ in workers]
        for _ in range(rounds):
            for worker, done in zip(workers, passes, strict=True):
                print(file=worker.stdin, flush=True)
                done.append(json.loads(_answer(worker)))
    return [
        Passes(done[-1]["texts"], statistics.median(one["cpu_s"] for one in done), done[-1]["peak_mb"])
        for done in passes
    ]


def row(name: str, batch: int, ours: Passes, peer: Passes, recordings: Sequence[Recording]) -> str:
    """Gives a row of the table; words that differ are counted with case and marks, word errors in read speech."""
    seconds = sum(len(recording.samples) for recording in recordings) / RATE_HZ
    differ = word_errors(peer.texts, [text or "-" for text in ours.texts])
    read = [(words(one.text), words(text)) for one, text in zip(recordings, ours.texts, strict=True) if one.is_read]
    errors = word_errors(*([" ".join(side) for side in sides] for sides in zip(*read, strict=True)))
    return (
        f"| {name} | {batch} | {ours.cpu_s / seconds:.3f} | {ours.cpu_s / peer.cpu_s:.2f} | {ours.peak_mb:.0f} "
        f"| {differ.edits} of {differ.reference_length} | {errors.edits} of {errors.reference_length} |"
    )


def main() -> int:
    """Measures, prints and writes the table."""
    parser = argparse.ArgumentParser(_COMMAND, description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="whisper-tiny.en", help="name of an imported model")
    parser.add_argument("--weights", type=Path, help="folder with its model.bin; by default what was fetched")
    parser.add_argument("--peer", default=str(ROOT / ".venv-faster-whisper/bin/python"), help="default: %(default)s")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "whisper.md")
    options = parser.parse_args()
    if not Path(options.peer).is_file():
        parser.error(f"{options.peer} is not there\n{__doc__}")
    weights = options.weights or Path.home() / ".cache/unison-speech/weights" / load_card(options.model).name
    recordings = load_recordings(options.shared)
    lines = [_HEAD]
    with tempfile.TemporaryDirectory() as folder:
        clips = Path(folder) / "clips.npz"
        np.savez(clips, *(recording.samples for recording in recordings))
        for peer_variant, variant in _PRECISIONS:
            for batch in options.batches:
                peer = Contender(options.peer, "faster-whisper", str(weights), peer_variant)
                own = Contender(sys.executable, "unison", options.model, variant)
                theirs, ours = take_turns((peer, own), batch, options.threads, clips, options.rounds)
                lines += [row(f"faster-whisper, {peer_variant}", batch, theirs, theirs, recordings)]
                lines += [row(f"unison-speech, {variant}", batch, ours, theirs, recordings)]
                print(*lines[-2:], sep="\n", flush=True)
    put_table(options.page, _COMMAND, "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
