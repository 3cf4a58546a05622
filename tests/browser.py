"""A headless Chromium, driven over a pipe by its DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

MISSING = "Chromium is not installed: as root, `make test-all` installs Debian's package"
SECONDS = 20  # until an expression that waits is given up


class NavigatedError(Exception):
    """Another page was loaded while an expression waited."""


def chromium() -> str | None:
    """Return the path of the browser, or None if it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Chromium:
    """A browser with one page."""

    def __init__(self, program: str, profile: Path) -> None:
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()

        def connect() -> None:  # the protocol wants these two numbers
            first, second = os.dup(requests), os.dup(answers)
            os.dup2(first, 3)
            os.dup2(second, 4)

        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
        ]
        self._process = subprocess.Popen(
            [program, *options, f"--user-data-dir={profile}", "about:blank"],
            close_fds=False,
            preexec_fn=connect,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(requests)
        os.close(answers)
        self._rest = b""
        self._number = 0
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol and return its result."""
        self._number += 1
        request = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            request["sessionId"] = self._session
        os.write(self._requests, json.dumps(request).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "navigated" in answer.get("error", {}).get("message", ""):
                    raise NavigatedError
                assert "result" in answer, answer
                return answer["result"]

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            piece = os.read(self._answers, 1 << 16)
            assert piece, "the browser has ended"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def window(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the page, and whether the user wants it dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        """Load a page and run its scripts."""
        self.call("Page.navigate", url=url)
        wanted = json.dumps(url.partition("#")[0])
        self.until(f"document.readyState === 'complete' && location.href.split('#')[0] === {wanted}")

    def run(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, awaited."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = SECONDS) -> None:
        """Wait until the expression is true, also on the next page."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(NavigatedError):
                if self.run(f"new Promise((done) => setTimeout(() => done(Boolean({expression})), 50))"):
                    return
        raise AssertionError(f"never true: {expression}")

    def picture(self) -> bytes:
        """Return the visible part of the page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._requests)
        os.close(self._answers)
        self._process.terminate()
        self._process.wait()
