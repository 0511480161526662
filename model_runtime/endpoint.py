"""When an utterance ends: the three rules of Kaldi's and sherpa's online recognisers."""

from typing import Literal

from model_runtime.recipe import EndpointConfig

Reason = Literal["silence", "length"]


class EndpointRules:
    """The rules of one recipe in samples at the models' rate."""

    def __init__(self, config: EndpointConfig, sample_rate_hz: int) -> None:
        self.before_speech_samples = config.silence_before_speech_ms * sample_rate_hz // 1000
        self.after_speech_samples = config.silence_after_speech_ms * sample_rate_hz // 1000
        self.max_samples = config.max_utterance_ms * sample_rate_hz // 1000

    def check(self, spoken: bool, silence_samples: int, length_samples: int) -> Reason | None:
        """Gives why the utterance ends here, or None.

        Args:
            spoken: whether anything has been said in it.
            silence_samples: since the last speech, or since its start where nothing has been said.
            length_samples: since its start.
        """
        if silence_samples >= (self.after_speech_samples if spoken else self.before_speech_samples):
            return "silence"
        return "length" if length_samples >= self.max_samples else None
