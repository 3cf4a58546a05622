"""Audit of the pinned packages: a finding fails it, and without the service it is skipped."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.audit import command, verdict

ADVISORY = {
    "id": "PYSEC-2026-1",
    "summary": "a text",
    "published": "2026-01-01T00:00:00Z",
    "modified": "2026-01-01T00:00:00Z",
    "aliases": ["CVE-2026-1"],
    "affected": [
        {
            "package": {"name": "lark", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.2.3"}]}],
        }
    ],
}

FOUND = {"id": "X-1", "aliases": [], "fix_versions": []}
WEAK = json.dumps({"dependencies": [{"name": "b", "version": "2", "vulns": [FOUND]}]})


class Service(BaseHTTPRequestHandler):
    """The query of OSV, which knows one advisory."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps({"vulns": [ADVISORY]} if asked["package"]["name"] == "lark" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def service() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/query"
        finally:
            server.shutdown()
            thread.join()


def audited(pins: str, url: str, folder: Path) -> tuple[int, str]:
    (folder / "pins.txt").write_text(pins)
    said = subprocess.run(command(folder / "pins.txt", url, offline=True), capture_output=True, text=True)
    if "--offline" in said.stderr or "not found in the cache" in said.stderr:
        pytest.skip("pip-audit is not in the cache of uv: run make audit")
    return verdict(said.stdout, said.stderr)


@pytest.mark.soak
def test_a_weak_package_fails_it_and_is_named_with_its_advisory(tmp_path: Path) -> None:
    with service() as url:
        code, text = audited("msgspec==0.19.0\nlark==1.2.2\n", url, tmp_path)
        assert (code, text) == (1, "lark 1.2.2: PYSEC-2026-1, CVE-2026-1, fixed in 1.2.3")
        assert audited("msgspec==0.19.0\n", url, tmp_path) == (
            0,
            "audit: no known weakness, packages: 1",
        )
    code, text = audited("msgspec==0.19.0\n", url, tmp_path)
    assert (code, text) == (0, "audit skipped: the advisory service cannot be reached")


@pytest.mark.parametrize(
    ("output", "errors", "code", "text"),
    [
        (
            WEAK,
            "Found 1 known vulnerability in 1 package",
            1,
            "b 2: X-1, fixed in no version",
        ),
        (
            '{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}',
            "",
            0,
            "audit: no known weakness",
        ),
        ("", "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='x')", 0, "audit skipped"),
        (
            "",
            "error: Failed to fetch: `https://x/simple/pip-audit/`\n  Caused by: dns error",
            0,
            "audit skipped",
        ),
        ("", "ERROR: a: Dependency not found on PyPI and could not be audited", 1, "audit failed:\nERROR: a"),
    ],
)
def test_what_pip_audit_says_is_a_verdict(output: str, errors: str, code: int, text: str) -> None:
    found = verdict(output, errors)
    assert (found[0], found[1].startswith(text)) == (code, True)
