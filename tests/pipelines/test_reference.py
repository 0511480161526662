"""The page of all configuration fields is the code's own."""

from pathlib import Path

from pipelines.reference import reference

PAGE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"


def test_the_committed_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference()


def test_every_field_has_a_meaning() -> None:
    rows = [line.split(" | ") for line in reference().splitlines() if line.startswith("| `")]
    assert len(rows) > 60
    assert [row[0] for row in rows if not row[-1].strip(" |")] == []
