"""``python -m training.compare_whisper MODEL``: an imported Whisper against faster-whisper on the same weights.

Needs the package faster-whisper, and weights in CTranslate2's form. Prints how many words differ, word errors on read
sentences, and CPU time per second of audio.
"""

import argparse
import csv
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from model_runtime.card import ModelCard, load_card
from model_runtime.decode import decode_file
from model_runtime.devices import RouteConfig
from model_runtime.graph import Graph
from model_runtime.whisper_config import WhisperConfig
from model_runtime.whisper_transcriber import WhisperTranscriber
from training.word_errors import word_errors

WINDOW_SAMPLES = 480_000
SAMPLE_RATE_HZ = 16_000
_READ = ("jfk", "84-", "librivox/")
_SPELLINGS = {"mr": "mister"}


class Recording(NamedTuple):
    """Speech with what is said in it: float32 [n], 16 kHz."""

    samples: np.ndarray
    text: str
    is_read: bool


class Result(NamedTuple):
    """The texts of all recordings, and the CPU time of all threads per second of audio."""

    texts: list[str]
    cpu_s: float


def load_recordings(shared: Path) -> list[Recording]:
    """The mono recordings at 16 kHz of data/speech."""
    folder = shared / "data" / "speech"
    recordings = []
    with (folder / "transcripts.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            audio = decode_file(folder / row["file"])
            if audio.sample_rate_hz == SAMPLE_RATE_HZ:
                recordings.append(Recording(audio.samples, row["transcript"], row["file"].startswith(_READ)))
    return recordings


def words(text: str) -> list[str]:
    """The words of a text without case and marks."""
    plain = re.sub(r"[^\w' ]", " ", text.lower()).split()
    return [_SPELLINGS.get(word, word) for word in plain]


def measure(transcribe: Callable[[np.ndarray], str], recordings: list[Recording]) -> Result:
    """Transcribes the recordings one by one, the first one twice: what is made once does not count."""
    transcribe(recordings[0].samples)
    started = time.process_time()
    texts = [transcribe(recording.samples) for recording in recordings]
    seconds = sum(len(recording.samples) for recording in recordings) / SAMPLE_RATE_HZ
    return Result(texts, (time.process_time() - started) / seconds)


def imported(card: ModelCard, variant: str, config: WhisperConfig, threads: int) -> Callable[[np.ndarray], str]:
    """The model as this project runs it."""
    route = RouteConfig(variants=(variant,), threads=threads)
    graphs = [Graph.load(card.paths(graph.role), graph, card.signature, route) for graph in card.graphs]
    transcriber = WhisperTranscriber(card, graphs, config)
    return lambda samples: transcriber.transcribe([samples])[0].text


def reference(weights: Path, beam_size: int, threads: int) -> Callable[[np.ndarray], str]:
    """The same weights in faster-whisper, on samples padded to the window as Whisper was trained."""
    from faster_whisper import WhisperModel

    model = WhisperModel(str(weights), device="cpu", compute_type="float32", cpu_threads=threads)

    def transcribe(samples: np.ndarray) -> str:
        padded = np.pad(samples, (0, WINDOW_SAMPLES - len(samples)))
        segments, _ = model.transcribe(padded, beam_size=beam_size, without_timestamps=True)
        return " ".join(segment.text.strip() for segment in segments)

    return transcribe


def _row(name: str, result: Result, wanted: list[str], recordings: list[Recording]) -> str:
    differ = sum(word_errors(w.split(), t.split()) for w, t in zip(wanted, result.texts, strict=True))
    read = [(words(r.text), words(t)) for r, t in zip(recordings, result.texts, strict=True) if r.is_read]
    errors, said = sum(word_errors(*pair) for pair in read), sum(len(pair[0]) for pair in read)
    total = sum(len(text.split()) for text in wanted)
    return f"| {name} | {differ} of {total} | {errors} of {said} | {result.cpu_s:.3f} |"


def main(argv: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="name of an imported model, or path of its folder")
    parser.add_argument("--weights", type=Path, help="folder with model.bin; by default the one that was fetched")
    parser.add_argument("--shared", type=Path, default=Path("../shared"), help="data folder")
    parser.add_argument("--variants", help="some of the card's; all by default")
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--shortest-window-ms", type=int, default=30_000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(argv)
    card = load_card(options.model)
    recordings = load_recordings(options.shared)
    weights = options.weights or Path.home() / ".cache" / "unison-speech" / "weights" / card.name
    wanted = measure(reference(weights, options.beam_size, options.threads), recordings)
    print("| | words that differ | word errors, read speech | CPU s per s of audio |\n|---|---|---|---|")
    print(_row("faster-whisper, float32", wanted, wanted.texts, recordings), flush=True)
    config = WhisperConfig(beam_size=options.beam_size, shortest_window_ms=options.shortest_window_ms)
    for variant in options.variants.split(",") if options.variants else card.variants:
        result = measure(imported(card, variant, config, options.threads), recordings)
        print(_row(variant, result, wanted.texts, recordings), flush=True)


if __name__ == "__main__":
    main()
