"""Mutual TLS between the instances of a job: its certificate authority, and the one certificate that all of them have.

EDL_TLS names a folder with three files in PEM. A process that has the variable calls, and answers, no peer without a
certificate from this authority; without it, calls are plain.

ca.crt   certificate of the authority; no process has its key
tls.crt  certificate of every instance, for the name `NAME`
tls.key  its key
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edl.errors import SpecError

VARIABLE = "EDL_TLS"
NAME = "instance.edl"
AUTHORITY, CERTIFICATE, KEY = FILES = ("ca.crt", "tls.crt", "tls.key")

NOT_ACCEPTED = "it ends TLS connections of this process, whose certificate may not be one of its job"
_PLAIN = "WRONG_VERSION_NUMBER"
_SIGNS = ("ALERT", "CERTIFICATE", "HANDSHAKE FAILED", "SIGNATURE", "SSL_ERROR")


@dataclass(frozen=True, slots=True)
class TLSIdentity:
    """Identity of an instance: the content of the three files."""

    folder: Path
    authority: bytes
    certificate: bytes
    key: bytes = field(repr=False)

    def context(self) -> ssl.SSLContext:
        """Return the context of a connection to a peer, which both sides verify."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.authority.decode("ascii"))
        context.load_cert_chain(self.folder / CERTIFICATE, self.folder / KEY)
        context.set_alpn_protocols(["h2"])
        return context


def identity(environment: Mapping[str, str] = os.environ) -> TLSIdentity | None:
    """Return the identity of this process; None if its calls are plain. Raises SpecError if a file cannot be read."""
    if not (name := environment.get(VARIABLE)):
        return None
    folder = Path(name)
    try:
        return TLSIdentity(folder, *((folder / file).read_bytes() for file in FILES))
    except OSError as error:
        raise SpecError(
            f"the calls of this job are encrypted, and {error.filename} cannot be read: {error.strerror}"
        ) from None


def refusal(reason: str) -> str:
    """Return why TLS with a peer fails, from the text of OpenSSL's error; empty if the error is another one."""
    upper = reason.upper()
    if _PLAIN in upper:
        return "it does not speak TLS, with which the calls of this job are encrypted"
    if "ALERT" in upper:
        return NOT_ACCEPTED
    if any(sign in upper for sign in _SIGNS):
        return "its TLS certificate is not one of this job"
    return ""
