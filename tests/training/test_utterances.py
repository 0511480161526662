"""Examples for the recognisers say what their labels say."""

import itertools

import numpy as np
import pytest

pytest.importorskip("scipy", reason="examples are augmented by scipy")

from training import augmentation
from training.clips import Clip
from training.utterances import FRAME_SAMPLES, UNKNOWN, Example, Source, make_example, one_speaker
from training.words import encode

LENGTH = 57600


def clip(text: str, seconds: float) -> Clip:
    tone = 8000 * np.sin(np.arange(int(16000 * seconds)) / 4)
    return Clip(tone.astype(np.int16), text, f"voice of {text}")


SOURCE = Source(
    words=[clip("stop", 0.5), clip("go", 0.4)],
    recordings={"somebody": [clip("one", 0.4), clip("nine", 0.5)]},
    neural={},
    speech=[clip("", 2.0).pcm],
)


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    rng = np.random.default_rng(8)
    return [make_example(rng, SOURCE, LENGTH) for _ in range(40)]


def test_examples_have_the_length_asked_for_and_stay_in_range(examples: list[Example]) -> None:
    assert {len(example.pcm) for example in examples} == {LENGTH}
    assert {len(example.frames) for example in examples} == {LENGTH // FRAME_SAMPLES}
    assert max(float(np.abs(example.pcm).max()) for example in examples) <= 1.0


def test_frames_without_repeats_and_blanks_are_the_tokens(examples: list[Example]) -> None:
    for example in examples:
        spelt = [token for token, _ in itertools.groupby(example.frames.tolist()) if token]
        assert spelt == example.tokens


def test_frames_of_clips_with_several_words_are_unknown() -> None:
    source = Source([clip("yes no up", 1.2)], {"nobody": [clip("yes", 0.4)]}, {}, SOURCE.speech)
    rng = np.random.default_rng(9)
    examples = [make_example(rng, source, LENGTH) for _ in range(30)]
    spelt = encode(["yes", "no", "up"])
    several = [example for example in examples if example.tokens == spelt]
    assert several
    assert all(set(example.frames.tolist()) == {0, UNKNOWN} for example in several)


def test_a_few_examples_are_noise_without_words() -> None:
    rng = np.random.default_rng(10)
    empty = [not make_example(rng, SOURCE, 25600).tokens for _ in range(400)]
    assert 2 < sum(empty) < 40


def test_half_of_the_speakers_of_single_words_are_neural_where_there_are_any() -> None:
    neural = {"kokoro-0": [clip("left", 0.4)]}
    rng = np.random.default_rng(11)
    chosen = [one_speaker(rng, SOURCE._replace(neural=neural))[0].voice for _ in range(200)]
    assert 70 < sum(voice == neural["kokoro-0"][0].voice for voice in chosen) < 130
    assert all(one_speaker(rng, SOURCE) == SOURCE.recordings["somebody"] for _ in range(20))


def heard_samples(source: Source, word: str) -> set[int]:
    """How much of a word there is in examples of nothing else, as the frames tell."""
    rng, [onset, rime] = np.random.default_rng(12), encode([word])
    single = [example for example in (make_example(rng, source, 25600) for _ in range(60)) if len(example.tokens) == 2]
    return {int(np.isin(example.frames, (onset, rime)).sum()) for example in single}


def test_digits_are_sometimes_cut_tightly_and_commands_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(augmentation, "vary_speech", lambda rng, pcm: pcm)
    digits = Source([clip("nine", 0.8)], {"somebody": [clip("nine", 0.8)]}, {}, SOURCE.speech)
    commands = Source([clip("go", 0.8)], {"somebody": [clip("go", 0.8)]}, {}, SOURCE.speech)
    assert heard_samples(commands, "go") == {20}
    assert min(heard_samples(digits, "nine")) < 19
    assert max(heard_samples(digits, "nine")) == 20
