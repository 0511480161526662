"""InferClips: rows of clips through the engine in batches, one result for every row."""

from collections.abc import Iterator
from copy import copy

import apache_beam as beam
from apache_beam.metrics import Metrics

import transforms.coders  # noqa: F401  (registers the records' coders)
from model_runtime.devices import RouteConfig
from model_runtime.engine import SpeechEngine
from transforms.clip_inference import InferenceConfig, infer_rows
from transforms.engine_handle import _EngineFn
from transforms.progress import ProgressFile
from transforms.records import ClipResult, ClipRow

METRICS = "speech.infer_clips"
"""The namespace of this step's counters: rows, errors, audio_ms, and device/NAME (rows by device)."""

# Rows in hand are this many batches, so that clips of like length can share one.
_BATCHES_IN_HAND = 4
# A row with much data counts as several, which bounds the bytes in hand.
_BYTES_PER_ROW = 4 << 20


class InferClips(beam.PTransform):
    """Runs the engine on clips: ClipRow -> ClipResult, one for one, in no order.

    Args:
        recipe: name or path of the recipe.
        keep_enhanced: whether results carry the clean audio.
        progress: counts the rows that are done, for a progress bar.
    """

    def __init__(
        self,
        recipe: str,
        route: RouteConfig,
        config: InferenceConfig,
        keep_enhanced: bool = False,
        progress: ProgressFile | None = None,
    ) -> None:
        super().__init__()
        self._rows_in_hand = config.batch_size * _BATCHES_IN_HAND
        self._infer = _InferClipsFn(recipe, route, config, keep_enhanced, progress)

    def load_engine(self) -> SpeechEngine:
        """Loads the engine in this process, where the workers' threads will find it as long as it is held.

        Raises:
            ConfigError, ModelError, DeviceError: what would else fail in every worker.
        """
        # A copy shares the handle; the step itself must stay without an engine, or it could not be pickled.
        loaded = copy(self._infer)
        loaded.setup()
        return loaded.engine

    def expand(self, rows: beam.PCollection[ClipRow]) -> beam.PCollection[ClipResult]:
        return (
            rows
            | "Batch" >> beam.BatchElements(self._rows_in_hand, self._rows_in_hand, element_size_fn=_row_weight)
            | "Infer" >> beam.ParDo(self._infer).with_output_types(ClipResult)
        )


def _row_weight(row: ClipRow) -> int:
    return 1 + (len(row.data) // _BYTES_PER_ROW if row.data else 0)


class _InferClipsFn(_EngineFn):
    def __init__(
        self,
        recipe: str,
        route: RouteConfig,
        config: InferenceConfig,
        keep_enhanced: bool,
        progress: ProgressFile | None,
    ) -> None:
        super().__init__(recipe, route)
        self._config = config
        self._keep_enhanced = keep_enhanced
        self._progress = progress
        self._rows = Metrics.counter(METRICS, "rows")
        self._errors = Metrics.counter(METRICS, "errors")
        self._audio_ms = Metrics.counter(METRICS, "audio_ms")
        self._batch_rows = Metrics.distribution(METRICS, "batch_rows")

    def process(self, element: list[ClipRow]) -> Iterator[ClipResult]:
        self._batch_rows.update(len(element))
        for result in infer_rows(self.engine, element, self._config, self._keep_enhanced):
            self._rows.inc()
            if result.error:
                self._errors.inc()
            else:
                self._audio_ms.inc(round(1000 * (result.duration_s or 0.0)))
                # The name is only known here; Beam keeps one counter per name.
                Metrics.counter(METRICS, f"device/{result.device}").inc()
            yield result
        if self._progress is not None:
            self._progress.add(len(element))
