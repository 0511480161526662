"""What a decoder is told before it begins: text that went before, the language, the task."""

import numpy as np

from model_runtime.errors import ConfigError
from model_runtime.whisper_config import WhisperConfig
from model_runtime.whisper_framing import WhisperFraming
from model_runtime.whisper_tokens import Tokenizer

ENGLISH = "en"


class Prompts:
    """The prompts of one model and configuration.

    Attributes:
        start: where the start of a transcript lies in a prompt; the tokens before it are text.
        language: the language of all clips; "" where it is to be detected.
    """

    def __init__(self, framing: WhisperFraming, config: WhisperConfig, tokenizer: Tokenizer) -> None:
        _check(framing, config)
        self._framing = framing
        self._task = framing.translate if config.task == "translate" else framing.transcribe
        self._before = _text_before(framing, config, tokenizer)
        self.start = len(self._before)
        self.language = config.language if framing.languages else ENGLISH

    def tokens(self, language: str) -> list[int]:
        """Gives the prompt for a clip in this language; all prompts are equally long."""
        known = self._framing.languages
        spoken = [known[language], self._task] if known else []
        return [*self._before, self._framing.start_of_transcript, *spoken, self._framing.no_timestamps]

    def most_probable_language(self, logits: np.ndarray) -> str:
        """Gives the language by the logits [V] that the start of a transcript alone leads to."""
        known = self._framing.languages
        return max(known, key=lambda language: float(logits[known[language]]))


def _check(framing: WhisperFraming, config: WhisperConfig) -> None:
    known = framing.languages
    if not known and (config.language not in ("", ENGLISH) or config.task != "transcribe"):
        raise ConfigError(
            f"language and task of a model that knows English alone must be 'en' and 'transcribe', "
            f"got {config.language!r} and {config.task!r}"
        )
    if known and config.language and config.language not in known:
        raise ConfigError(f"language must be '' or one of {sorted(known)}, got {config.language!r}")


def _text_before(framing: WhisperFraming, config: WhisperConfig, tokenizer: Tokenizer) -> list[int]:
    """Gives the tokens of hot words and prompt; of too long a text, the beginning and the end respectively."""
    most = framing.max_tokens // 2 - 1
    hot_words = tokenizer.encode(" " + config.hot_words.strip())[:most] if config.hot_words.strip() else []
    prompt = tokenizer.encode(" " + config.prompt.strip()) if config.prompt.strip() else []
    text = hot_words + prompt[max(0, len(prompt) - (most - len(hot_words))) :]
    return [framing.start_of_previous, *text] if text else []
