"""Labels of images: what a registry tells of their build, over its own protocol."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from edl.build import Build, present_build
from edl.errors import ClusterError
from sqlflow_edl.backends.images.registry import LABEL, ImageName, label_of, parse_image, read_build
from sqlflow_edl.backends.kubernetes import submit

BUILD = Build("0.1.0", "0123456789ab", 1)
ACCOUNT = base64.b64encode(b"ann:pa55").decode()


class Registry:
    """A registry with images of the repository `team/models`. `private`: a token is needed, and an account for one."""

    def __init__(self) -> None:
        self.private = False
        self.blobs: dict[str, bytes] = {}
        self.asked: list[str] = []
        ours = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                ours.asked.append(self.path)
                status, headers, body = ours.answer(self.path, self.headers.get("Authorization", ""))
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        if path.startswith("/token"):
            if authorization != f"Basic {ACCOUNT}":
                return 401, {}, b"{}"
            return 200, {}, json.dumps({"token": "t0ken"}).encode()
        if self.private and authorization != "Bearer t0ken":
            realm = (
                f'Bearer realm="http://{self.host}/token",service="here",scope="repository:team/models:pull"'
            )
            return 401, {"WWW-Authenticate": realm}, b"{}"
        body = self.blobs.get(path.rpartition("/")[2])
        return (200, {}, body) if body is not None else (404, {}, b"{}")

    def add(self, content: dict[str, Any], *tags: str) -> dict[str, Any]:
        body = json.dumps(content).encode()
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        self.blobs |= dict.fromkeys((digest, *tags), body)
        return {"digest": digest, "size": len(body)}

    def add_image(self, labels: dict[str, str] | None, *tags: str) -> dict[str, Any]:
        return self.add({"config": self.add({"config": {"Labels": labels}}), "layers": []}, *tags)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    made = Registry()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("ghcr.io/team/models:7", ImageName("ghcr.io", "team/models", "7")),
        ("localhost:5000/models", ImageName("localhost:5000", "models", "latest")),
        ("ghcr.io/models:7@sha256:ab", ImageName("ghcr.io", "models", "sha256:ab")),
        ("docker.io/library/debian", ImageName("docker.io", "library/debian", "latest")),
    ],
)
def test_an_image_names_its_registry(image: str, parts: ImageName) -> None:
    assert parse_image(image) == parts


@pytest.mark.parametrize("image", ["sqlflow-edl:0.1.0", "team/models:7", "models"])
def test_no_registry_is_asked_for_an_image_that_names_none(image: str) -> None:
    assert parse_image(image) is None
    assert read_build(image) is None


def test_registries_elsewhere_are_asked_with_tls_alone() -> None:
    assert (
        ImageName("docker.io", "library/debian", "12").url == "https://registry-1.docker.io/v2/library/debian"
    )
    assert ImageName("10.0.0.7:5000", "models", "7").url == "https://10.0.0.7:5000/v2/models"
    assert ImageName("localhost:5000", "models", "7").url == "http://localhost:5000/v2/models"


def test_the_label_tells_the_build(registry: Registry) -> None:
    registry.add_image({LABEL: label_of(BUILD)}, "7")
    assert read_build(f"{registry.host}/team/models:7") == BUILD


def test_of_an_image_for_several_machines_the_one_for_linux_tells_it(registry: Registry) -> None:
    other, ours = (registry.add_image({LABEL: label_of(build)}) for build in (Build("0.0.9"), BUILD))
    platforms = [{**other, "platform": {"os": "windows"}}, {**ours, "platform": {"os": "linux"}}]
    registry.add({"manifests": platforms}, "7")
    assert read_build(f"{registry.host}/team/models:7") == BUILD


def test_a_private_registry_is_asked_with_the_stored_account(registry: Registry, tmp_path: Path) -> None:
    registry.private = True
    registry.add_image({LABEL: label_of(BUILD)}, "7")
    assert read_build(f"{registry.host}/team/models:7") is None
    (tmp_path / "config.json").write_text(json.dumps({"auths": {registry.host: {"auth": ACCOUNT}}}))
    assert read_build(f"{registry.host}/team/models:7") == BUILD
    assert "/token?service=here&scope=repository%3Ateam%2Fmodels%3Apull" in registry.asked


@pytest.mark.parametrize("labels", [None, {}, {"other": "7"}, {LABEL: "no JSON"}])
def test_an_image_without_the_label_tells_nothing(registry: Registry, labels: dict[str, str] | None) -> None:
    registry.add_image(labels, "7")
    assert read_build(f"{registry.host}/team/models:7") is None


def test_neither_does_a_registry_without_the_image_or_without_an_answer(registry: Registry) -> None:
    assert read_build(f"{registry.host}/team/models:7") is None
    registry.blobs["7"] = b"<html>"
    assert read_build(f"{registry.host}/team/models:7") is None
    registry.close()
    assert read_build(f"{registry.host}/team/models:7") is None


def test_an_image_of_another_protocol_is_refused_before_anything_is_made(registry: Registry) -> None:
    image = f"{registry.host}/team/models:7"
    client = present_build()
    other = Build("0.1.0", "ba9876543210", client.protocol + 1)
    registry.add_image({LABEL: label_of(other)}, "7")
    with pytest.raises(
        ClusterError, match=f"the image {image} has sqlflow-edl 0.1.0, build ba9876543210, which does"
    ):
        submit.check_image(image)
    registry.add_image({LABEL: label_of(client)}, "8")
    submit.check_image(f"{registry.host}/team/models:8")
