"""What a single session may want otherwise than its recipe has it."""

import msgspec
from msgspec.structs import asdict, replace

from model_runtime.recipe import EndpointConfig, check_partial_interval


class SessionSettings(msgspec.Struct, frozen=True, array_like=True):
    """Named and bounded as in the recipe's `endpoint` and `asr`; None: as the recipe has it."""

    silence_after_speech_ms: int | None = None
    max_utterance_ms: int | None = None
    tentative_end_ms: int | None = None
    partial_interval_ms: int | None = None

    def endpoint(self, recipe: EndpointConfig) -> EndpointConfig:
        """Gives the recipe's endpoint rules with these in place of its own.

        Raises:
            ValueError: a value is out of bounds; names it and them.
        """
        given = {name: value for name, value in asdict(self).items() if value is not None}
        interval_ms = given.pop("partial_interval_ms", None)
        if interval_ms is not None:
            check_partial_interval(interval_ms)
        return replace(recipe, **given)
