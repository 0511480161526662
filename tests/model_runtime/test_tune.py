"""Which batch size is best, by given times; what is written into a card; and that packaged models can be measured."""

import shutil
from pathlib import Path

import pytest

from model_runtime.card import PACKAGE_MODELS, load_card
from model_runtime.tune import best_size, main, write_best


@pytest.mark.parametrize(
    ("row_ms", "best"),
    [
        ({1: 1.0, 2: 0.8, 4: 0.7, 8: 0.72, 16: 0.9}, 4),
        ({1: 1.0, 2: 0.99, 4: 0.98}, 1),
        ({1: 1.0, 2: 0.5, 4: 0.49}, 2),
        ({1: 1.0, 2: 0.9, 4: 0.8}, 4),
        ({1: 3.0}, 1),
    ],
)
def test_best_is_the_smallest_size_that_none_beats_by_more_than_three_percent(
    row_ms: dict[int, float], best: int
) -> None:
    assert best_size(row_ms) == best


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a packaged model."""
    return Path(shutil.copytree(PACKAGE_MODELS / "unison-asr-batch", tmp_path / "m"))


def test_what_is_best_is_written_into_the_card_and_nothing_else_changes(folder: Path) -> None:
    card = load_card(str(folder))
    for best in ({"float32": 2, "int8": 4}, {"float32": 8}):
        write_best(load_card(str(folder)), best)
        lines = (folder / "card.yaml").read_text().splitlines()
        assert load_card(str(folder)).best_batch_size == best
        assert sum(line.startswith("best_batch_size:") for line in lines) == 1
    others = [line for line in lines if not line.startswith("best_batch_size:")]
    before = (Path(card.folder) / "card.yaml").read_text().splitlines()
    assert others == [line for line in before if not line.startswith("best_batch_size:")]


def test_a_card_with_an_open_list_keeps_it(folder: Path) -> None:
    path = folder / "card.yaml"
    path.write_text(path.read_text().replace("batch_sizes: any\n", "batch_sizes:\n- 1\n- 4\n"))
    write_best(load_card(str(folder)), {"int8": 4})
    card = load_card(str(folder))
    assert (card.batch_sizes, card.best_batch_size) == ((1, 4), {"int8": 4})


@pytest.mark.parametrize("name", ["unison-vad", "unison-asr-transducer"])
def test_packaged_models_are_measured_in_all_sizes(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(PACKAGE_MODELS / name, tmp_path / "m")
    assert main([str(folder), "--rounds", "1", "--write"]) == 0
    said = capsys.readouterr().out.splitlines()
    best = load_card(str(folder)).best_batch_size
    assert [line.partition(";")[0] for line in said] == [f"{name} {v}: best {size}" for v, size in best.items()]
    assert all(f" {size}: " in line for size in (1, 2, 4, 8, 16, 32) for line in said)


def test_a_model_that_is_not_there_ends_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-model"]) == 1
    assert capsys.readouterr().err.startswith("error: no model 'no-such-model'")
