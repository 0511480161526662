"""Measures the engine and both jobs against a plain loop, in one run, and writes docs/speed.md.

python -m benchmarks.speed [--minutes 10] [--rounds 5] [--output docs/speed.md] [--no-kafka]
"""

import argparse
import platform
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.measure import interleaved
from benchmarks.plain_loop import PlainLoop, Span
from benchmarks.streaming_load import measure_streaming_job
from model_runtime import Audio, Event, Final, RouteConfig, SpeechBegin, SpeechEngine
from model_runtime.decode import decode_file
from model_runtime.resample import Resampler
from model_runtime.tflite import RUNTIME
from pipelines import batch

ROOT = Path(__file__).resolve().parents[1]
RATE_HZ = 16_000
_CHUNK_SAMPLES = 1_600
_STEP_SECONDS = 60
_ON_THE_ENGINE = """The loop is told where utterances end. The engine's recogniser must hear the silence that says so,
0.8 s for each utterance: in the recordings of `samples/` 11.9 calls a second of audio instead of
9.3, 0.06 of the ratio. The rest of what lies between the two is Python by block, which costs half
as much again between the calls of the models as it does alone: they drive it out of the cache.

What was done about it, by the shortest of 30 runs of each part on a machine with other work; no byte of an event or
of a frozen state differs:

| part | before | after |
|---|---|---|
| beam search of a block: scores go from frame to frame, a run of blanks makes hypotheses once | 33 µs | 22 µs |
| the voice activity of a block: all of its frames in one call, until something changes | 8 µs | 2 µs |
| overlap-add of four frames: two additions instead of four | 13 µs | 8 µs |
| logarithms of the spectrum, in place | 9 µs | 5 µs |

The whole, old and new by turns in two processes, the shortest of 25 runs of each chunk, float32: 1.44 of the loop
before, 1.28 to 1.39 after, as the same loop took 7.3 ms in one process and 7.9 ms in the other.

A batch job's CPU time beyond the engine's does not grow with the audio: the process of the models starts and loads
them, and Beam translates and sets up the job's steps. Beam's DirectRunner is not asked, as it translates every job
for Prism first and tries to download that; one file of results needs no reshuffle; the process of the models imports
no more than it needs. On 10 minutes of audio the job's own process went from 0.67 to 1.05 s of CPU time to 0.38 to
0.47 s (four runs each, a machine with other work), and the ratio, a run after the other, from 1.31 to 1.19 (float32)
and from 1.27 to 1.17 (int8).

Freezing and thawing copies and sums up 50 kB by session and chunk, each of them, a third of its time; the rest is 21
arrays in and out of MessagePack.
"""
_ON_THE_STREAMING_JOB = """The engine alone hears 100 ms a call. It is measured while the job runs, so whatever else the
machine does makes both dearer. A job that is behind hears several chunks of a session a call, which costs less than one
a call: its ratio falls as its latency grows, and neither is that of a job that keeps up. Latency in seconds means that
the machine could not keep up with 20 sessions.

What was done about the job's cost, each step with those before it. All rows were measured on a machine that had two
trainings and more to do, one to three runs each, so they tell the direction and not the size:

| step | ratio to the engine |
|---|---|
| chunk by chunk: a read and two writes of state, a call of the models; rounds of 50 ms | 3.1 to 4.1 |
| cheaper rounds and one element per session and round (below) | 2.3 to 2.9 |
| rounds that go on while the models are busy | 1.7 to 2.6 |
| brief answers to Prism's progress requests, the job behind | 1.2 to 1.6 |
| the same at a third of the speed, the job keeping up | 1.9 to 2.1 |

Cheaper rounds: each reads once, at its end; a bundle's results leave in one request (`linger_ms`); records are encoded
where they are written; MessagePack instead of rows between steps; timers are set only when they are due sooner; 80 ms.

Without any model a chunk costs the job's own Python 27 µs in turns of 25 chunks and 53 µs in turns of one: 4 to 7 µs
for its headers, 4 to 8 µs for the coder between two steps, 20 to 38 µs for its session's turn (CPU time of the
thread, reading by kafka-python is 22 µs more). The rest is Beam and Prism, by bundle and not by chunk. Without a model,
all of it is measured beside other stream processors (`python -m benchmarks.peers --models none`), and
[that page](peers.md) also says what each of these was worth:

* Prism span in a loop while it waited for a worker's answer (`deploy/prism.sh` mends it).
* The worker let it wait: at the end of each bundle it waited for a thread that slept, and wrote thirty metrics, most of
  them Beam's own (`pipelines/lean_worker.py`).
* Rounds of reading lasted 80 ms whether something came or not; now they end when there is something to hand on.
* States that a worker has written stay with it, and those of a bundle are written together.

Not measured: several sessions under one key (fewer state requests, but the state of all is written for each).
"""


def recordings() -> list[np.ndarray]:
    """Gives the project's sample recordings at 16 kHz: float32 [n] each."""
    files = sorted(path for path in (ROOT / "samples").iterdir() if path.suffix in (".wav", ".flac"))
    return [Resampler(audio.sample_rate_hz, RATE_HZ).run(audio.samples) for audio in map(decode_file, files)]


def repeated(clips: list[np.ndarray], seconds: float) -> list[np.ndarray]:
    """Gives the clips again and again, until they last so long."""
    chosen: list[np.ndarray] = []
    while sum(map(len, chosen)) < seconds * RATE_HZ:
        chosen.append(clips[len(chosen) % len(clips)])
    return chosen


