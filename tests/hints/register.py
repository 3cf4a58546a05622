"""Register of hints: for each site whether a case executes its advice, or why it is prose (`sites.txt`).

`python -m tests.hints` adds the sites that are new, with the verdict `?`, and removes those that are gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from tests.hints.sites import Site

FILE = Path(__file__).parent / "sites.txt"
CASE, NEW = "case", "?"
# Why the advice of a site is not executed by a case.
REASONS = {
    "name": "names what exists: the name that was meant, or the known ones",
    "choice": "says what is possible, and the user chooses: another column, value or name",
    "fact": "explains the error or says where to look; there is nothing to replace",
    "again": "repeats what failed: try again, train again, submit again",
    "code": "asks for another line in a program of the user's, in Python",
    "world": "asks for a change outside of SQL: files, rights, servers, the machine",
    "cluster": "needs a cluster, or pods",
    "job": "needs a job in a state that a test of jobs makes: running, paused, failed",
    "service": "needs a service that does not run here",
    "server": "starts a server, which runs until it is stopped",
    "size": "needs more bytes than a test has: over 2 GB of text in one column",
    "install": "needs an environment without a package",
    "passed": "is passed on from a database or another error",
}
VERDICTS = (CASE, *REASONS)
# SQL, an option of a statement, URL or command, or a command: advice that can be executed. Words that are only
# written in capital letters are none.
ACTIONABLE = re.compile(
    r"\b(?!(?:ID|NULL|UTC|CSV|JSON|NAME|FILE|UTF|URL|ONNX|RFC|NUL|PEM|CUDA|FEATURES)\b)[A-Z]{2,}\b"
    r"|\b(train|model|optimizer|validation|predict|evaluate|explain|auto|forecast|solver)\.(?!py\b)[a-z_]+"
    r"|(?<!\w)--[a-z]\w|`\w+ |\bsqlflow (?!help\b)[a-z]+\b|\bedl [a-z]+\b|pip install|[?]\w+=|^(write|leave) "
)
PASSIVE = (
    "name",
    "choice",
    "fact",
    "again",
    "world",
)  # reasons that advice which can be executed does not have


@cache
def read() -> dict[Site, str]:
    """Verdicts by site."""
    found: dict[Site, str] = {}
    module = ""
    for line in FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else ():
        if line.startswith("["):
            module = line.strip("[]")
        elif line:
            verdict, function, pattern = line.split(" | ", 2)
            found[Site(module, function.strip(), pattern.replace("\\n", "\n"))] = verdict.strip()
    return found


def write(verdicts: Mapping[Site, str], order: Iterable[Site]) -> None:
    lines, module = [], ""
    for site in sorted(order, key=lambda each: each.module):
        if site.module != module:
            module = site.module
            lines += ["", f"[{module}]"]
        pattern = site.pattern.replace("\n", "\\n")
        lines.append(f"{verdicts[site]:7} | {site.function} | {pattern}")
    FILE.write_text("\n".join(lines[1:]) + "\n", encoding="utf-8")
