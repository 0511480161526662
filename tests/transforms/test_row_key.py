"""Keys of rows: the same for the same work, another for any other."""

import os
from pathlib import Path

import pytest
import yaml

from model_runtime.card import load_card
from model_runtime.devices import RouteConfig
from model_runtime.recipe import PACKAGE_RECIPES
from model_runtime.tune import write_best
from transforms.records import ClipRow
from transforms.row_key import row_key, work_fingerprint

ROW = ClipRow(3, 1, "m line 1", "/m.jsonl", b'{"a": 1}', path="/gone.wav", start_s=1.0, duration_s=2.0)
EMBEDDED = ROW._replace(path="", data=b"RIFF")


def test_key_is_the_same_in_every_run() -> None:
    assert row_key(ROW, "w") == "cf959f33cda26cbdfde0a552facccb2b"


@pytest.mark.parametrize(
    "change",
    [
        {"row": 2},
        {"source_path": "/n.jsonl"},
        {"columns": b"{}"},
        {"start_s": 0.5},
        {"duration_s": None},
        {"data": b"RIFG"},
        {"sample_rate_hz": 8000},
        {"error": "is not JSON"},
    ],
)
def test_any_change_of_a_row_changes_its_key(change: dict[str, object]) -> None:
    assert row_key(EMBEDDED._replace(**change), "w") != row_key(EMBEDDED, "w")  # type: ignore[arg-type]


def test_other_work_changes_the_key_and_the_place_in_the_input_does_not() -> None:
    assert row_key(ROW, "v") != row_key(ROW, "w")
    assert row_key(ROW._replace(source=9, name="other"), "w") == row_key(ROW, "w")


def test_file_that_is_written_anew_changes_the_key(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    row = ROW._replace(path=str(path))
    keys = [row_key(row, "w")]
    for text, time_ns in (("1", 1_000), ("2", 2_000), ("22", 2_000)):
        path.write_text(text)
        os.utime(path, ns=(time_ns, time_ns))
        keys.append(row_key(row, "w"))
    assert len(set(keys)) == 4
    assert row_key(row, "w") == keys[-1]


def test_fingerprint_follows_recipe_variants_settings_and_not_devices() -> None:
    same = work_fingerprint("segment", RouteConfig(), ("x",))
    assert work_fingerprint("segment", RouteConfig(threads=4), ("x",)) == same
    others = [
        work_fingerprint("batch", RouteConfig(), ("x",)),
        work_fingerprint("segment", RouteConfig(variants=("int8",)), ("x",)),
        work_fingerprint("segment", RouteConfig(), ("y",)),
    ]
    assert len({same, *others}) == 4


def test_fingerprint_follows_the_bytes_of_the_model_files(tmp_path: Path) -> None:
    recipe = yaml.safe_load((PACKAGE_RECIPES / "segment.yaml").read_text())
    card = load_card(recipe["vad"]["model"])
    folder = tmp_path / "model"
    folder.mkdir()
    for file in Path(card.folder).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    recipe["vad"]["model"] = "./model"
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(recipe))
    before = work_fingerprint(str(tmp_path / "r.yaml"), RouteConfig(), ())
    assert work_fingerprint(str(tmp_path / "r.yaml"), RouteConfig(), ()) == before
    # What is only about speed spoils nothing that is finished.
    write_best(load_card(str(folder)), {"float32": 3})
    assert work_fingerprint(str(tmp_path / "r.yaml"), RouteConfig(), ()) == before
    with next(folder.glob("*.tflite")).open("ab") as file:
        file.write(b"\0")
    assert work_fingerprint(str(tmp_path / "r.yaml"), RouteConfig(), ()) != before
