"""What is in the package is what the cards name, and not much more than needed."""

from pathlib import Path

import pytest

from model_runtime.card import load_card

MODELS = Path(__file__).resolve().parents[2] / "model_runtime" / "models"
NAMES = ("unison-denoise", "unison-vad", "unison-asr-stream", "unison-asr-transducer", "unison-asr-batch")
SIZE_LIMIT_BYTES = 6_000_000


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_holds_the_files_that_its_card_names(name: str) -> None:
    card = load_card(name)
    named = {file for files in card.variants.values() for file in files.values()}
    found = {path.name for path in (MODELS / name).iterdir()}
    assert found == named | {"card.yaml"}


@pytest.mark.parametrize("name", NAMES)
def test_a_card_says_its_quality_for_each_variant(name: str) -> None:
    card = load_card(name)
    assert set(card.quality) == set(card.variants)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_small(name: str) -> None:
    assert sum(path.stat().st_size for path in (MODELS / name).iterdir()) < SIZE_LIMIT_BYTES
