"""What every session of a step is run with."""

from collections.abc import Callable
from typing import NamedTuple

from model_runtime.engine import SpeechEngine
from transforms.overload import OverloadConfig
from transforms.session_config import OutputConfig, SessionConfig
from transforms.timing import clock_ms


class SessionMeans(NamedTuple):
    """The engine and the rules.

    clock: Unix ms; the timing of results comes from it, and lags; keep_audio: turns hold what the engine has heard;
    overload: at which lag what is left out.
    """

    engine: SpeechEngine
    session: SessionConfig
    output: OutputConfig
    clock: Callable[[], int] = clock_ms
    keep_audio: bool = False
    overload: OverloadConfig = OverloadConfig()
