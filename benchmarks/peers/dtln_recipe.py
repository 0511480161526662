"""DTLN, a third-party denoiser, before the project's vad and recogniser; its files lie beside the checkout."""

import os
import shutil
from pathlib import Path

from pipelines.local_jobs import ROOT

DTLN = "dtln"
"""The name under which the recipe is asked for."""

_RECIPE = """name: dtln
denoise: {model: ./dtln, emit: false}
vad: {model: unison-vad, hears: original}
asr: {model: unison-asr-stream, hears: original}
"""


def write_dtln_recipe(folder: Path) -> Path | None:
    """Writes the recipe and its model to a folder and gives its path; None where there are no such files."""
    shared = Path(os.environ.get("UNISON_SHARED") or ROOT.parent / "shared")
    files = sorted((shared / "data" / "models" / "dtln").glob("*.tflite"))
    if not files:
        return None
    shutil.copytree(ROOT / "docs" / "cards" / "dtln", folder / "dtln")
    for file in files:
        shutil.copy(file, folder / "dtln")
    recipe = folder / "dtln.yaml"
    recipe.write_text(_RECIPE, encoding="utf-8")
    return recipe
