"""Texts that may hold a password, and are therefore kept in no file."""

from __future__ import annotations

import re

# Words that stand beside a password, and `user:password@` of a URL. Rather too much is excluded than too little.
_SECRET = re.compile(
    r"passw|passphrase|\bpwd\b|identified|secret|credential|token|api_?key|access_?key|://[^/\s]*:[^/\s]*@",
    re.IGNORECASE,
)


def holds_secret(text: str) -> bool:
    """Return True if the text may contain a password."""
    return bool(_SECRET.search(text))
