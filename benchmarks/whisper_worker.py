"""One contender of benchmarks.whisper in a process of its own, so that its CPU time and its memory are its own.

Runs under the project's Python or under the one that has faster-whisper, and imports neither side before it must. Each
line on stdin is a pass over all clips, answered by a line of JSON.
"""

import json
import resource
import sys
from collections.abc import Callable

import numpy as np

WINDOW_SAMPLES = 480_000
RATE_HZ = 16_000

Transcribe = Callable[[list[np.ndarray]], list[str]]


def unison(model: str, variant: str, batch: int, threads: int) -> Transcribe:
    """The model as this project runs it."""
    from model_runtime.card import load_card
    from model_runtime.devices import RouteConfig
    from model_runtime.graph import Graph
    from model_runtime.whisper_config import WhisperConfig
    from model_runtime.whisper_transcriber import WhisperTranscriber

    card, route = load_card(model), RouteConfig(variants=(variant,), threads=threads)
    graphs = [Graph.load(card.paths(graph.role), graph, card.signature, route) for graph in card.graphs]
    transcriber = WhisperTranscriber(card, graphs, WhisperConfig(word_times=False))

    def transcribe(clips: list[np.ndarray]) -> list[str]:
        groups = [clips[first : first + batch] for first in range(0, len(clips), batch)]
        return [transcript.text for group in groups for transcript in transcriber.transcribe(group)]

    return transcribe


def faster_whisper(model: str, variant: str, batch: int, threads: int) -> Transcribe:
    """The same weights in CTranslate2, greedy as well, on samples padded to the window as Whisper was trained."""
    from faster_whisper import BatchedInferencePipeline, WhisperModel

    loaded = WhisperModel(model, device="cpu", compute_type=variant, cpu_threads=threads)
    options = {"beam_size": 1, "without_timestamps": True, "condition_on_previous_text": False}

    def one_by_one(clips: list[np.ndarray]) -> list[str]:
        texts = []
        for clip in clips:
            segments, _ = loaded.transcribe(np.pad(clip, (0, WINDOW_SAMPLES - len(clip))), **options)
            texts.append(" ".join(segment.text.strip() for segment in segments))
        return texts

    def in_batches(clips: list[np.ndarray]) -> list[str]:
        # The windows in a row, each a batch's row of its own.
        audio = np.concatenate([np.pad(clip, (0, WINDOW_SAMPLES - len(clip))) for clip in clips])
        spans = [{"start": 30.0 * number, "end": 30.0 * (number + 1)} for number in range(len(clips))]
        pipeline = BatchedInferencePipeline(loaded)
        segments, _ = pipeline.transcribe(
            audio, clip_timestamps=spans, vad_filter=False, batch_size=batch, language="en", **options
        )
        texts = [""] * len(clips)
        for segment in segments:
            number = round(segment.start // 30)
            texts[number] = f"{texts[number]} {segment.text.strip()}".strip()
        return texts

    return one_by_one if batch == 1 else in_batches


def main() -> None:
    """Loads a contender, hears the first clip once, and then does passes until stdin ends."""
    contender = json.loads(sys.argv[1])
    clips = [*np.load(contender["clips"]).values()]
    make = {"unison": unison, "faster-whisper": faster_whisper}[contender["engine"]]
    transcribe = make(contender["model"], contender["variant"], contender["batch"], contender["threads"])
    # What is made once does not count.
    transcribe(clips[: contender["batch"]])
    print("ready", flush=True)
    for _ in sys.stdin:
        before = _cpu_s()
        texts = transcribe(clips)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps({"texts": texts, "cpu_s": _cpu_s() - before, "peak_mb": usage.ru_maxrss / 1024}), flush=True)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
