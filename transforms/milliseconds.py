"""Samples into milliseconds; apart from the results' records, for workers that import no Beam."""


def samples_to_ms(samples: int, sample_rate_hz: int) -> int:
    """Gives a position or a length in ms, rounded to the nearest."""
    return (2000 * samples + sample_rate_hz) // (2 * sample_rate_hz)
