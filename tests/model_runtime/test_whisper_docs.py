"""docs/whisper.md names every option with its default, and its code runs."""

import re
import textwrap
from pathlib import Path

import msgspec
import numpy as np
import pytest

from model_runtime.card import USER_MODELS
from model_runtime.whisper_config import WhisperConfig

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "whisper.md").read_text(encoding="utf-8")


def test_the_page_has_every_option_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \| .*\|$", TEXT.partition("## Decoding")[2], re.MULTILINE))
    defaults = {field.name: field.default for field in msgspec.structs.fields(WhisperConfig)}
    shown = {"": '`""`', "transcribe": "`transcribe`", True: "true", False: "false"}
    assert defaults.pop("temperatures") == (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    assert rows.pop("temperatures") == "0, 0.2 .. 1"
    assert rows == {
        name: shown.get(value, str(value)) if isinstance(value, str | bool) else str(value)
        for name, value in defaults.items()
    }


def test_the_code_of_the_page_gives_transcripts() -> None:
    if not (USER_MODELS / "whisper-tiny.en" / "card.yaml").is_file():
        pytest.skip(f"no model in {USER_MODELS}: python -m training.import_whisper tiny.en makes it")
    code = textwrap.dedent(TEXT.partition("## From Python\n\n")[2].partition("\n\nA transcript has")[0])
    names: dict[str, object] = {"clips": [np.zeros(0, np.float32)]}
    exec(code, names)
    assert [transcript.text for transcript in names["transcripts"]] == [""]
