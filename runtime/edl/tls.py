"""Mutual TLS between the instances of a job: its certificate authority, and the one certificate that all of them have.

EDL_TLS names a folder with three files in PEM. A process that has the variable calls, and answers, no peer without a
certificate from this authority; without it, calls are plain.

ca.crt   certificate of the authority; no process has its key
tls.crt  certificate of every instance, for the name `NAME`
tls.key  its key
"""

from __future__ import annotations

import datetime as dt
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edl.errors import ClusterError, SpecError
from edl.installation import install_extras

VARIABLE = "EDL_TLS"
NAME = "instance.edl"
AUTHORITY, CERTIFICATE, KEY = FILES = ("ca.crt", "tls.crt", "tls.key")

VALID = dt.timedelta(days=365)
SKEW = dt.timedelta(hours=1)  # between the clocks of this machine and of nodes

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


def issue() -> dict[str, str]:
    """Make an authority and one certificate for all instances of a job; return the files of `edl.tls`.

    The key of the authority is forgotten, so that nobody can add an instance.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ModuleNotFoundError:
        raise ClusterError(
            "the package cryptography is not installed", hint=install_extras("kubernetes")
        ) from None
    now = dt.datetime.now(dt.UTC)
    authority, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of one job")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    signing = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    identifier = x509.SubjectKeyIdentifier.from_public_key(authority.public_key())
    both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])

    def builder(name: x509.Name, of: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        serial = x509.random_serial_number()
        return x509.CertificateBuilder(issuer, name, of, serial, now - SKEW, now + VALID)

    root = (
        builder(issuer, authority.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(signing, critical=True)
        .add_extension(identifier, critical=False)
        .sign(authority, hashes.SHA256())
    )
    leaf = (
        builder(subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(both, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
        )
        .sign(authority, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    contents = (root.public_bytes(pem), leaf.public_bytes(pem), secret)
    return {name: content.decode("ascii") for name, content in zip(FILES, contents, strict=True)}
