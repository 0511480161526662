"""Model cards: the YAML that tells everything about a model but its weights, so a model is added without code."""

import os
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
import yaml

from model_runtime.errors import ConfigError, ModelError, NotImportedError
from model_runtime.graph import GraphBinding
from model_runtime.whisper_framing import WhisperFraming

PACKAGE_MODELS = Path(__file__).parent / "models"
# Models that are imported by the user; UNISON_MODELS names another folder.
USER_MODELS = Path(os.environ.get("UNISON_MODELS") or Path.home() / ".cache" / "unison-speech" / "models")

Task = Literal["denoise", "vad", "asr"]
Kind = Literal["spectral", "frame_probability", "streaming_ctc", "streaming_transducer", "utterance_ctc", "whisper"]
KINDS_BY_TASK: dict[str, tuple[str, ...]] = {
    "denoise": ("spectral",),
    "vad": ("frame_probability",),
    "asr": ("streaming_ctc", "streaming_transducer", "utterance_ctc", "whisper"),
}


class SpectralFraming(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a denoiser cuts audio into spectra; the FFT is done outside its graphs."""

    window_samples: int
    hop_samples: int
    frames_per_call: int = 1
    window: Literal["rectangular", "sqrt_hann"] = "rectangular"
    feature: Literal["magnitude", "log_magnitude"] = "magnitude"
    # log_magnitude is log(max(magnitude, floor)) * scale + offset.
    feature_floor: float = 1e-5
    feature_scale: float = 1.0
    feature_offset: float = 0.0

    def __post_init__(self) -> None:
        _at_least("frames_per_call", self.frames_per_call, 1)
        _at_least("hop_samples", self.hop_samples, 1)
        if self.window_samples % self.hop_samples:
            raise ValueError(
                f"window_samples must be a multiple of hop_samples, got {self.window_samples} and {self.hop_samples}"
            )


class ProbabilityFraming(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a voice activity model is fed: blocks of new samples, each behind the last samples before it."""

    block_samples: int
    context_samples: int = 0

    def __post_init__(self) -> None:
        _at_least("block_samples", self.block_samples, 1)
        _at_least("context_samples", self.context_samples, 0)


class StreamingFraming(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a streaming recogniser is fed, and how its frames lie in time."""

    block_samples: int
    context_samples: int
    frame_samples: int
    # Zeros appended at the end of an utterance, so that the last word comes out of the model.
    tail_samples: int = 0
    # How far a token's spike lags behind the end of its sound, taken off word times.
    delay_samples: int = 0

    def __post_init__(self) -> None:
        _at_least("block_samples", self.block_samples, 1)
        _at_least("context_samples", self.context_samples, 0)
        _at_least("tail_samples", self.tail_samples, 0)
        if self.frame_samples < 1 or self.block_samples % self.frame_samples:
            raise ValueError(
                f"block_samples must be a multiple of frame_samples, got {self.block_samples} and {self.frame_samples}"
            )


class UtteranceCtcFraming(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a full-context recogniser is fed: a whole utterance, padded with zeros to a multiple of samples."""

    pad_multiple_samples: int
    frame_samples: int
    context_samples: int = 0
    delay_samples: int = 0

    def __post_init__(self) -> None:
        _at_least("pad_multiple_samples", self.pad_multiple_samples, 1)
        _at_least("frame_samples", self.frame_samples, 1)
        _at_least("context_samples", self.context_samples, 0)


FramingT = TypeVar("FramingT")
Framing = SpectralFraming | ProbabilityFraming | StreamingFraming | UtteranceCtcFraming | WhisperFraming
_FRAMING: dict[str, type] = {
    "spectral": SpectralFraming,
    "frame_probability": ProbabilityFraming,
    "streaming_ctc": StreamingFraming,
    "streaming_transducer": StreamingFraming,
    "utterance_ctc": UtteranceCtcFraming,
    "whisper": WhisperFraming,
}


class ModelCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model. `folder` is where its card lies; file names are relative to it."""

    name: str
    version: str
    task: Task
    kind: Kind
    sample_rate_hz: int
    variants: dict[str, dict[str, str]]
    graphs: tuple[GraphBinding, ...]
    framing: dict[str, object]
    licence: str = ""
    source: str = ""
    data: str = ""
    # The signature that names the tensors; None where the file has none and tensor names are used.
    signature: str | None = None
    # Batch sizes that the graphs accept: "any", or a list.
    batch_sizes: Literal["any"] | tuple[int, ...] = "any"
    # Variant -> the batch size above which a call on the CPU is no faster for each row; measured by model_runtime.tune.
    best_batch_size: dict[str, int] = {}
    # CTC models and transducers only. tokens[0] is the blank; "▁" marks a word's start.
    tokens: tuple[str, ...] = ()
    lexicon: dict[str, tuple[str, ...]] = {}
    quality: dict[str, object] = {}
    # Imported models: hashes of their files, and of the weights that they were made of.
    sha256: dict[str, str] = {}
    folder: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS_BY_TASK[self.task]:
            raise ValueError(f"kind of a {self.task} model must be one of {KINDS_BY_TASK[self.task]}, got {self.kind}")
        if not self.variants:
            raise ValueError("variants must name at least one variant, got none")
        roles = [graph.role for graph in self.graphs]
        for variant, files in self.variants.items():
            if sorted(files) != sorted(roles):
                raise ValueError(f"variants.{variant} must name a file for each of {roles}, got {sorted(files)}")
        unknown = sorted(self.best_batch_size.keys() - self.variants.keys())
        if unknown or min(self.best_batch_size.values(), default=1) < 1:
            raise ValueError(f"best_batch_size must give numbers from 1 for variants, got {self.best_batch_size}")
        if self.kind.endswith(("_ctc", "_transducer")) and len(self.tokens) < 2:
            raise ValueError(f"tokens of kind {self.kind} must be at least 2, got {len(self.tokens)}")
        for word, pieces in self.lexicon.items():
            unknown = [piece for piece in pieces if piece not in self.tokens]
            if unknown:
                raise ValueError(f"lexicon.{word} has pieces that are not in tokens: {unknown}")

    def parsed_framing(self) -> Framing:
        """Gives the framing of this card's kind."""
        framing: Framing = msgspec.convert(self.framing, _FRAMING[self.kind])
        return framing

    def framing_as(self, kind: type[FramingT]) -> FramingT:
        """Gives the framing of this card, which must be of this kind.

        Raises:
            ConfigError: the card is of another kind.
        """
        framing = self.parsed_framing()
        if not isinstance(framing, kind):
            raise ConfigError(f"{self.name}: {kind.__name__} is needed here, a {self.kind} model does not have it")
        return framing

    def paths(self, role: str) -> dict[str, Path]:
        """Gives variant -> file of the graph with this role."""
        return {variant: Path(self.folder) / files[role] for variant, files in self.variants.items()}


def load_card(name: str, folders: tuple[Path, ...] = (PACKAGE_MODELS, USER_MODELS)) -> ModelCard:
    """Gives the card of a model by its name (a folder below one of `folders`) or by the path of its card or folder.

    Raises:
        ModelError: there is no such model (NotImportedError: yet); the message lists those that are.
        ConfigError: the card is wrong; the message gives the path and the field.
    """
    path = _find(name, folders)
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
        card = msgspec.convert({**(raw or {}), "folder": str(path.parent)}, ModelCard)
        card.parsed_framing()
    except (msgspec.ValidationError, yaml.YAMLError, UnicodeDecodeError, TypeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return card


def _find(name: str, folders: tuple[Path, ...]) -> Path:
    direct = Path(name)
    candidates = [direct, direct / "card.yaml"] if direct.is_absolute() or len(direct.parts) > 1 else []
    candidates += [folder / name / "card.yaml" for folder in folders]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    known = sorted(card.parent.name for folder in folders for card in folder.glob("*/card.yaml"))
    missing = f"no model {name!r}: not a path of a card, and not one of {known}"
    if name.startswith("whisper-"):
        raise NotImportedError(f"{missing}; deploy/whisper.sh makes it")
    raise ModelError(missing)


def _at_least(field: str, value: int, bound: int) -> None:
    if value < bound:
        raise ValueError(f"{field} must be >= {bound}, got {value}")
