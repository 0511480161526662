"""What a card says of a Whisper model beside its graphs: sizes, and the tokens that mean something to the decoder."""

import msgspec


class WhisperFraming(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes and special tokens of a Whisper model; timestamps are the tokens above `no_timestamps`, 20 ms apart."""

    # Byte-level BPE in the form of the tokenizers library, in the card's folder.
    tokenizer: str
    end_of_text: int
    start_of_transcript: int
    translate: int
    transcribe: int
    start_of_previous: int
    no_speech: int
    no_timestamps: int
    # Never said; special tokens need not be listed.
    suppress: tuple[int, ...]
    # Not said as the first token.
    suppress_at_begin: tuple[int, ...]
    # Pairs (decoder layer, head) whose cross attention follows the audio; words get their times from them.
    alignment_heads: tuple[tuple[int, int], ...]
    mel_bins: int = 80
    # The window that the model was trained with, 30 s.
    window_samples: int = 480_000
    # Prompt and transcript together.
    max_tokens: int = 448
    # Code ("en") -> its token; empty for a model that knows English alone.
    languages: dict[str, int] = {}

    def __post_init__(self) -> None:
        if self.mel_bins < 1:
            raise ValueError(f"mel_bins must be >= 1, got {self.mel_bins}")
        if self.window_samples < 1 or self.window_samples % 320:
            raise ValueError(f"window_samples must be a multiple of 320, got {self.window_samples}")
        if self.max_tokens < 8:
            raise ValueError(f"max_tokens must be >= 8, got {self.max_tokens}")
        if not self.alignment_heads:
            raise ValueError("alignment_heads must name at least one pair (layer, head), got none")
        if self.end_of_text >= self.start_of_transcript:
            # Everything above the end of text is special and never text.
            raise ValueError(
                f"end_of_text must lie below start_of_transcript, got {self.end_of_text} and {self.start_of_transcript}"
            )
