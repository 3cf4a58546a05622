"""TLS to MySQL and MariaDB. Where the options of the URL ask for it, the server's certificate and name are verified."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import cache

from edl.errors import SourceError

OPTIONS = ("ssl", "ssl_ca", "ssl_cert", "ssl_key")

_HINTS = (
    ("certificate is not valid for", "write the host as the server's certificate has it"),
    ("CERTIFICATE_VERIFY_FAILED", "name the file with the server's authority: ssl_ca=/path/to/ca.pem"),
    ("server doesn't support it", "enable TLS on the server, or leave the ssl options out"),
)


def context(options: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the TLS context, or None if the driver decides.

    Raises SourceError for a bad option or unreadable file.
    """
    asked = options.get("ssl", "true")
    files = {option: options[option] for option in OPTIONS[1:] if option in options}
    if asked not in ("true", "false"):
        raise SourceError(f"the option ssl is {asked!r}", hint="write ssl=true or ssl=false")
    if asked == "false" and files:
        raise SourceError(f"{next(iter(files))} is given, and ssl=false", hint="leave one of them out")
    if "ssl_key" in files and "ssl_cert" not in files:
        raise SourceError("ssl_key is given without a certificate", hint="give the certificate as ssl_cert")
    if asked == "false" or not any(option in options for option in OPTIONS):
        return None
    try:
        new_context = ssl.create_default_context(cafile=files.get("ssl_ca"))
        if "ssl_cert" in files:
            new_context.load_cert_chain(files["ssl_cert"], files.get("ssl_key"), password=_no_password)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        shown = ", ".join(f"{option} ({path})" for option, path in files.items())
        raise SourceError(f"{shown} cannot be used for TLS: {error}", hint="give PEM files") from None
    return new_context


@cache
def if_offered() -> ssl.SSLContext:
    """Return the context of connections without TLS options: like MySQL's client, they verify nothing."""
    new_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    new_context.check_hostname = False
    new_context.verify_mode = ssl.CERT_NONE
    return new_context


def hint(message: str) -> str | None:
    """Return a hint for an error that retries cannot fix."""
    return next((hint for said, hint in _HINTS if said in message), None)


def _no_password() -> str:
    """Fail instead of prompting for the password of a key."""
    raise ValueError("the key is encrypted")
