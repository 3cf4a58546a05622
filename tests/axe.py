"""axe-core, which finds faults of accessibility in a page: the file of axe-playwright-python, without its browser."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.browser import Chromium

FILE = Path(sys.prefix) / "axe" / "axe_playwright_python" / "axe.min.js"
MISSING = "axe-core is not installed: `make axe` installs it"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_FAULTS = f"""axe.run(document, {{ runOnly: {RULES}, resultTypes: ["violations"] }}).then((found) =>
    found.violations.map((each) => each.id + ": " + each.nodes.slice(0, 4).map((node) =>
        node.target.join(" ") + " " + node.failureSummary.split("\\n").slice(1, 2).join("")).join("; ")))"""


def faults(page: Chromium) -> list[str]:
    """Return what breaks WCAG, A and AA, in the page as it is shown now."""
    page.run(FILE.read_text(encoding="utf-8") + ";0")
    found: list[str] = page.run(_FAULTS)
    return found
