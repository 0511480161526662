"""Tables in pages that hold more than measurements: each stands between two comments that name its command."""

from pathlib import Path

from model_runtime.errors import ConfigError


def put_table(page: Path, command: str, table: str) -> None:
    """Writes a table in place of the one that the command wrote last.

    Raises:
        ConfigError: the page has no place for it.
    """
    begin, end = f"<!-- {command} -->\n", f"<!-- end of {command} -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise ConfigError(f"{page} must hold the lines {begin.strip()!r} and {end.strip()!r}")
    page.write_text(f"{before}{begin}\n{table.strip()}\n\n{end}{after}", encoding="utf-8")
