"""The cheap pass over recordings that are to be cut: the vad alone hears where speech is."""

from collections.abc import Sequence

from msgspec.structs import replace

from model_runtime.audio import Audio
from model_runtime.calls import CallTally
from model_runtime.devices import RouteConfig
from model_runtime.engine import SpeechEngine
from model_runtime.errors import ConfigError
from model_runtime.recipe import EndpointConfig, Recipe, load_recipe
from model_runtime.records import Event, MadeBy
from model_runtime.stream import Stream
from transforms.cut_points import PieceLength

_LEAST_MS = 10_000
_MOST_MS = 30_000
_OVERLAP_MS = 4_000
# A shorter silence may be that of a consonant.
_PAUSE_MS = 200
# Long speech is only reported so far in one; nothing is cut by it.
_LONGEST_SPEECH_MS = 60_000


def piece_length(recipe: Recipe) -> PieceLength:
    """Gives how long pieces are: 10 to 30 s, and no longer than an utterance, so that none is cut by its length."""
    most_ms = min(_MOST_MS, recipe.endpoint.max_utterance_ms)
    least_ms = min(_LEAST_MS, most_ms // 2)
    return PieceLength(least_ms, most_ms, min(_OVERLAP_MS, least_ms // 2))


def scout_recipe(recipe: Recipe, clean: bool) -> Recipe:
    """Gives what hears where speech is in a recording, to the sample and without padding.

    Args:
        clean: it gives out the clean audio as well, and the vad hears it where the recipe says so.

    Raises:
        ConfigError: the recipe has no vad.
    """
    if recipe.vad is None:
        raise ConfigError(f"recipe {recipe.name} has no vad that hears where to cut")
    return Recipe(
        recipe.name,
        denoise=recipe.denoise if clean else None,
        vad=replace(recipe.vad, pad_before_ms=0, pad_after_ms=0),
        endpoint=EndpointConfig(silence_after_speech_ms=_PAUSE_MS, max_utterance_ms=_LONGEST_SPEECH_MS),
    )


class Scout:
    """Hears where speech is in whatever is too long for one piece, and nothing in what is not."""

    def __init__(self, recipe: Recipe, route: RouteConfig, clean: bool) -> None:
        self._engine = SpeechEngine.load(scout_recipe(recipe, clean), route)
        self._most_ms = piece_length(recipe).most_ms

    def run(self, clips: Sequence[Audio], batch_size: int, tally: CallTally) -> list[list[Event]]:
        """Gives the speech of the clips, in order."""
        long = [index for index, clip in enumerate(clips) if clip.duration_s * 1000 > self._most_ms]
        found = dict(zip(long, self._engine.run([clips[index] for index in long], batch_size, tally), strict=True))
        return [found.get(index, []) for index in range(len(clips))]

    def run_streams(self, streams: Sequence[Stream], batch_size: int, tally: CallTally) -> None:
        """Hears recordings side by side."""
        self._engine.run_streams(streams, batch_size, tally)

    def made_by(self) -> MadeBy:
        """Gives what heard them."""
        return self._engine.made_by()


def load_scout(recipe: str, route: RouteConfig) -> Scout:
    """Gives the scout of a recipe, for a process of its own."""
    return Scout(load_recipe(recipe), route, clean=False)


def load_clean_scout(recipe: str, route: RouteConfig) -> Scout:
    """As load_scout; it gives out the clean audio as well."""
    return Scout(load_recipe(recipe), route, clean=True)
