"""Model cards: the YAML beside each .tflite that tells the runtime how to call it."""

from pathlib import Path
from typing import Any

import yaml

# Any: whatever YAML can hold.
Value = Any

_MODELS = Path(__file__).resolve().parent.parent / "model_runtime" / "models"


def model_folder(name: str) -> Path:
    """Where the project keeps the model of that name."""
    return _MODELS / name


def state_pairs(names: list[str]) -> list[dict[str, str]]:
    """The card's list of states for states called ``<name>_in`` and ``<name>_out``."""
    return [{"input": f"{name}_in", "output": f"{name}_out"} for name in names]


def write_card(folder: Path, card: dict[str, Value]) -> None:
    """Writes card.yaml, keys in the order given."""
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(card, sort_keys=False, allow_unicode=True, width=110)
    (folder / "card.yaml").write_text(text, encoding="utf-8")


def read_card(folder: Path) -> dict[str, Value]:
    """The card in a model's folder."""
    return dict(yaml.safe_load((folder / "card.yaml").read_text(encoding="utf-8")))
