"""What the decoder is told, token by token, and what it cannot be told."""

import json

import numpy as np
import pytest

from model_runtime.errors import ConfigError
from model_runtime.whisper_config import WhisperConfig
from model_runtime.whisper_framing import WhisperFraming
from model_runtime.whisper_prompt import Prompts
from model_runtime.whisper_tokens import Tokenizer

END, START, ENGLISH, GERMAN, TRANSLATE, TRANSCRIBE, PREVIOUS, NO_SPEECH, NO_TIMESTAMPS = range(256, 265)


def framing(languages: dict[str, int]) -> WhisperFraming:
    special = (END, START, TRANSLATE, TRANSCRIBE, PREVIOUS, NO_SPEECH, NO_TIMESTAMPS)
    return WhisperFraming("", *special, (), (), ((0, 0),), max_tokens=40, languages=languages)


MULTILINGUAL = framing({"en": ENGLISH, "de": GERMAN})
ENGLISH_ALONE = framing({})


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Visible ASCII characters are their own tokens; a space is token 0."""
    vocabulary = {"Ġ": 0, **{chr(byte): byte for byte in range(33, 127)}}
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    path.write_text(json.dumps({"model": {"vocab": vocabulary, "merges": []}}), encoding="utf-8")
    return Tokenizer(path, END)


def test_language_and_task_are_told_to_a_multilingual_model(tokenizer: Tokenizer) -> None:
    prompts = Prompts(MULTILINGUAL, WhisperConfig(language="de", task="translate"), tokenizer)
    assert prompts.tokens(prompts.language) == [START, GERMAN, TRANSLATE, NO_TIMESTAMPS]


def test_an_english_model_is_told_neither(tokenizer: Tokenizer) -> None:
    prompts = Prompts(ENGLISH_ALONE, WhisperConfig(), tokenizer)
    assert prompts.language == "en"
    assert prompts.tokens("en") == [START, NO_TIMESTAMPS]


def test_hot_words_and_then_the_prompt_go_before(tokenizer: Tokenizer) -> None:
    prompts = Prompts(MULTILINGUAL, WhisperConfig(prompt=" cd ", hot_words="ab"), tokenizer)
    before = [PREVIOUS, 0, *b"ab", 0, *b"cd"]
    assert prompts.language == ""
    assert prompts.start == len(before)
    assert prompts.tokens("en") == [*before, START, ENGLISH, TRANSCRIBE, NO_TIMESTAMPS]


def test_of_too_long_a_prompt_the_end_is_kept_and_half_of_the_model_is_left(tokenizer: Tokenizer) -> None:
    prompts = Prompts(ENGLISH_ALONE, WhisperConfig(prompt="x" * 90 + "y", hot_words="ab"), tokenizer)
    assert prompts.tokens("en") == [PREVIOUS, 0, *b"ab", *b"x" * 15, *b"y", START, NO_TIMESTAMPS]


def test_the_language_is_the_most_probable_of_those_that_are_known(tokenizer: Tokenizer) -> None:
    prompts = Prompts(MULTILINGUAL, WhisperConfig(), tokenizer)
    logits = [0.0] * 300
    logits[ENGLISH], logits[GERMAN], logits[TRANSLATE] = 1.0, 2.0, 3.0
    assert prompts.most_probable_language(np.array(logits, np.float32)) == "de"


@pytest.mark.parametrize(
    ("model", "config", "words"),
    [
        (ENGLISH_ALONE, WhisperConfig(language="de"), "'en' and 'transcribe', got 'de' and 'transcribe'"),
        (ENGLISH_ALONE, WhisperConfig(task="translate"), "'en' and 'transcribe', got '' and 'translate'"),
        (MULTILINGUAL, WhisperConfig(language="xx"), r"'' or one of \['de', 'en'\], got 'xx'"),
    ],
)
def test_what_a_model_does_not_know_is_refused(
    tokenizer: Tokenizer, model: WhisperFraming, config: WhisperConfig, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        Prompts(model, config, tokenizer)
