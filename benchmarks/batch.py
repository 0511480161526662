"""Measures the batch job against a plain loop and against RunInference, and writes docs/batch_speed.md.

    python -m benchmarks.batch [--minutes 10 120] [--batch 1 4 16] [--rounds 1] [--files short long]

Each contender runs in a process of its own, all of a row by turns, so a busy machine hits all of them. What has been
measured is kept in --measured and not measured again, and the page shows all of it; delete that file to begin anew.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import soundfile

from benchmarks.batch_contender import SPANS
from benchmarks.process_meter import Cost, measure_command
from benchmarks.speed import RATE_HZ, ROOT, heard_spans, recordings, repeated
from model_runtime import SpeechEngine
from model_runtime.tflite import RUNTIME

_LONG_S = 300


class Setting(NamedTuple):
    """One cell of the tables. files: short or long; batch, workers: 0 where the contender has none."""

    minutes: float
    files: str
    contender: str
    batch: int
    workers: int

    @property
    def title(self) -> str:
        """What the tables call it."""
        names = {
            "plain": "plain loop",
            "naive": "RunInference, 15 lines",
            "handler": "RunInference(TFLiteModelHandler)",
        }
        name = names.get(self.contender, f"batch job, {self.workers} worker{'s' * (self.workers > 1)}")
        return name + (f", batch {self.batch}" if self.batch else "")


class Measured(msgspec.Struct):
    """One run of a setting."""

    setting: Setting
    cost: Cost


def settings(minutes: float, files: str, batches: list[int]) -> Iterator[Setting]:
    """Gives all contenders on one input."""
    yield Setting(minutes, files, "plain", 0, 0)
    yield Setting(minutes, files, "naive", 0, 0)
    for batch in batches:
        yield Setting(minutes, files, "handler", batch, 0)
        yield Setting(minutes, files, "job", batch, 1)
        yield Setting(minutes, files, "job", batch, 2)


def prepare(folder: Path, minutes: float, files: str) -> None:
    """Writes so much audio into files of 4 to 8 s, or of five minutes, and beside them what the vad hears in them."""
    clips = repeated(recordings(), minutes * 60)
    if files == "long":
        audio = np.concatenate(clips)
        clips = np.split(audio, range(_LONG_S * RATE_HZ, len(audio), _LONG_S * RATE_HZ))
    engine, known = SpeechEngine.load("batch"), {}
    spans = {}
    for number, clip in enumerate(clips):
        soundfile.write(folder / f"{number:05}.wav", clip, RATE_HZ, subtype="PCM_16")
        key = hash(clip.tobytes())
        if key not in known:
            known[key] = heard_spans(engine.run([clip])[0])
        spans[f"{number:05}.wav"] = known[key]
    (folder / SPANS).write_text(json.dumps(spans))


def measure(todo: list[Setting], rounds: int, path: Path) -> list[Measured]:
    """Measures what is not in the file yet, and gives all that is in it."""
    done = read_measured(path)
    for minutes, files in dict.fromkeys((setting.minutes, setting.files) for setting in todo):
        wanted = [setting for setting in todo if (setting.minutes, setting.files) == (minutes, files)]
        missing = [
            setting
            for round_ in range(rounds)
            for setting in wanted
            if sum(each.setting == setting for each in done) <= round_
        ]
        if not missing:
            continue
        with tempfile.TemporaryDirectory(prefix="unison-batch-") as name:
            folder = Path(name)
            prepare(folder, minutes, files)
            for setting in missing:
                numbers = [str(number) for number in (setting.batch, setting.workers)]
                command = [sys.executable, "-m", "benchmarks.batch_contender", setting.contender, name, *numbers]
                found = Measured(setting, measure_command(command, folder))
                done.append(found)
                with path.open("ab") as file:
                    file.write(msgspec.json.encode(found) + b"\n")
                print(setting.title, minutes, files, found.cost, flush=True)
    return done


def read_measured(path: Path) -> list[Measured]:
    """Gives what earlier runs have measured."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=Measured) for line in lines]


def table(wanted: list[Setting], done: list[Measured]) -> str:
    """Gives the table of one input: medians, and ratios to the plain loop."""
    costs = {
        setting: Cost(
            *map(statistics.median, zip(*(each.cost for each in done if each.setting == setting), strict=True))
        )
        for setting in wanted
    }
    seconds = wanted[0].minutes * 60
    limit = costs[wanted[0]]
    singles = {setting.batch: costs[setting] for setting in wanted if setting.workers == 1}
    lines = [f"### {wanted[0].minutes:g} minutes in {wanted[0].files} files", ""]
    lines += [
        "| | wall clock, s | CPU ms per second of audio | of the plain loop | memory, MB |",
        "|---|---|---|---|---|",
    ]
    for setting, cost in costs.items():
        title = setting.title
        if setting.workers == 2:
            title += f" ({singles[setting.batch].wall_s / cost.wall_s:.2f} times as fast as one)"
        per_second = 1000 * cost.cpu_s / seconds
        ratio = cost.cpu_s / limit.cpu_s
        lines.append(f"| {title} | {cost.wall_s:.1f} | {per_second:.2f} | {ratio:.2f} | {cost.peak_mb:.0f} |")
    return "\n".join([*lines, ""])


def main() -> int:
    """Measures, prints and writes the page; 1 when a contender failed."""
    parser = argparse.ArgumentParser("python -m benchmarks.batch", description=__doc__)
    parser.add_argument("--minutes", type=float, nargs="+", default=[10.0, 120.0], help="audio of each input")
    parser.add_argument("--files", nargs="+", choices=["short", "long"], default=["short", "long"])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 4, 16], help="rows in a call of a model")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--measured", type=Path, default=ROOT / "build" / "batch_speed.jsonl")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "batch_speed.md")
    options = parser.parse_args()
    options.measured.parent.mkdir(parents=True, exist_ok=True)
    todo = [
        setting
        for files in options.files
        for minutes in options.minutes
        for setting in settings(minutes, files, options.batch)
    ]
    try:
        done = measure(todo, options.rounds, options.measured)
    except subprocess.CalledProcessError as error:
        print(error, (error.output or b"").decode(errors="replace"), sep="\n", file=sys.stderr)
        return 1
    inputs: dict[tuple[float, str], list[Setting]] = {}
    for setting in dict.fromkeys(each.setting for each in done):
        inputs.setdefault((setting.minutes, setting.files), []).append(setting)
    page = "\n".join([_introduction(options.rounds), *(table(each, done) for each in inputs.values())])
    print(page)
    options.output.write_text(page, encoding="utf-8")
    return 0


def _introduction(rounds: int) -> str:
    python = f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}"
    return f"""# Speed of the batch job

Written by `python -m benchmarks.batch`. Each row is a process of its own, from its start to its end: imports, loading
of models and decoding of files are included. Medians of {rounds} run{"s" * (rounds > 1)}; CPU time and memory of all
processes together, pages that they share counted once. Recipe `batch`, float32, one thread per graph,
{os.cpu_count()} cores, {RUNTIME.name} {RUNTIME.version}, {python}.
Short files last 4 to 8 s, long ones five minutes; the audio is that of `samples/`, again and again.

The plain loop (`benchmarks/plain_batch.py`) makes the same model calls with bare interpreters and is told where speech
is: no events, no beam search, no checks, no results. "15 lines" is the handler that people write first, with the plain
loop in it. Of a machine that has more to do, wall clock says little: look at the CPU time.
"""


if __name__ == "__main__":
    sys.exit(main())
