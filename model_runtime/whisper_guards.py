"""What is not accepted as a transcript: loops, texts that repeat themselves, guesses; and what is silence."""

import zlib
from collections.abc import Sequence

from model_runtime.whisper_config import WhisperConfig

# A run of up to so many tokens, said at least four times and over at least twelve tokens, is a loop: people do say
# "no, no, no", and digits three times over.
_LONGEST_RUN = 16
_LEAST_TIMES = 4
_LEAST_TOKENS = 12


def find_loop(tokens: Sequence[int]) -> int | None:
    """Gives how many tokens there are up to the end of a loop's first round, None where the end is no loop."""
    for run in range(1, min(_LONGEST_RUN, len(tokens) // _LEAST_TIMES) + 1):
        times = max(_LEAST_TIMES, -(-_LEAST_TOKENS // run))
        needed = run * times
        # Equal to itself one round earlier, all along.
        if len(tokens) >= needed and tuple(tokens[-needed:-run]) == tuple(tokens[len(tokens) - needed + run :]):
            while len(tokens) > needed and tokens[-needed - 1] == tokens[-needed - 1 + run]:
                needed += 1
            return len(tokens) - needed + run
    return None


def compression(text: str) -> float:
    """Gives how many times smaller zlib makes a text; 0 for none."""
    data = text.encode("utf-8")
    return len(data) / len(zlib.compress(data)) if data else 0.0


def is_silence(no_speech: float, average_log_prob: float, config: WhisperConfig) -> bool:
    """Tells whether there is most likely no speech, and the transcript a guess."""
    return no_speech > config.no_speech_threshold and average_log_prob < config.log_prob_threshold


def is_repetition(tokens: Sequence[int], text: str, config: WhisperConfig) -> bool:
    """Tells whether a transcript loops or repeats itself."""
    return find_loop(tokens) is not None or compression(text) > config.compression_threshold
