"""A kubeconfig, as users have one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def write_kubeconfig(path: Path, url: str, token: str, namespace: str = "") -> None:
    """With one context."""
    place: dict[str, Any] = {"cluster": "c", "user": "u", **({"namespace": namespace} if namespace else {})}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": place}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": token}}],
    }
    path.write_text(yaml.safe_dump(config))
