"""The reference page of attributes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlflow_edl.analysis.settings.reference import page


def test_the_page_in_docs_is_the_one_that_the_tables_make(repository: Path) -> None:
    pytest.importorskip("sqlflow_edl.extensions")  # which add attributes of their statements
    written = (repository / "docs" / "attributes.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m sqlflow_edl.analysis.settings.reference > docs/attributes.md"
