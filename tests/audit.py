"""Audit of the pinned packages, a part of `make lint`: `python -m tests.audit` asks OSV for their known weaknesses.

pip-audit runs in an environment of its own, which uv makes. A finding is exit code 1; where the service cannot be
reached, the audit is skipped, which is said. --osv-url names another service with the interface of OSV.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

PIP_AUDIT = "pip-audit==2.10.1"
PINS = Path(__file__).parents[1] / "constraints.txt"
_UNREACHABLE = re.compile(
    r"ConnectionError|ConnectTimeout|ReadTimeout|ProxyError|[Cc]ould not connect|[Ff]ailed to fetch|dns error"
)


def command(pins: Path, osv_url: str = "", *, offline: bool = False) -> list[str]:
    """Return the command. offline: take pip-audit from the cache of uv."""
    found = [str(Path(sys.executable).with_name("uv")), *(["--offline"] if offline else [])]
    found += ["tool", "run", PIP_AUDIT, "--strict", "--no-deps", "--disable-pip", "--requirement", str(pins)]
    found += ["--format", "json", "--progress-spinner", "off", "--vulnerability-service", "osv"]
    return [*found, "--osv-url", osv_url] if osv_url else found


def verdict(output: str, errors: str) -> tuple[int, str]:
    """Return exit code and text for what pip-audit wrote on stdout and stderr."""
    try:
        packages = json.loads(output)["dependencies"]
    except ValueError:
        if _UNREACHABLE.search(errors):
            return 0, "audit skipped: the advisory service cannot be reached"
        return 1, f"audit failed:\n{errors}"
    weak = [
        f"{package['name']} {package['version']}: {', '.join([each['id'], *each['aliases']])}"
        f", fixed in {', '.join(each['fix_versions']) or 'no version'}"
        for package in packages
        for each in package["vulns"]
    ]
    return (1, "\n".join(weak)) if weak else (0, f"audit: no known weakness, packages: {len(packages)}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.audit", description=__doc__)
    parser.add_argument("--osv-url", default="", help="service to ask in place of OSV")
    said = subprocess.run(command(PINS, parser.parse_args().osv_url), capture_output=True, text=True)
    code, text = verdict(said.stdout, said.stderr)
    print(text)
    sys.exit(code)


if __name__ == "__main__":
    main()
