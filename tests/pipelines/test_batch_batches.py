"""Batches of the job with its real models: full enough, with little padding, and without a trace in the answers."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.batch import main
from pipelines.run_record import read_record
from transforms.clip_process import ClipProcess
from transforms.clip_protocol import Settings

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"


def test_batches_are_full_with_little_padding_and_rows_do_not_know_their_neighbours(tmp_path: Path) -> None:
    """Forty clips of mixed lengths; batches of 8, and of 1 in another order."""
    clips = sorted(path for path in SAMPLES.iterdir() if path.suffix in (".wav", ".flac")) * 5
    parts = [(path, number % 5 / 10) for number, path in enumerate(clips)]
    for order, batch_size in ((parts, 8), (parts[::-1], 1)):
        lines = [json.dumps({"audio_filepath": str(path), "offset": offset}) for path, offset in order]
        (tmp_path / "m.jsonl").write_text("\n".join(lines))
        output = tmp_path / str(batch_size)
        settings = (f"input={tmp_path}/m.jsonl", f"output={output}", f"inference.batch_size={batch_size}")
        assert main([part for setting in settings for part in ("--set", setting)]) == 0
    record = read_record(tmp_path / "8")
    assert record is not None and record.batch_rows is not None and record.padding_share is not None
    assert record.batch_rows > 4
    assert 0 < record.padding_share < 0.15
    texts = []
    for batch_size in (8, 1):
        rows = pq.read_table(tmp_path / str(batch_size) / "results.parquet").to_pylist()
        texts.append({(row["audio_filepath"], row["offset"]): (row["pred_text"], row["words"]) for row in rows})
    assert texts[0] == texts[1]


def test_a_model_that_is_fixed_to_a_batch_size_is_run_with_it_and_all_say_so(
    shared: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """DTLN takes one row at a time; the vad beside it takes any number."""
    shutil.copytree(ROOT / "docs" / "cards" / "dtln", tmp_path / "dtln")
    for file in (shared / "data" / "models" / "dtln").glob("*.tflite"):
        shutil.copy(file, tmp_path / "dtln")
    (tmp_path / "recipe.yaml").write_text("name: r\ndenoise: {model: ./dtln}\nvad: {model: unison-vad}\n")
    texts = []
    for batch_size, fixed in ((4, {"dtln": 1}), (1, {})):
        output = tmp_path / str(batch_size)
        settings = [f"input={SAMPLES}/*.wav", f"output={output}", f"inference.batch_size={batch_size}"]
        settings += [f"recipe={tmp_path / 'recipe.yaml'}", "enhanced.write=true"]
        assert main([part for setting in settings for part in ("--set", setting)]) == 0
        record, said = read_record(output), capfd.readouterr()
        assert record is not None and record.fixed_batch_sizes == fixed
        assert said.err.count("model dtln is fixed to batch size 1 and is run with that, not with 4") == len(fixed)
        assert (" rows, dtln fixed to 1, devices: " in said.out) == bool(fixed)
        assert ("dtln takes no other" in (output / "report.html").read_text("utf-8")) == bool(fixed)
        texts.append([row["segments"] for row in pq.read_table(output / "results.parquet").to_pylist()])
    assert texts[0] == texts[1] and any(texts[0])


def test_two_workers_are_two_processes_with_models_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are started from this very process; workers in processes of their own would start them there."""
    started: list[ClipProcess] = []
    start = ClipProcess.__init__

    def count(process: ClipProcess, settings: Settings) -> None:
        started.append(process)
        start(process, settings)

    monkeypatch.setattr(ClipProcess, "__init__", count)
    lines = [json.dumps({"audio_filepath": str(SAMPLES / "lift.wav"), "n": n}) for n in range(40)]
    (tmp_path / "m.jsonl").write_text("\n".join(lines))
    settings = [f"input={tmp_path}/m.jsonl", f"output={tmp_path / 'out'}", "recipe=segment", "reading.rows_per_slice=1"]
    switches = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    assert main([part for setting in settings for part in ("--set", setting)] + switches) == 0
    assert len(started) == 2
    rows = pq.read_table(tmp_path / "out" / "results.parquet").to_pylist()
    assert [row["n"] for row in rows] == list(range(40))
    assert len({str(row["segments"]) for row in rows}) == 1
