"""The state of one session: its whole memory, in the hands of whoever runs the engine."""

import msgspec
from msgspec.structs import replace

from model_runtime.continuous_listener import ContinuousListenerState
from model_runtime.resample import ResamplerState
from model_runtime.spectral import DenoiseState
from model_runtime.vad_listener import VadListenerState


class SessionState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """All that a session remembers. Never changed: every step gives a new one."""

    sample_rate_hz: int
    received_samples: int = 0
    # Enhanced samples given out so far.
    enhanced_samples: int = 0
    finished: bool = False
    # Only where the session's rate is not that of the models.
    resampler: ResamplerState | None = None
    enhanced_resampler: ResamplerState | None = None
    denoise: DenoiseState | None = None
    vad: VadListenerState | None = None
    continuous: ContinuousListenerState | None = None

    def with_denoise(self, on: bool) -> "SessionState":
        """Gives the same state, but the denoise stage is run, or bypassed, from the next block that fills up on.

        Bypassed, it costs next to nothing and gives out what comes in, sample for sample in the same places. Events
        are a function of the samples and of the positions of the switches.
        """
        return replace(self, denoise=self.denoise and replace(self.denoise, bypassed=not on))
