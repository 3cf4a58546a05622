"""Packages that the wheel can be installed beside: `python -m tests.compatible`, as `make compatible` does.

uv resolves the wheel together with the newest release of each package, with the versions of the registry of today;
nothing is installed. The exit code is 1 if a package of the list cannot be installed beside it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.distributions import built

REPOSITORY = Path(__file__).parent.parent
PACKAGES = (
    "snowflake-connector-python",
    "google-cloud-bigquery",
    "mlflow-skinny",
    "dbt-duckdb",
    "dagster",
    "ray",
    "kubeflow",
    "jupyterlab",
)
EXTRAS = ("", "[all]")
ROW = "{:<28} {:<12} {:<14} {:<18} {}"


class UnsolvableError(Exception):
    """No set of releases meets all requirements; the text is the resolver's reason, in one line."""


@dataclass(frozen=True)
class Verdict:
    """reasons: for each of EXTRAS, why its requirements and those of `release` exclude each other, or empty."""

    package: str
    release: str
    reasons: tuple[str, ...]


def resolve(*requirements: str) -> str:
    """Resolve requirements without installing them; the lines `name==version`."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "-"]
    run = subprocess.run(
        [*command, "--python", sys.executable],
        capture_output=True,
        check=False,
        encoding="utf-8",
        input="\n".join(requirements),
    )
    if run.returncode:
        output = " ".join(run.stderr.split())
        first = re.search(r"Because .*?\.(?= And because|$)", output)  # what follows is about our own pins
        raise UnsolvableError(first[0] if first else output)
    return run.stdout


def verdict(wheel: Path, package: str) -> Verdict:
    """Try the newest release of a package, and no earlier one, beside the wheel with each of EXTRAS."""
    [release] = re.findall(rf"^{package}==(\S+)", resolve(package), flags=re.M)
    reasons = []
    for extras in EXTRAS:
        try:
            resolve(f"sqlflow-edl{extras} @ {wheel.as_uri()}", f"{package}=={release}")
            reasons.append("")
        except UnsolvableError as error:
            reasons.append(str(error))
    return Verdict(package, release, tuple(reasons))


def main() -> int:
    """Print a row for each package; the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = built(REPOSITORY, Path(folder) / "wheel")
        print(ROW.format("package", "release", *(f"sqlflow-edl{extras}" for extras in EXTRAS), "reason"))
        verdicts = []
        for package in PACKAGES:
            verdicts.append(verdict(wheel, package))
            answers = ["no" if reason else "yes" for reason in verdicts[-1].reasons]
            reason = next(filter(None, verdicts[-1].reasons), "")
            print(ROW.format(package, verdicts[-1].release, *answers, reason).rstrip(), flush=True)
    return int(any(any(each.reasons) for each in verdicts))


if __name__ == "__main__":
    sys.exit(main())
