"""InferParts: parts of the work through the engine in batches, each part committed as a whole."""

from collections.abc import Iterable, Iterator
from copy import copy
from functools import partial
from typing import Literal, TypeAlias

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.pvalue import TaggedOutput
from apache_beam.utils.shared import Shared

import transforms.coders  # noqa: F401  (registers the records' coders)
from model_runtime.recipe import load_recipe
from transforms.batch_work import BatchWork, EngineRunner, batch_weight, row_weight
from transforms.clip_inference import InferenceConfig
from transforms.clip_protocol import Settings
from transforms.clip_workers import ClipWorkers, start_idle
from transforms.cut_rows import CutWork
from transforms.engine_handle import _EngineFn
from transforms.finished_rows import FinishedRows
from transforms.part_work import PartReader, commit_part
from transforms.records import ClipResult, KeyedRow, Part, PartDone, PartRows
from transforms.scout import Scout
from transforms.work_order import WorkOrder

METRICS = "speech.infer_parts"
"""The namespace of this step's counters: rows (or pieces), errors, audio_ms, and device/NAME (rows by device)."""

_LOADER = "transforms.clip_worker:load_engine"
_ROWS = "rows"
_FINISHED = "finished"
_PIECES = "pieces"
# Beam reads the types of tagged outputs from annotations, in which a tag must be spelt out.
_Finished: TypeAlias = TaggedOutput[Literal["finished"], tuple[int, PartRows]]  # _FINISHED
_Read: TypeAlias = KeyedRow | _Finished
_Cut: TypeAlias = KeyedRow | TaggedOutput[Literal["pieces"], KeyedRow] | _Finished  # _PIECES


class InferParts(beam.PTransform):
    """Does parts of the work: Part -> PartDone, in no order; a part of a run that is over gives nothing.

    Reading, batching and inference stay in one stage: audio that a table holds is never encoded between them, and no
    more than a batch is held. What is shuffled are references to rows that are on the disk.
    """

    def __init__(self, order: WorkOrder, loader: str = _LOADER) -> None:
        """loader: what loads the engine in a process of its own, "module:function"."""
        super().__init__()
        self.order = order
        self._infer = _InferBatchFn(order, loader)

    def load(self, workers: int = 1) -> None:
        """Loads the models, for so many workers of this process to take over while this transform lives.

        Raises:
            ConfigError, ModelError, DeviceError, WorkerError: what would else fail in every worker.
        """
        # A copy shares the engine; the step itself must stay without one, or it could not be pickled.
        self._loaded = copy(self._infer)
        self._loaded.setup()
        self._loaded.load_runner(workers)

    def expand(self, parts: beam.PCollection[Part]) -> beam.PCollection[PartDone]:
        finished_rows = Shared()
        read = (
            parts
            | "Spread" >> beam.Reshuffle()
            | "Read" >> beam.ParDo(_ReadPartFn(self.order, finished_rows)).with_outputs(_FINISHED, main=_ROWS)
        )
        rows, finished = read[_ROWS], [read[_FINISHED]]
        if self.order.answer == "accurate":
            cut = (
                rows
                | "BatchWhole" >> self._batches()
                | "Cut"
                >> beam.ParDo(_CutRowsFn(self.order, finished_rows)).with_outputs(_FINISHED, _PIECES, main=_ROWS)
            )
            # Pieces are references into files: all workers share those of one recording.
            spread = cut[_PIECES] | "SpreadPieces" >> beam.Reshuffle()
            inferred = spread | "BatchPieces" >> self._batches() | "InferPieces" >> beam.ParDo(self._infer)
            rows, finished = cut[_ROWS], [*finished, cut[_FINISHED], inferred]
        inferred = rows | "Batch" >> self._batches() | "Infer" >> beam.ParDo(self._infer)
        return (
            (*finished, inferred)
            | "Finished" >> beam.Flatten()
            | "ByPart" >> beam.GroupByKey()
            | "Commit" >> beam.ParDo(_CommitPartFn(self.order))
        )

    def _batches(self) -> beam.PTransform:
        config = self.order.inference
        weight = batch_weight(config)
        # One fixed size: batches are those of the input, and not of how busy the machine is.
        return beam.BatchElements(weight, weight, element_size_fn=partial(_weight, config=config))


