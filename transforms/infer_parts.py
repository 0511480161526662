"""InferParts: parts of the work through the engine, each committed as a whole."""

from collections.abc import Iterator
from copy import copy

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.utils.shared import Shared

import transforms.coders  # noqa: F401  (registers the records' coders)
from transforms.clip_protocol import Settings
from transforms.clip_workers import ClipWorkers
from transforms.engine_handle import _EngineFn
from transforms.finished_rows import FinishedRows
from transforms.part_work import EngineRunner, PartWork, WorkOrder
from transforms.records import ClipResult, Part, PartDone

METRICS = "speech.infer_parts"
"""The namespace of this step's counters: rows, errors, audio_ms, and device/NAME (rows by device)."""

_LOADER = "transforms.clip_worker:load_engine"


class InferParts(beam.PTransform):
    """Does parts of the work: Part -> PartDone, one for one, in no order."""

    def __init__(self, order: WorkOrder, loader: str = _LOADER) -> None:
        """loader: what loads the engine in a process of its own, "module:function"."""
        super().__init__()
        self.order = order
        self._infer = _InferPartFn(order, loader)

    def load(self) -> None:
        """Loads the models, for the workers of this process to take over while this transform lives.

        Raises:
            ConfigError, ModelError, DeviceError, WorkerError: what would else fail in every worker.
        """
        # A copy shares the engine; the step itself must stay without one, or it could not be pickled.
        self._loaded = copy(self._infer)
        self._loaded.setup()
        self._loaded.load_runner()

    def expand(self, parts: beam.PCollection[Part]) -> beam.PCollection[PartDone]:
        return parts | "Spread" >> beam.Reshuffle() | "Infer" >> beam.ParDo(self._infer).with_output_types(PartDone)


class _InferPartFn(_EngineFn):
    def __init__(self, order: WorkOrder, loader: str) -> None:
        super().__init__(order.recipe, order.route)
        self._order = order
        self._settings = Settings(loader, order.recipe, order.route, order.inference, order.enhanced.write)
        self._finished = Shared()
        self._rows = Metrics.counter(METRICS, "rows")
        self._errors = Metrics.counter(METRICS, "errors")
        self._audio_ms = Metrics.counter(METRICS, "audio_ms")

    def setup(self) -> None:
        self._workers = ClipWorkers(self._settings) if self._order.inference.isolate else None
        if self._workers is None:
            super().setup()
        runner = self._workers or EngineRunner(self.engine, self._order)
        # Held here, or what earlier runs have finished would be read again for every part.
        self._work = PartWork(self._order, runner, self._finished.acquire(self._find_finished))

    def load_runner(self) -> None:
        """Starts the process with the models and leaves it to the first worker."""
        if self._workers is not None:
            self._workers.start()
            self._workers.close()

    def process(self, element: Part) -> Iterator[PartDone]:
        for done in self._work.do(element):
            if isinstance(done, PartDone):
                yield done
            else:
                self._count(done)

    def teardown(self) -> None:
        if self._workers is not None:
            self._workers.close()

    def _find_finished(self) -> FinishedRows:
        return FinishedRows(None if self._order.force else self._order.parts_folder)

    def _count(self, result: ClipResult) -> None:
        self._rows.inc()
        if result.error:
            self._errors.inc()
        else:
            self._audio_ms.inc(round(1000 * (result.duration_s or 0.0)))
            # The name is only known here; Beam keeps one counter per name.
            Metrics.counter(METRICS, f"device/{result.device}").inc()