def heard_spans(events: list[Event]) -> list[Span]:
    """Gives the utterances [start, end) of a session, which is what the recogniser hears."""
    begins = {event.utterance: event.start_samples for event in events if isinstance(event, SpeechBegin)}
    return [(begins[event.utterance], event.end_samples) for event in events if isinstance(event, Final)]


def stream(engine: SpeechEngine, audio: np.ndarray, freeze: bool) -> None:
    """Runs audio through `step` in chunks of 100 ms, as a stream; with `freeze`, as a Beam job does."""
    state = engine.start()
    for at in range(0, len(audio), _CHUNK_SAMPLES):
        state, _ = engine.step(state, audio[at : at + _CHUNK_SAMPLES])
        if freeze:
            state = engine.thaw(engine.freeze(state))
    engine.finish(state)


def measure_engine(variant: str, rounds: int) -> list[tuple[str, float, str]]:
    """Gives rows (what, CPU ms per second of audio, ratio) for one variant of the streaming recipe."""
    engine = SpeechEngine.load("streaming", RouteConfig(variants=(variant, "float32")))
    clips = repeated(recordings(), _STEP_SECONDS)
    audio = np.concatenate(clips)
    plain = PlainLoop(variant)
    spans = heard_spans(engine.run([audio])[0])
    contenders: dict[str, Callable[[], object]] = {
        "plain TFLite loop": lambda: plain.run(audio, spans),
        "SpeechEngine.step, 100 ms": lambda: stream(engine, audio, freeze=False),
        "the same with freeze and thaw": lambda: stream(engine, audio, freeze=True),
    }
    for batch_size in (1, 4, 16):
        contenders[f"SpeechEngine.run, batch {batch_size}"] = partial(engine.run, clips, batch_size)
    seconds = len(audio) / RATE_HZ
    times = {name: cpu_s * 1000 / seconds for name, cpu_s in interleaved(contenders, rounds).items()}
    limit, single = times["plain TFLite loop"], times["SpeechEngine.run, batch 1"]
    rows = []
    for name, cpu_ms in times.items():
        ratio = (
            f"{single / cpu_ms:.2f} times as fast as batch 1"
            if "batch" in name
            else f"{cpu_ms / limit:.2f} of the loop"
        )
        rows.append((name, cpu_ms, ratio))
    return rows


def measure_batch_job(variant: str, minutes: float, rounds: int) -> list[tuple[str, float, str]]:
    """Gives rows for the batch job and for the engine alone, both on the same files."""
    engine = SpeechEngine.load("batch", RouteConfig(variants=(variant, "float32")))
    clips = repeated(recordings(), minutes * 60)
    with tempfile.TemporaryDirectory() as folder:
        for number, clip in enumerate(clips):
            soundfile.write(Path(folder) / f"{number:04}.wav", clip, RATE_HZ, subtype="PCM_16")
        files = sorted(Path(folder).glob("*.wav"))
        arguments = ["--set", f"input={folder}/*.wav", "--set", f"output={folder}/out"]
        # Without --force all rounds after the first would only take over what that one has finished.
        arguments += ["--set", f"route.variants=[{variant}, float32]", "--force"]
        contenders: dict[str, Callable[[], object]] = {
            "engine alone": lambda: engine.run([decode_file(file) for file in files], 16),
            "batch job": lambda: batch.main(arguments),
        }
        times = interleaved(contenders, rounds)
    seconds = sum(map(len, clips)) / RATE_HZ
    alone = times["engine alone"]
    return [(name, cpu_s * 1000 / seconds, f"{cpu_s / alone:.2f} of the engine") for name, cpu_s in times.items()]


def table(title: str, rows: list[tuple[str, float, str]]) -> str:
    """Gives rows as a Markdown table."""
    lines = [f"### {title}", "", "| | CPU ms per second of audio | ratio |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {cpu_ms:.2f} | {ratio} |" for name, cpu_ms, ratio in rows), ""])


def main() -> int:
    """Measures, prints and writes the page."""
    parser = argparse.ArgumentParser("python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="audio of the batch job")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "speed.md")
    parser.add_argument("--no-kafka", action="store_true", help="leave out the streaming job")
    options = parser.parse_args()
    parts = [_introduction()]
    for variant in ("float32", "int8"):
        parts.append(table(f"Streaming recipe, {variant}", measure_engine(variant, options.rounds)))
        parts.append(table(f"Batch recipe, {variant}", measure_batch_job(variant, options.minutes, 3)))
    parts.append(_ON_THE_ENGINE)
    if not options.no_kafka:
        clips = [Audio(clip, RATE_HZ) for clip in recordings()]
        parts.append(table("Streaming job, 20 live sessions", measure_streaming_job(clips)))
        parts.append(_ON_THE_STREAMING_JOB)
    page = "\n".join(parts)
    print(page)
    options.output.write_text(page, encoding="utf-8")
    return 0


def _introduction() -> str:
    return f"""# Speed

Written by `make benchmark`. Every table is of one run, its rows interleaved, medians of the CPU time of all threads;
compare rows, not machines. One thread per graph, {RUNTIME.name} {RUNTIME.version}, Python {platform.python_version()},
numpy {np.__version__}, {platform.machine()}. The audio is that of `samples/`, again and again.

The plain loop (`benchmarks/plain_loop.py`) makes the same model calls on the same audio with bare interpreters: no
sessions, no events, no beam search, no checks.
"""


if __name__ == "__main__":
    sys.exit(main())
