"""Whether a request was signed with the secret of its account (the second version of MaxCompute's signatures)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote

_SIGNED = ("content-md5", "content-type", "date")


def authorization(method: str, target: str, headers: Mapping[str, str], account: str, secret: str) -> str:
    """What the header Authorization must say. target: path and query as they were sent, relative to the endpoint."""
    named = {name.lower(): value for name, value in headers.items()}
    signed = {name: named.get(name, "") for name in _SIGNED}
    signed |= {name: value for name, value in named.items() if name.startswith("x-odps-")}
    path, _, query = unquote(target).partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    lines = [method]
    lines += [f"{k}:{v}" if k.startswith("x-odps-") else v for k, v in sorted(signed.items())]
    resource = "&".join(f"{key}={value}" if value else key for key, value in sorted(options.items()))
    lines.append(path + (f"?{resource}" if resource else ""))
    digest = hmac.new(secret.encode(), "\n".join(lines).encode(), hashlib.sha1).digest()
    return f"ODPS {account}:{base64.b64encode(digest).decode()}"
