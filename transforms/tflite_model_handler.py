"""TFLiteModelHandler: the engine behind Beam's own RunInference, whole clips in, the batch job's results out."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from apache_beam.ml.inference.base import ModelHandler, PredictionResult

from model_runtime.audio import Audio, check_sample_rate, check_samples
from model_runtime.devices import RouteConfig
from model_runtime.engine import SpeechEngine
from model_runtime.errors import AudioError, ConfigError
from model_runtime.recipe import load_recipe, one_stage_recipe
from transforms.batch_work import batch_weight, row_weight
from transforms.clip_inference import InferenceConfig, infer_rows
from transforms.records import ClipResult, ClipRow
from transforms.write_audio import CleanMemory

METRICS = "BeamML_TFLite"
"""The namespace of RunInference's metrics with these handlers."""

Clip: TypeAlias = np.ndarray | Audio | ClipRow | str
"""One example: float32 [n] at the models' rate, audio with its rate, a row of a manifest, or a file's path or URL."""


class _TFLiteHandler(ModelHandler):
    """What both handlers have in common."""

    def get_metrics_namespace(self) -> str:
        """Gives the namespace of RunInference's metrics."""
        return METRICS

    def validate_inference_args(self, inference_args: dict[str, Any] | None) -> None:
        """Raises ConfigError if there are any: a card or a recipe says all."""
        if inference_args:
            raise ConfigError(f"inference_args must be empty for a TFLite model, got {sorted(inference_args)}")


class TFLiteModelHandler(_TFLiteHandler):
    """Runs a model card or a recipe over clips: Clip -> PredictionResult(example, ClipResult, model).

    A clip that cannot be used harms nobody else: its result has no text but an `error`. Results do not depend on which
    clips share a batch, and are those of the batch job. With KeyedModelHandler around it, keys are kept.
    """

    def __init__(
        self,
        card: str | None = None,
        *,
        recipe: str | None = None,
        route: RouteConfig = RouteConfig(),  # noqa: B008  (frozen)
        inference: InferenceConfig = InferenceConfig(),  # noqa: B008  (frozen)
        keep_enhanced: bool = False,
        **kwargs: Any,
    ) -> None:
        """Takes either a card or a recipe.

        Args:
            card: the name of a packaged or imported model, or the path of its card or folder; it runs alone.
            recipe: the name of a packaged recipe, or the path of a YAML file.
            route: devices in order of preference, variants and threads.
            inference: rows in a call of a model, audio held at once, retries; `isolate` is not used here.
            keep_enhanced: results hold the clean audio, where a denoiser gives it.
            kwargs: ModelHandler's own: large_model (one copy of the models for all processes of a machine),
                model_copies, batch sizes. Without batch sizes batches are those of the batch job, in which long clips
                weigh more.

        Raises:
            ConfigError: neither or both are given.
        """
        if (card is None) == (recipe is None):
            raise ConfigError(f"TFLiteModelHandler takes either a card or a recipe, got {card!r} and {recipe!r}")
        if not kwargs.keys() & {"min_batch_size", "max_batch_size"}:
            weight = batch_weight(inference)
            kwargs = {"element_size_fn": partial(_weight, config=inference), **kwargs}
            kwargs |= {"min_batch_size": weight, "max_batch_size": weight}
        super().__init__(**kwargs)
        self._card = card
        self._recipe = recipe
        self._route = route
        self._inference = inference
        self._keep_enhanced = keep_enhanced

    def load_model(self) -> "_ClipModel":
        """Loads and warms up the models; once in a process, or once for all of them (`large_model`).

        Raises:
            ConfigError, ModelError, DeviceError: with path and reason.
        """
        recipe = load_recipe(self._recipe) if self._recipe is not None else one_stage_recipe(self._card or "")
        return _ClipModel(SpeechEngine.load(recipe, self._route), self._inference, self._keep_enhanced)

    def run_inference(
        self, batch: Sequence[Clip], model: "_ClipModel", inference_args: dict[str, Any] | None = None
    ) -> Iterator[PredictionResult]:
        """Gives one result for each clip, in order."""
        for example, result in zip(batch, model.run(list(batch)), strict=True):
            yield PredictionResult(example, result, result.model)

    def get_num_bytes(self, batch: Sequence[Clip]) -> int:
        """Gives the bytes of the batch's audio, as far as it is in memory."""
        return sum(_bytes(clip) for clip in batch)

    def update_model_path(self, model_path: str | None = None) -> None:
        """Takes another card or recipe, of the same kind as before, from RunInference's side input."""
        if model_path and self._card is not None:
            self._card = model_path
        elif model_path:
            self._recipe = model_path


class _ClipModel:
    """The engine as Beam shares it. From other processes only methods can be called."""

    def __init__(self, engine: SpeechEngine, config: InferenceConfig, keep_enhanced: bool) -> None:
        self._engine = engine
        self._config = config
        self._keep_enhanced = keep_enhanced

    def run(self, clips: Sequence[Clip]) -> list[ClipResult]:
        """Gives the results of clips, in order."""
        # The place in the batch stands in for the row's own identity, since equal clips may come several times.
        rows = [_to_row(clip, self._engine.sample_rate_hz)._replace(source=0, row=n) for n, clip in enumerate(clips)]
        clean = CleanMemory() if self._keep_enhanced else None
        found = infer_rows(self._engine, rows, self._config, clean)
        results = {result.row: result for result in found}
        own = [(clip.source, clip.row) if isinstance(clip, ClipRow) else (0, 0) for clip in clips]
        return [results[n]._replace(source=source, row=row) for n, (source, row) in enumerate(own)]


def _to_row(clip: Clip, rate_hz: int) -> ClipRow:
    if isinstance(clip, ClipRow):
        return clip
    if isinstance(clip, str):
        return ClipRow(0, 0, clip, clip, b"{}", path=clip)
    samples, rate_hz = clip if isinstance(clip, Audio) else (clip, rate_hz)
    row = ClipRow(0, 0, "clip", "", b"{}")
    try:
        data = check_samples(samples).astype("<f4", copy=False).tobytes()
        return row._replace(data=data, sample_rate_hz=check_sample_rate(rate_hz))
    except AudioError as error:
        return row._replace(error=str(error))


def _weight(element: Any, config: InferenceConfig) -> int:
    """What an example weighs in a batch; KeyedModelHandler hands on its pairs (key, example) as they are."""
    # Audio and rows are tuples as well.
    clip = element if isinstance(element, np.ndarray | Audio | ClipRow | str) else element[1]
    if isinstance(clip, ClipRow):
        return row_weight(clip, config)
    # Files say nothing, and one at an unknown rate is taken to be at the packaged models' own.
    audio = Audio(clip, 16_000) if isinstance(clip, np.ndarray) else clip
    seconds = audio.duration_s if isinstance(audio, Audio) and audio.sample_rate_hz else 0.0
    return row_weight(ClipRow(0, 0, "", "", b"", duration_s=seconds), config)


def _bytes(clip: Clip) -> int:
    if isinstance(clip, Audio | np.ndarray):
        return int((clip.samples if isinstance(clip, Audio) else clip).nbytes)
    return len(clip.data or b"") if isinstance(clip, ClipRow) else 0
