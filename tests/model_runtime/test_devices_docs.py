"""The route and the commands of docs/devices.md do what they say."""

import re
import shlex
from pathlib import Path

import msgspec
import pytest
import yaml

from model_runtime.devices import DelegateConfig, RouteConfig
from model_runtime.doctor import main

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/devices.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^python -m model_runtime\.doctor(.*)$", TEXT, re.MULTILINE)


def test_the_route_of_the_page_is_a_route() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    assert msgspec.convert(yaml.safe_load(block), RouteConfig) == RouteConfig(
        devices=("npu", "cpu"),
        delegates={"npu": DelegateConfig("/usr/lib/libvx_delegate.so", {"cache_file_path": "/var/cache/npu"})},
        variants_by_device={"npu": ("int8", "float32")},
        threads=2,
        cores=(0, 1),
    )


@pytest.mark.parametrize("arguments", COMMANDS)
def test_every_command_of_the_page_runs(
    arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(arguments)) == 0
    assert "Recipes" in capsys.readouterr().out


def test_every_reason_that_the_code_gives_is_on_the_page() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "model_runtime").glob("*.py"))
    assert set(re.findall(r'"(delegate_\w+)"', code)) == set(re.findall(r"^\| `(delegate_\w+)`", TEXT, re.MULTILINE))