def _acquire(finished: Shared, order: WorkOrder) -> FinishedRows:
    """Gives what earlier runs have finished, read once in a process."""
    rows: FinishedRows = finished.acquire(lambda: FinishedRows(None if order.force else order.parts_folder))
    return rows


def _weight(row: KeyedRow, config: InferenceConfig) -> int:
    return row_weight(row.row, config)


class _ReadPartFn(beam.DoFn):
    def __init__(self, order: WorkOrder, finished: Shared) -> None:
        super().__init__()
        self._order = order
        self._finished = finished

    def setup(self) -> None:
        # Held here, or the journal and what earlier runs have finished would be read again for every part.
        self._reader = PartReader(self._order, _acquire(self._finished, self._order))

    def process(self, element: Part) -> Iterator[_Read]:
        for each in self._reader.read(element):
            if isinstance(each, PartRows):
                yield TaggedOutput(_FINISHED, (each.part, each))
            else:
                yield each


class _CutRowsFn(beam.DoFn):
    def __init__(self, order: WorkOrder, finished: Shared) -> None:
        super().__init__()
        self._order = order
        self._finished = finished
        self._clean = order.enhanced.write

    def setup(self) -> None:
        order = self._order
        loader = "load_clean_scout" if self._clean else "load_scout"
        settings = Settings(f"transforms.scout:{loader}", order.recipe, order.route, order.inference, order.clean)
        self._workers = ClipWorkers(settings) if order.inference.isolate else None
        runner = self._workers or EngineRunner(Scout(load_recipe(order.recipe), order.route, self._clean), order)
        self._work = CutWork(order, runner, _acquire(self._finished, order))

    def process(self, element: list[KeyedRow]) -> Iterator[_Cut]:
        for each in self._work.do(element):
            if isinstance(each, PartRows):
                yield TaggedOutput(_FINISHED, (each.part, each))
            elif each.row.piece is not None:
                yield TaggedOutput(_PIECES, each)
            else:
                yield each

    def teardown(self) -> None:
        if self._workers is not None:
            self._workers.close()


class _InferBatchFn(_EngineFn):
    def __init__(self, order: WorkOrder, loader: str) -> None:
        super().__init__(order.recipe, order.route)
        self._order = order
        self._settings = Settings(loader, order.recipe, order.route, order.inference, order.clean)
        self._rows = Metrics.counter(METRICS, "rows")
        self._errors = Metrics.counter(METRICS, "errors")
        self._audio_ms = Metrics.counter(METRICS, "audio_ms")

    def setup(self) -> None:
        self._workers = ClipWorkers(self._settings) if self._order.inference.isolate else None
        if self._workers is None:
            super().setup()
        self._work = BatchWork(self._order, self._workers or EngineRunner(self.engine, self._order))

    def load_runner(self, workers: int) -> None:
        """Starts processes with the models and leaves them to the workers."""
        if self._workers is not None:
            start_idle(self._settings, workers)

    def process(self, element: list[KeyedRow]) -> Iterator[tuple[int, PartRows]]:
        for done in self._work.do(element):
            if isinstance(done, PartRows):
                yield done.part, done
            else:
                self._count(done)

    def finish_bundle(self) -> None:
        # Rows and pieces are two steps, and one process with the models serves both.
        self._give_back()

    def teardown(self) -> None:
        self._give_back()

    def _give_back(self) -> None:
        if self._workers is not None:
            self._workers.close()

    def _count(self, result: ClipResult) -> None:
        self._rows.inc()
        if result.error:
            self._errors.inc()
        else:
            self._audio_ms.inc(round(1000 * (result.duration_s or 0.0)))
            # The name is only known here; Beam keeps one counter per name.
            Metrics.counter(METRICS, f"device/{result.device}").inc()


class _CommitPartFn(beam.DoFn):
    def __init__(self, order: WorkOrder) -> None:
        super().__init__()
        self._order = order

    def process(self, element: tuple[int, Iterable[PartRows]]) -> Iterator[PartDone]:
        yield commit_part(self._order, *element)
