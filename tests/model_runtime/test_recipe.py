"""Recipes: found by name or path, and refused with the field."""

from pathlib import Path

import pytest

from model_runtime.errors import ConfigError
from model_runtime.recipe import PACKAGE_RECIPES, load_recipe


def test_packaged_recipes_are_found_by_name() -> None:
    names = sorted(path.stem for path in PACKAGE_RECIPES.glob("*.yaml"))
    assert names == ["batch", "enhance", "segment", "sentences", "streaming"]
    assert [load_recipe(name).name for name in names] == names


def test_an_unknown_recipe_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no recipe 'nope'.*streaming"):
        load_recipe("nope")


def test_models_with_a_separator_are_relative_to_the_recipe(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nvad: {model: models/silero}\nasr: {model: unison-asr-stream}\n", encoding="utf-8")
    recipe = load_recipe(path)
    assert recipe.vad is not None and recipe.vad.model == str(tmp_path / "models/silero")
    assert recipe.asr is not None and recipe.asr.model == "unison-asr-stream"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\n", "a recipe needs at least one of denoise, vad, asr; got none"),
        ("name: x\nvad: {model: m, threshold: 2}\n", r"threshold must be 0.0..1.0, got 2.* - at `\$.vad`"),
        ("name: x\nasr: {model: m, beam: 0}\n", r"beam must be 1..64, got 0 - at `\$.asr`"),
        ("name: x\nasr: {model: m, decoder: magic}\n", r"Invalid enum value 'magic' - at `\$.asr.decoder`"),
        ("name: x\nasr: {modell: m}\n", r"unknown field `modell` - at `\$.asr`"),
        ("name: x\nasr: {model: m}\nendpoint: {max_utterance_ms: 5}\n", "max_utterance_ms must be 1000..60000, got 5"),
        ("- a\n", "Expected `object`, got `array`"),
    ],
)
def test_a_wrong_recipe_is_refused_with_its_path_and_field(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        load_recipe(path)
    assert str(caught.value).startswith(str(path))
