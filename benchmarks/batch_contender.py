"""One contender of benchmarks.batch, in a process of its own.

python -m benchmarks.batch_contender NAME FOLDER BATCH WORKERS
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.plain_batch import PlainBatch
from model_runtime.decode import decode_file

SPANS = "spans.json"
"""In a folder of audio: what the vad heard in each file, which the plain loop is told."""


def plain(folder: Path, *_: int) -> None:
    """The plain loop."""
    loop = PlainBatch()
    for name, spans in json.loads((folder / SPANS).read_text()).items():
        loop.run(decode_file(folder / name).samples, spans)


def naive(folder: Path, batch: int, workers: int) -> None:
    """RunInference with the handler that people write first."""
    import apache_beam as beam
    from apache_beam.ml.inference.base import ModelHandler, RunInference

    class NaiveHandler(ModelHandler[Any, Any, Any]):
        def load_model(self) -> PlainBatch:
            return PlainBatch()

        def run_inference(self, batch: Sequence[Any], model: PlainBatch, inference_args: Any = None) -> Iterator[Any]:
            for samples, spans in batch:
                yield model.run(samples, spans)

        def batch_elements_kwargs(self) -> dict[str, int]:
            return {"max_batch_size": 16}

    def decode(item: tuple[str, Any]) -> tuple[np.ndarray, Any]:
        return decode_file(folder / item[0]).samples, item[1]

    files = json.loads((folder / SPANS).read_text())
    with beam.Pipeline() as pipeline:
        pipeline | beam.Create(list(files.items())) | beam.Map(decode) | RunInference(NaiveHandler())


def handler(folder: Path, batch: int, workers: int) -> None:
    """RunInference with the project's handler."""
    import apache_beam as beam
    from apache_beam.ml.inference.base import RunInference

    from transforms.clip_inference import InferenceConfig
    from transforms.tflite_model_handler import TFLiteModelHandler

    files = [str(folder / name) for name in json.loads((folder / SPANS).read_text())]
    model = TFLiteModelHandler(recipe="batch", inference=InferenceConfig(batch_size=batch))
    with beam.Pipeline() as pipeline:
        pipeline | beam.Create(files) | RunInference(model)


def job(folder: Path, batch: int, workers: int) -> None:
    """The batch job."""
    from pipelines import batch as job

    arguments = [f"input={folder}/*.wav", f"output={folder / 'out'}", f"inference.batch_size={batch}"]
    switches = ["--force", "--direct_running_mode=multi_processing", f"--direct_num_workers={workers}"]
    code = job.main(
        [part for argument in arguments for part in ("--set", argument)] + switches[: 1 if workers == 1 else None]
    )
    if code:
        raise SystemExit(code)


CONTENDERS = {function.__name__: function for function in (plain, naive, handler, job)}

if __name__ == "__main__":
    CONTENDERS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
