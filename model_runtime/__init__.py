"""Audio in, events out: the speech engine over numpy and TFLite. Knows no Beam, no Kafka, no gRPC."""

from model_runtime.audio import Audio
from model_runtime.devices import DelegateConfig, RouteConfig
from model_runtime.engine import SpeechEngine
from model_runtime.errors import AudioError, ConfigError, DeviceError, ModelError, SpeechError, StateError
from model_runtime.recipe import Recipe
from model_runtime.records import (
    Enhanced,
    Event,
    Final,
    MadeBy,
    Partial,
    SpeechBegin,
    SpeechEnd,
    SpeechResumed,
    TentativeEnd,
    Utterance,
    UtteranceAudio,
    Word,
)
from model_runtime.session_settings import SessionSettings
from model_runtime.session_state import SessionState

__all__ = [
    "Audio",
    "AudioError",
    "ConfigError",
    "DelegateConfig",
    "DeviceError",
    "Enhanced",
    "Event",
    "Final",
    "MadeBy",
    "ModelError",
    "Partial",
    "Recipe",
    "RouteConfig",
    "SessionSettings",
    "SessionState",
    "SpeechBegin",
    "SpeechEnd",
    "SpeechEngine",
    "SpeechError",
    "SpeechResumed",
    "StateError",
    "TentativeEnd",
    "Utterance",
    "UtteranceAudio",
    "Word",
]
