"""One table of exit codes, in the code and in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from edl import exit_codes


def test_the_documentation_has_the_same_table(repository: Path) -> None:
    text = (repository / "docs" / "jobs.md").read_text()
    table = {int(code): meaning for code, meaning in re.findall(r"^\| (\d+) \| (.*) \|$", text, re.MULTILINE)}
    assert table == exit_codes.MEANING
