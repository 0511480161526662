"""Batches of the job with its real models: full enough, with little padding, and without a trace in the answers."""

import json
from pathlib import Path

import pyarrow.parquet as pq

from pipelines.batch import main
from pipelines.run_record import read_record

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


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
