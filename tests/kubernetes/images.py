"""Images: the node has every one but a few, and what it says of those is what containerd says.

It has none that is called `none`, none of `missing/…` and none of a registry whose host ends in `.invalid`.
"""

from __future__ import annotations

from typing import NamedTuple

DENIED = (
    "pull access denied, repository does not exist or may require authorization: server message: "
    "insufficient_scope: authorization failed"
)
NO_NETWORK = "dial udp 192.0.2.53:53: connect: network is unreachable"


class Reason(NamedTuple):
    """Why a container waits."""

    reason: str
    message: str = ""


def problem(image: str, policy: str) -> Reason | None:
    """None: the image is there, or has been pulled."""
    if image != image.lower():
        wrong = f"invalid reference format: repository name (library/{image}) must be lowercase"
        why = f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {wrong}'
        return Reason("InvalidImageName", why)
    if _is_here(image) and policy != "Always":
        return None
    if policy == "Never":
        why = f'Container image "{image}" is not present with pull policy of Never'
        return Reason("ErrImageNeverPull", why)
    refusal = _refusal(image)
    if refusal is None:
        return None
    unresolved = f'failed to resolve reference "{_qualified(image)}": {refusal}'
    return Reason("ErrImagePull", f'failed to pull and unpack image "{_qualified(image)}": {unresolved}')


def backing_off(image: str, failed: Reason) -> Reason:
    """Between two attempts to pull it."""
    return Reason("ImagePullBackOff", f'Back-off pulling image "{image}": {failed.reason}: {failed.message}')


def _is_here(image: str) -> bool:
    repository = image.rpartition("/")[2].partition(":")[0]
    return repository != "none" and not image.startswith("missing/") and not _host(image).endswith(".invalid")


def _host(image: str) -> str:
    first, slash, _ = image.partition("/")
    is_host = slash and (first == "localhost" or "." in first or ":" in first)
    return first if is_host else "docker.io"


def _qualified(image: str) -> str:
    if _host(image) != "docker.io" or image.startswith("docker.io/"):
        return image
    return f"docker.io/{image if '/' in image else 'library/' + image}"


def _refusal(image: str) -> str | None:
    host = _host(image)
    repository, _, tag = image.removeprefix(f"{host}/").partition(":")
    manifest = f"{host}/v2/{repository}/manifests/{tag or 'latest'}"
    if host == "localhost":
        refused = "dial tcp registry.example:80: connect: connection refused"
        return f'failed to do request: Head "http://{manifest}": {refused}'
    if host.endswith(".invalid"):
        lost = f"dial tcp: lookup {host} on 192.0.2.53:53: {NO_NETWORK}"
        return f'failed to do request: Head "https://{manifest}": {lost}'
    return None if _is_here(image) else DENIED
