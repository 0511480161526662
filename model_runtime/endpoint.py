"""When an utterance ends: the three rules of Kaldi's and sherpa's online recognisers, and one that only warns."""

from typing import Literal

import msgspec

from model_runtime.recipe import EndpointConfig

Reason = Literal["silence", "length"]
Pause = Literal["begun", "over"]


class EndpointRules(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The rules of a recipe, or of one session, in samples at the models' rate."""

    before_speech_samples: int
    after_speech_samples: int
    max_samples: int
    # 0: no pause is told.
    tentative_samples: int

    @classmethod
    def of(cls, config: EndpointConfig, sample_rate_hz: int) -> "EndpointRules":
        """Gives the rules of a configuration."""
        times_ms = (
            config.silence_before_speech_ms,
            config.silence_after_speech_ms,
            config.max_utterance_ms,
            config.tentative_end_ms,
        )
        return cls(*[time_ms * sample_rate_hz // 1000 for time_ms in times_ms])

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

    def pause(self, before_samples: int, now_samples: int) -> Pause | None:
        """Gives what becomes of the pause in an utterance whose silence was `before_samples` long and is so now."""
        likely = self.tentative_samples
        # Asked for every frame of speech, so in as few steps as it takes.
        if likely <= 0 or (before_samples >= likely) == (now_samples >= likely):
            return None
        return "begun" if now_samples >= likely else "over"
