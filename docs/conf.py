"""Settings of Sphinx for `make docs`: the pages of docs/ and of the repository's root, as they link to each other.

The source folder is the root of the repository, so a link is the same path in the site and in the repository. The
navigation follows the headings and links of docs/index.md.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from sphinx.application import Sphinx

project = "sqlflow-edl"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"]
exclude_patterns = ["README.md"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["misc.highlighting_failure"]  # `…` in examples of YAML and TOML
html_theme = "furo"
html_title = project
html_copy_source = False
html_show_copyright = False
_LINK = re.compile(r"^\| \[([^\]]+)\]\(([^)#]+)\.md\)", re.MULTILINE)


def setup(app: Sphinx) -> None:
    """Connect the navigation."""
    app.connect("source-read", add_navigation)


def add_navigation(app: Sphinx, document: str, source: list[str]) -> None:
    """Append the tables of contents to the index, one for each of its sections with pages."""
    if document == root_doc:
        source[0] += "\n".join(["", *_tables_of_contents(source[0])])


def _tables_of_contents(index: str) -> Iterator[str]:
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        pages = [f"/{posixpath.normpath(f'docs/{path}')}" for _, path in _LINK.findall(section)]
        caption = section.splitlines()[0]
        if not pages:
            continue
        yield "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```"])
