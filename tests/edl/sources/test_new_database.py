"""Database that one file adds: the other tests of this folder run on it, and it stays short."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures.databases import granite

LONGEST = 300  # lines of its file


def test_its_file_is_short_and_uses_no_other_database() -> None:
    text = Path(granite.__file__).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert not any(
        f"import edl.sources.{name}" in text for name in ("sqlite", "duckdb", "mysql", "maxcompute")
    )
    assert not any(f"from edl.sources.{name}" in text for name in ("sqlite", "duckdb", "mysql", "maxcompute"))
