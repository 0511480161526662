"""Recipes: which stages run, with which models and rules."""

from pathlib import Path
from typing import Literal

import msgspec
import yaml

from model_runtime.card import load_card
from model_runtime.errors import ConfigError, check_within
from model_runtime.whisper_config import WhisperConfig

PACKAGE_RECIPES = Path(__file__).parent / "recipes"

MOST_UTTERANCE_MS = 60_000

Hears = Literal["enhanced", "original"]


class DenoiseConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The denoise stage."""

    # Name of a packaged model, or the path of a card or its folder.
    model: str
    # Emit Enhanced events; False where only later stages use the clean audio.
    emit: bool = True


class VadConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The vad stage: from speech probabilities to utterances."""

    # Name of a packaged model, or the path of a card or its folder.
    model: str
    # Which audio it hears: that of the denoise stage, or the session's own.
    hears: Hears = "enhanced"
    # Probability 0..1 at which speech begins.
    threshold: float = 0.5
    # Probability below which it stops; not above `threshold`.
    stop_threshold: float = 0.35
    # ms of speech before an utterance begins; shorter bursts are not speech.
    min_speech_ms: int = 60
    # ms of audio kept before the first speech frame.
    pad_before_ms: int = 300
    # ms of audio kept after the last speech frame.
    pad_after_ms: int = 200

    def __post_init__(self) -> None:
        check_within("threshold", self.threshold, 0.0, 1.0)
        check_within("stop_threshold", self.stop_threshold, 0.0, self.threshold)
        check_within("min_speech_ms", self.min_speech_ms, 0, 5_000)
        check_within("pad_before_ms", self.pad_before_ms, 0, 2_000)
        check_within("pad_after_ms", self.pad_after_ms, 0, 2_000)


class EndpointConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The three rules that end an utterance (those of Kaldi and sherpa), and one that tells of its likely end."""

    # Rule 1: ms of silence while nothing has been said yet. Only a recipe without a vad waits for it.
    silence_before_speech_ms: int = 5_000
    # Rule 2: ms of silence after speech.
    silence_after_speech_ms: int = 800
    # Rule 3: ms that an utterance lasts at most.
    max_utterance_ms: int = 20_000
    # ms of silence after speech at which a tentative end is said, which rule 2 confirms or speech withdraws; 0: never.
    # One that is not shorter than rule 2 never comes.
    tentative_end_ms: int = 0

    def __post_init__(self) -> None:
        check_within("silence_before_speech_ms", self.silence_before_speech_ms, 100, 600_000)
        check_within("silence_after_speech_ms", self.silence_after_speech_ms, 100, 60_000)
        check_within("max_utterance_ms", self.max_utterance_ms, 1_000, MOST_UTTERANCE_MS)
        check_within("tentative_end_ms", self.tentative_end_ms, 0, 60_000)


class AsrConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The asr stage."""

    # Name of a packaged model, or the path of a card or its folder.
    model: str
    # Which audio it hears: that of the denoise stage, or the session's own.
    hears: Hears = "enhanced"
    # The best token of every frame, or the most probable text of the model's words.
    decoder: Literal["greedy", "prefix_beam"] = "prefix_beam"
    # Hypotheses that the prefix beam keeps.
    beam: int = 8
    # Streaming models: ms of an utterance between two partials; 0 for none.
    partial_interval_ms: int = 100
    # Models that hear utterances whole: ms of an utterance between two decodings of what there is of it; a partial is
    # what two in a row agree on. 0 for none. Needs a vad.
    agreement_interval_ms: int = 0
    # Whisper models only: how transcripts are sought, and what is not accepted as one.
    whisper: WhisperConfig = WhisperConfig()

    def __post_init__(self) -> None:
        check_within("beam", self.beam, 1, 64)
        check_within("agreement_interval_ms", self.agreement_interval_ms, 0, 60_000)
        check_partial_interval(self.partial_interval_ms)


def check_partial_interval(partial_interval_ms: int) -> None:
    """Raises the ValueError that names what is wrong with it, if anything is."""
    check_within("partial_interval_ms", partial_interval_ms, 0, 60_000)


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Stages in the order in which audio passes them; any may be absent, but not all."""

    # What results and errors call it.
    name: str
    denoise: DenoiseConfig | None = None
    vad: VadConfig | None = None
    asr: AsrConfig | None = None
    endpoint: EndpointConfig = EndpointConfig()

    def __post_init__(self) -> None:
        if self.denoise is None and self.vad is None and self.asr is None:
            raise ValueError("a recipe needs at least one of denoise, vad, asr; got none")
        if self.vad is None and self.asr is not None and self.asr.agreement_interval_ms:
            # Without one, only the final tells whether anything was said.
            raise ValueError(f"asr.agreement_interval_ms needs a vad, got {self.asr.agreement_interval_ms} without one")


def load_recipe(recipe: str | Path | Recipe) -> Recipe:
    """Gives a recipe by the name of a packaged one, or from a YAML file.

    Model names in a file that hold a separator are paths relative to that file.

    Raises:
        ConfigError: there is no such recipe, or it is wrong; the message gives path and field.
    """
    if isinstance(recipe, Recipe):
        return recipe
    path = Path(recipe)
    packaged = PACKAGE_RECIPES / f"{recipe}.yaml"
    if path.suffix not in (".yaml", ".yml") and packaged.is_file():
        path = packaged
    if not path.is_file():
        known = sorted(file.stem for file in PACKAGE_RECIPES.glob("*.yaml"))
        raise ConfigError(f"no recipe {str(recipe)!r}: not a YAML file, and not one of {known}")
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        return msgspec.convert(_with_absolute_models(raw, path.parent), Recipe)
    except (msgspec.ValidationError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error


def one_stage_recipe(model: str) -> Recipe:
    """Gives the recipe in which a model runs alone; it has the model's name.

    Args:
        model: the name of a packaged or imported model, or the path of its card or folder.

    Raises:
        ModelError, ConfigError: there is no such model, or its card is wrong.
    """
    card = load_card(model)
    match card.task:
        case "denoise":
            return Recipe(card.name, denoise=DenoiseConfig(model))
        case "vad":
            return Recipe(card.name, vad=VadConfig(model))
        case "asr":
            return Recipe(card.name, asr=AsrConfig(model))


def _with_absolute_models(raw: object, folder: Path) -> object:
    if not isinstance(raw, dict):
        return raw
    return {key: _with_absolute_model(value, folder) for key, value in raw.items()}


def _with_absolute_model(stage: object, folder: Path) -> object:
    if isinstance(stage, dict) and isinstance(stage.get("model"), str) and "/" in stage["model"]:
        return {**stage, "model": str((folder / stage["model"]).resolve())}
    return stage
