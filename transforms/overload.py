"""What is left out of a session's work while it is too far behind. Knows no Beam and no clock."""

from typing import Annotated

import msgspec

from transforms.lag import Lag

PARTIALS = "partials"
DENOISE = "denoise"


class OverloadConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From which lag on partials, and from which on the denoise stage, are left out; results say so (`shed`)."""

    # Lag of a session in ms, from the capture of its newest chunk to its turn, above which it says no partials. 0:
    # never.
    partials_off_ms: Annotated[int, msgspec.Meta(ge=0, le=86_400_000)] = 0
    # The same from which its audio is no longer denoised; not below partials_off_ms. 0: never.
    denoise_off_ms: Annotated[int, msgspec.Meta(ge=0, le=86_400_000)] = 0
    # Records that its partition holds behind the newest chunk, above which a session says no partials. 0: never.
    partials_off_records: Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)] = 0
    # The same from which its audio is no longer denoised; not below partials_off_records. 0: never.
    denoise_off_records: Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)] = 0
    # What is left out comes back when the lag is not above this share of each of its bounds, 0 to 1.
    recover_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5

    def __post_init__(self) -> None:
        for unit in ("ms", "records"):
            first, last = getattr(self, f"{PARTIALS}_off_{unit}"), getattr(self, f"{DENOISE}_off_{unit}")
            if last and not 0 < first <= last:
                raise ValueError(
                    f"partials_off_{unit} must be 1 to denoise_off_{unit} ({last}), as partials go first, got {first}"
                )

    def sheds_denoise(self) -> bool:
        """Says whether the denoise stage may be left out."""
        return bool(self.denoise_off_ms or self.denoise_off_records)


def decide(shedding: list[str], lag: Lag, config: OverloadConfig) -> list[str]:
    """Gives what is to be left out of a session's turn, in the order in which it goes: partials, then denoise.

    Args:
        shedding: what was left out of the turn before; between the two bounds that stays so.
        lag: without a capture time only the records count.
    """
    bounds = {
        PARTIALS: (config.partials_off_ms, config.partials_off_records),
        DENOISE: (config.denoise_off_ms, config.denoise_off_records),
    }
    return [stage for stage in bounds if _is_shed(stage in shedding, lag, bounds[stage], config.recover_share)]


def _is_shed(before: bool, lag: Lag, bounds: tuple[int, int], recover_share: float) -> bool:
    if not any(bounds):
        return False
    share = recover_share if before else 1.0
    known = zip((lag.ms, lag.records), bounds, strict=True)
    return any(bound and value is not None and value > bound * share for value, bound in known)
