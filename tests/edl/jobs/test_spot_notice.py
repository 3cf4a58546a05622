"""The notice that a machine is taken away, from a file and from doubles of the metadata of clouds."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from edl.errors import SemanticError
from edl.jobs import spot_notice
from edl.jobs.spot_notice import CLOUDS, VARIABLE, InstanceMetadata, watching_for_spot_notice
from edl.jobs.termination import TerminatedError, terminating

SECONDS = 30.0


class MetadataServer(ThreadingHTTPServer):
    """Metadata of a machine: a notice, 404 without one, and 401 without the token of `token` headers."""

    answer: str | None = None
    required: tuple[str, str] | None = None
    tokens = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.asked = threading.Event()
        self.paths: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: MetadataServer

    def do_PUT(self) -> None:
        assert self.path == "/latest/api/token"
        assert any(name.lower().endswith("-token-ttl-seconds") for name in self.headers)
        self.server.tokens += 1
        self.reply(200, "secret")

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.server.asked.set()
        required = self.server.required
        if required and self.headers.get(required[0]) != required[1]:
            self.reply(401, "")
        elif self.server.answer is None:
            self.reply(404, "not found")
        else:
            self.reply(200, self.server.answer)

    def reply(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args: object) -> None:
        """Be silent."""


@pytest.fixture
def server() -> Iterator[MetadataServer]:
    with MetadataServer() as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def short_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spot_notice, "INTERVAL_SECS", 0.01)


def wait_for_sigterm() -> None:
    with pytest.raises(TerminatedError), terminating():
        threading.Event().wait(SECONDS)
        pytest.fail("the notice has no effect")


def test_a_command_is_terminated_when_the_file_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notice = tmp_path / "notice"
    monkeypatch.setenv(VARIABLE, str(notice))
    writer = threading.Timer(0.05, notice.touch)
    writer.start()
    wait_for_sigterm()
    writer.join()


def test_a_command_does_not_look_if_its_on_term_cancels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    threads = threading.active_count()
    with terminating(cancels=True):
        assert threading.active_count() == threads


@pytest.mark.parametrize(
    "cloud, answer, required",
    [
        (
            "aws",
            '{"action": "terminate", "time": "2026-11-29T08:22:00Z"}',
            ("X-aws-ec2-metadata-token", "secret"),
        ),
        ("gcp", "TRUE", ("Metadata-Flavor", "Google")),
        ("alibaba", "2026-11-29T08:22:00Z", ("X-aliyun-ecs-metadata-token", "secret")),
    ],
)
def test_the_metadata_of_a_cloud_is_asked_as_it_wants_to_be(
    server: MetadataServer,
    monkeypatch: pytest.MonkeyPatch,
    cloud: str,
    answer: str,
    required: tuple[str, str],
) -> None:
    server.required = required
    monkeypatch.setitem(CLOUDS, cloud, replace(CLOUDS[cloud], address=server.address, _tokens={}))
    server.answer = "FALSE" if cloud == "gcp" else None
    assert not CLOUDS[cloud].is_given()
    server.answer = answer
    monkeypatch.setenv(VARIABLE, cloud)
    wait_for_sigterm()
    assert set(server.paths) == {CLOUDS[cloud].path}
    assert server.tokens == (0 if cloud == "gcp" else 1)


def test_a_token_that_is_too_old_is_replaced(server: MetadataServer) -> None:
    server.required = ("X-token", "secret")
    metadata = InstanceMetadata(server.address, "/notice", prefix="X-token", _tokens={"X-token": "old"})
    assert not metadata.is_given()
    assert server.tokens == 1


def test_an_address_that_does_not_answer_is_named_once_and_asked_again(
    server: MetadataServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setenv(VARIABLE, f"{server.address}/notice")
    server.required = ("X-token", "secret")
    with watching_for_spot_notice(said.append):
        for _ in range(3):
            assert server.asked.wait(SECONDS)
            server.asked.clear()
    [line] = said
    assert line.startswith(
        f"{VARIABLE}: {server.address}/notice cannot be asked (HTTP status 401); it is asked again"
    )


@pytest.mark.parametrize(
    "setting, hint",
    [("asw", "did you mean aws?"), ("ftp://metadata/notice", None), ("notice.txt", None)],
)
def test_what_cannot_be_asked_is_an_error(
    setting: str, hint: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, setting)
    with (
        pytest.raises(SemanticError, match="expected aws, gcp, alibaba, an address") as caught,
        terminating(),
    ):
        pass
    assert caught.value.hint == hint


def test_nothing_is_watched_without_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    threads = threading.active_count()
    with watching_for_spot_notice(print):
        assert threading.active_count() == threads
    assert VARIABLE not in os.environ
