"""Join token of a job on several machines, and its proofs.

The token is a secret that all machines of a job have: in a file that they share, or in the variable EDL_JOIN_TOKEN. It
never goes over the wire. Each side sends an HMAC with it over the fingerprint of the certificate of the connection, so
that nobody in between, who would have another certificate, can use the proof.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import ssl
import stat
from pathlib import Path
from typing import Literal

from edl.errors import SemanticError
from edl.tls import CERTIFICATE, KEY

VARIABLE = "EDL_JOIN_TOKEN"
SHORTEST = 16  # characters of a token: a proof lets its receiver try tokens offline
Side = Literal["agent", "supervisor"]


def make_proof(token: str, side: Side, certificate: bytes) -> str:
    """Return the proof of one side for a connection with this certificate (DER)."""
    fingerprint = hashlib.sha256(certificate).digest()
    return hmac.new(token.encode(), side.encode() + fingerprint, hashlib.sha256).hexdigest()


def is_proof(proof: str, token: str, side: Side, certificate: bytes) -> bool:
    return hmac.compare_digest(proof.encode(), make_proof(token, side, certificate).encode())


def read_token(file: Path | None, *, creates: bool) -> str | None:
    """Return the token of the environment or of the file; None if the file is not there yet.

    `creates`: make the file if it is missing, readable by its owner alone. Raises SemanticError if there is neither, if
    others may read the file, or if the token is short.
    """
    if (token := os.environ.get(VARIABLE, "").strip()) and file is None:
        return _check(token, VARIABLE)
    if file is None:
        raise SemanticError(
            "a run on several machines needs a join token",
            hint=f"--token_file FILE in a folder that all machines see, or the variable {VARIABLE} on each",
        )
    if creates:
        with contextlib.suppress(FileExistsError):
            _create(file)
    try:
        mode = file.stat().st_mode
        token = file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SemanticError(f"the join token in {file} cannot be read: {error}") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SemanticError(f"others may read the join token in {file}", hint=f"chmod 600 {file}")
    return _check(token, str(file)) if token else None  # it is being written


def _create(file: Path) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise
    except OSError as error:
        raise SemanticError(f"the join token cannot be written to {file}: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as opened:
        opened.write(secrets.token_urlsafe(32))


def _check(token: str, place: str) -> str:
    if len(token) < SHORTEST:
        raise SemanticError(
            f"the join token in {place} has {len(token)} characters",
            hint=f"it needs {SHORTEST} or more: `openssl rand -hex 16` prints one",
        )
    return token


def server_context(identity: Path) -> ssl.SSLContext:
    """Return the context of the supervisor's end, with the certificate of the job's instances."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(identity / CERTIFICATE, identity / KEY)
    return context


def agent_context() -> ssl.SSLContext:
    """Return the context of an agent's end. No authority is known yet: the proofs verify the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def own_certificate(identity: Path) -> bytes:
    """Return the certificate (DER) that `server_context` shows."""
    return ssl.PEM_cert_to_DER_cert((identity / CERTIFICATE).read_text(encoding="ascii"))
