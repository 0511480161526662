"""Configuration: what a file and overrides give, and what is said about a wrong one."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from model_runtime.devices import RouteConfig
from model_runtime.errors import ConfigError
from pipelines.configuration import load_config


class _InferenceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    batch_size: Annotated[int, msgspec.Meta(ge=1, le=64)] = 16
    mode: Literal["fast", "exact"] = "exact"
    name: str = ""

    def __post_init__(self) -> None:
        if self.mode == "fast" and self.batch_size == 1:
            raise ValueError("mode must be exact when batch_size is 1, got 'fast'")


class _JobConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    input: str | tuple[str, ...]
    inference: _InferenceConfig = _InferenceConfig()
    route: RouteConfig = RouteConfig()


def _load(tmp_path: Path, text: str, *overrides: str) -> _JobConfig:
    path = tmp_path / "job.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, overrides, _JobConfig)


def _error(tmp_path: Path, text: str, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text, *overrides)
    return str(caught.value)


def test_file_fills_the_fields_and_the_rest_keep_their_defaults(tmp_path: Path) -> None:
    config = _load(tmp_path, "input: a.wav\ninference: {batch_size: 4}\n")
    assert config == _JobConfig("a.wav", _InferenceConfig(4))


def test_list_of_inputs_becomes_a_tuple(tmp_path: Path) -> None:
    assert _load(tmp_path, "input: [a, b]").input == ("a", "b")


def test_override_lies_over_the_file_and_the_last_one_wins(tmp_path: Path) -> None:
    config = _load(tmp_path, "input: a", "inference.batch_size=2", "inference.batch_size=3", "route.threads=2")
    assert (config.inference.batch_size, config.route.threads) == (3, 2)


@pytest.mark.parametrize("value", ["*.wav", "[1].wav", "data/{a,b}.wav", "2026", "1.5", "yes", "2026-01-01", "a=b"])
def test_override_of_a_text_field_is_text(tmp_path: Path, value: str) -> None:
    assert _load(tmp_path, "", f"input={value}").input == value


def test_override_may_be_a_yaml_list(tmp_path: Path) -> None:
    assert _load(tmp_path, "input: a", "route.variants=[int8, float32]").route.variants == ("int8", "float32")


def test_delegate_is_set_by_its_own_name(tmp_path: Path) -> None:
    config = _load(tmp_path, "input: a", "route.delegates.npu.library=libnpu.so", "route.devices=[npu, cpu]")
    assert config.route.delegates["npu"].library == "libnpu.so"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("input: a\ninference: {batch_size: 0}", "job.yaml: inference.batch_size must be >= 1, got 0"),
        ("input: a\ninference: {batch_size: 65}", "job.yaml: inference.batch_size must be <= 64, got 65"),
        ("input: a\ninference: {batch_size: many}", "job.yaml: inference.batch_size must be int, got 'many'"),
        (
            "input: a\ninference: {batch: 1}",
            "job.yaml: inference.batch is no field; inference has batch_size, mode, name",
        ),
        ("input: a\noutputs: b", "job.yaml: outputs is no field; the configuration has input, inference, route"),
        ("inference: {}", "job.yaml: input is required"),
        ("input: a\ninference: {mode: slow}", "job.yaml: inference.mode must be one of 'fast', 'exact', got 'slow'"),
        (
            "input: a\ninference: {mode: fast, batch_size: 1}",
            "job.yaml: inference.mode must be exact when batch_size is 1, got 'fast'",
        ),
        ("input: a\ninference: 3", "job.yaml: inference must be object, got 3"),
        ("input: [a, 1]", "job.yaml: input[1] must be str, got 1"),
        ("input: a\nroute: {threads: 0}", "job.yaml: route.threads must be >= 1, got 0"),
        (
            "input: a\nroute: {devices: [npu]}",
            "job.yaml: route.devices: 'npu' must be 'cpu' or one of delegates []",
        ),
    ],
)
def test_wrong_field_is_named_with_its_path_value_and_bound(tmp_path: Path, text: str, message: str) -> None:
    assert _error(tmp_path, text) == message


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone.yaml: cannot be read: No such file or directory"):
        load_config(tmp_path / "gone.yaml", [], _JobConfig)


def test_broken_yaml_is_named_with_its_line(tmp_path: Path) -> None:
    assert "job.yaml: is not YAML:" in _error(tmp_path, "input: [a\nb: c")


def test_a_list_is_no_configuration(tmp_path: Path) -> None:
    assert _error(tmp_path, "- a").endswith("job.yaml: must be a mapping of fields, got list")


def test_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    assert "the key 'input' stands twice" in _error(tmp_path, "input: a\ninput: b")


@pytest.mark.parametrize("override", ["input", "=a", "inference..x=1"])
def test_override_without_a_field_is_refused(tmp_path: Path, override: str) -> None:
    assert _error(tmp_path, "input: a", override) == f"--set must be field.path=value, got {override!r}"


def test_override_into_a_value_is_refused(tmp_path: Path) -> None:
    assert _error(tmp_path, "input: a", "input.x=1") == "--set input.x=1: input is no group of fields"


def test_no_file_gives_the_defaults() -> None:
    assert load_config(None, ["input=a"], _JobConfig) == _JobConfig("a")
