"""The examples of docs/run_inference.md do what they say."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_examples_run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "run_inference.md").read_text("utf-8"), re.DOTALL)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        exec(block, names)  # the page's own words
    said = capfd.readouterr().out.splitlines()
    assert sorted(said) == ["('door', 'four seven one nine two yes')", "('hall', 'on off on no')", "True"]
