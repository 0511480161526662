"""How Whisper's transcripts are sought, and what is not accepted as one."""

from typing import Literal

import msgspec
from msgspec.structs import replace

from model_runtime.errors import check_within

# Shorter windows than this miss the end of the text too often.
_BRIEF_WINDOW_MS = 15_000


class WhisperConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of decoding."""

    # Code of the language that is spoken, such as "de"; "" detects it, clip by clip.
    language: str = ""
    # Text in the language that is spoken, or in English.
    task: Literal["transcribe", "translate"] = "transcribe"
    # Hypotheses that the search keeps; 1 takes the best token each time.
    beam_size: int = 1
    # Tried in this order until a transcript is accepted; above 0 tokens are drawn, by a seed that is the clip's own.
    temperatures: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    # Transcripts drawn at each temperature above 0, of which the most probable is taken.
    best_of: int = 1
    # Probability 0..1 of no speech above which a transcript below `log_prob_threshold` is taken for silence.
    no_speech_threshold: float = 0.6
    # Mean log probability per token below which a transcript is not accepted.
    log_prob_threshold: float = -1.0
    # How many times smaller zlib may make a text before it is taken for a repetition.
    compression_threshold: float = 2.4
    # Text that goes before, for its style and spelling.
    prompt: str = ""
    # Words that are to be expected.
    hot_words: str = ""
    # ms of the shortest window. The model was trained with 30 s; shorter ones cost less and give other texts at
    # times. What they give is accepted only where nothing is said twice in a row.
    shortest_window_ms: int = 30_000
    # Tokens of a transcript, at most.
    max_tokens: int = 224
    # Let the model say itself when segments begin and end, beside the text.
    timestamps: bool = False
    # Words with their times; without them a transcript has its text alone.
    word_times: bool = True

    def brief(self) -> "WhisperConfig":
        """Gives how to transcribe what is cut off in mid-sentence: at half the cost, once, and without times."""
        window_ms = min(self.shortest_window_ms, _BRIEF_WINDOW_MS)
        return replace(self, temperatures=self.temperatures[:1], shortest_window_ms=window_ms, word_times=False)

    def has_text_before(self) -> bool:
        """Tells whether there is a prompt, or hot words."""
        return bool(self.prompt.strip() or self.hot_words.strip())

    def __post_init__(self) -> None:
        check_within("beam_size", self.beam_size, 1, 16)
        check_within("best_of", self.best_of, 1, 16)
        check_within("no_speech_threshold", self.no_speech_threshold, 0.0, 1.0)
        check_within("log_prob_threshold", self.log_prob_threshold, -100.0, 0.0)
        check_within("compression_threshold", self.compression_threshold, 1.0, 100.0)
        check_within("shortest_window_ms", self.shortest_window_ms, 10_000, 30_000)
        check_within("max_tokens", self.max_tokens, 1, 224)
        if not self.temperatures:
            raise ValueError("temperatures must name at least one, got none")
        for temperature in self.temperatures:
            check_within("temperatures", temperature, 0.0, 2.0)
