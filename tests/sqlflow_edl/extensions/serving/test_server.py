"""`sqlflow serve` as a process: from the command line to its end by a signal."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request

import msgspec


def test_models_are_served_until_a_signal_ends_the_command(source: str) -> None:
    command = [sys.executable, "-m", "sqlflow_edl.cli.main", "serve", "--source", source, "--port", "0"]
    with subprocess.Popen([*command, "--model", "costs"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline(), process.stderr.readline()]
        address = re.search(r"serving costs on (http://127\.0\.0\.1:\d+),", lines[1])
        assert address, lines
        assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:", line) for line in lines)
        body = msgspec.json.encode({"columns": {"amount": [3], "city": ["Oslo"], "is_new": [True]}})
        request = urllib.request.Request(  # noqa: S310 - of the test itself
            f"{address[1]}/v1/models/costs/predict", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            assert list(msgspec.json.decode(answer.read())["predictions"]) == ["cost"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr.read() == "ended\n"
