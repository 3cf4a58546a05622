"""Label of an image with the build of its code, read from the registry before a job is submitted.

The registry is asked over its HTTP API, with the credentials that docker or podman have stored on this machine. It may
be out of reach from here, or the image be on the nodes alone: then the master compares the builds at its start.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec

from edl.build import Build

LABEL = "sqlflow-edl.build"  # the build as JSON
SECS = 3.0  # limit of each request
MOST_BYTES = 4 << 20  # of an answer

_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_DOCKER_HUB = "https://index.docker.io/v1/"  # its name in files of credentials


@dataclass(frozen=True, slots=True)
class ImageName:
    """Name of an image: host:port of its registry, its repository there, and its tag or digest."""

    registry: str
    repository: str
    reference: str

    @property
    def url(self) -> str:
        """URL of the repository. Registries of this machine alone are asked without TLS."""
        host = "registry-1.docker.io" if self.registry == "docker.io" else self.registry
        scheme = "http" if _is_own(host.partition(":")[0]) else "https"
        return f"{scheme}://{host}/v2/{self.repository}"


def parse_image(image: str) -> ImageName | None:
    """Return the parts of the name, or None if it names no registry: such an image is on the nodes."""
    host, slash, rest = image.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        return None
    name, at, digest = rest.partition("@")
    repository, colon, tag = name.rpartition(":")
    if not colon:
        repository, tag = name, "latest"
    return ImageName(host, repository, digest if at else tag)


def label_of(build: Build) -> str:
    """Return the value of the label."""
    return msgspec.json.encode(build).decode()


def read_build(image: str) -> Build | None:
    """Return the build that the label of the image names, or None if it has none, or its registry does not tell."""
    name = parse_image(image)
    if name is None:
        return None
    try:
        return _read_label(_Registry(name))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, msgspec.MsgspecError):
        return None


def _read_label(registry: _Registry) -> Build | None:
    manifest = registry.read_json(f"manifests/{registry.name.reference}")
    if "manifests" in manifest:
        manifest = registry.read_json(f"manifests/{_select(manifest['manifests'])}")
    config = registry.read_json(f"blobs/{manifest['config']['digest']}")
    label = (config["config"].get("Labels") or {}).get(LABEL)
    return msgspec.json.decode(label, type=Build) if label else None


def _select(manifests: list[dict[str, Any]]) -> str:
    """Return the digest of the manifest for Linux on the kind of processor that this machine has, else of any."""
    ours = _MACHINES.get(platform.machine(), platform.machine())
    linux = [one for one in manifests if one.get("platform", {}).get("os") == "linux"] or manifests
    near = [one for one in linux if one.get("platform", {}).get("architecture") == ours] or linux
    return str(near[0]["digest"])


class _Registry:
    """Reader of one repository. Raises OSError or ValueError if it does not answer, or with something else."""

    def __init__(self, name: ImageName) -> None:
        import urllib3  # comes with the client of Kubernetes

        self.name = name
        self._pool = urllib3.PoolManager(timeout=SECS, retries=urllib3.Retry(0, redirect=3))
        self._basic = next(_credentials(name.registry), "")
        self._authorization = ""

    def read_json(self, path: str) -> dict[str, Any]:
        answer, status, challenge = self._get(f"{self.name.url}/{path}", self._authorization)
        if status == 401 and not self._authorization:
            self._authorization = self._answer_challenge(challenge)
            answer, status, _ = self._get(f"{self.name.url}/{path}", self._authorization)
        if status != 200:
            raise ValueError(f"status {status}")
        decoded: dict[str, Any] = msgspec.json.decode(answer, type=dict[str, Any])
        return decoded

    def _answer_challenge(self, challenge: str) -> str:
        """Return the header that the registry asks for: the credentials, or a token that they are exchanged for."""
        scheme, _, rest = challenge.partition(" ")
        if scheme.casefold() == "basic":
            return f"Basic {self._basic}" if self._basic else ""
        asked = dict(_CHALLENGE.findall(rest))
        realm = asked.pop("realm")
        if not realm.startswith("https://") and not self.name.url.startswith("http://"):
            raise ValueError("the credentials would be sent without TLS")
        query = urlencode({name: asked[name] for name in ("service", "scope") if name in asked})
        answer, status, _ = self._get(f"{realm}?{query}", f"Basic {self._basic}" if self._basic else "")
        if status != 200:
            raise ValueError(f"status {status}")
        token = msgspec.json.decode(answer, type=dict[str, Any])
        return f"Bearer {token.get('token') or token['access_token']}"

    def _get(self, url: str, authorization: str) -> tuple[bytes, int, str]:
        """Return the body, its status, and what is asked for in place of it."""
        from urllib3.exceptions import HTTPError

        headers = {"Accept": ", ".join((*_MANIFESTS, *_INDEXES))}
        if authorization:
            headers["Authorization"] = authorization
        try:
            answer = self._pool.request("GET", url, headers=headers, preload_content=False)
            try:
                body = answer.read(MOST_BYTES)
            finally:
                answer.release_conn()
        except HTTPError as error:
            raise OSError(str(error)) from None
        return body, answer.status, answer.headers.get("WWW-Authenticate", "")


def _credentials(registry: str) -> Iterator[str]:
    """Yield the stored credentials for a registry, as they follow `Basic`."""
    config = Path(os.environ.get("DOCKER_CONFIG", "") or Path.home() / ".docker") / "config.json"
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", "") or "/run") / "containers" / "auth.json"
    names = (registry, f"https://{registry}", *([_DOCKER_HUB] if registry == "docker.io" else ()))
    for path in (config, runtime):
        try:
            stored = msgspec.json.decode(path.read_bytes(), type=dict[str, Any]).get("auths", {})
            for name in names:
                if auth := stored.get(name, {}).get("auth"):
                    base64.b64decode(auth, validate=True)
                    yield auth
        except (OSError, msgspec.MsgspecError, AttributeError, binascii.Error):
            continue


def _is_own(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
