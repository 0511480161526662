"""Measures the batch job over many rows of very little audio: what a row costs, and what memory grows with.

python -m benchmarks.batch_rows [--rows 10000 50000 200000] [--seconds 0.2]
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import soundfile

from benchmarks.process_meter import measure_command
from benchmarks.speed import RATE_HZ, recordings


def prepare(folder: Path, rows: int, seconds: float) -> Path:
    """Writes a manifest of so many rows, each the first seconds of one of the sample recordings."""
    clips = recordings()
    for number, clip in enumerate(clips):
        soundfile.write(folder / f"{number}.wav", clip[: int(seconds * RATE_HZ)], RATE_HZ, subtype="PCM_16")
    manifest = folder / "manifest.jsonl"
    with manifest.open("w", encoding="utf-8") as file:
        for row in range(rows):
            file.write(json.dumps({"audio_filepath": f"{row % len(clips)}.wav", "n": row}) + "\n")
    return manifest


def main() -> int:
    """Prints a line of the table for each number of rows."""
    parser = argparse.ArgumentParser("python -m benchmarks.batch_rows", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 50_000, 200_000])
    parser.add_argument("--seconds", type=float, default=0.2, help="audio of a row")
    options = parser.parse_args()
    print("| rows | wall clock, s | CPU ms of a row | memory, MB |\n|---|---|---|---|")
    for rows in options.rows:
        with tempfile.TemporaryDirectory(prefix="unison-rows-") as name:
            manifest = prepare(Path(name), rows, options.seconds)
            settings = [f"input={manifest}", f"output={name}/out", "recipe=segment", "results.formats=[jsonl]"]
            command = [sys.executable, "-m", "pipelines.batch"] + [
                part for setting in settings for part in ("--set", setting)
            ]
            cost = measure_command(command, Path(name))
        per_row = 1000 * cost.cpu_s / rows
        print(f"| {rows:,} | {cost.wall_s:.0f} | {per_row:.2f} | {cost.peak_mb:.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
