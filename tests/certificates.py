"""Certificates for the tests, made on the spot: an authority, and what it signs; identities of instances."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from edl.tls import issue


class Authority:
    """An authority with its certificate in `folder`/`name`.pem."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _called(name)
        self.path = folder / f"{name}.pem"
        key = self._key.public_key()
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)  # signs others
        signed = (
            self._builder(self._name, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def sign(self, name: str, address: str) -> tuple[Path, Path]:
        """The files of a certificate for this address, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        signed = (
            self._builder(_called(name), key.public_key())
            .add_extension(names, critical=False)
            .add_extension(issuer, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        certificate, secret = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return certificate, secret

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=1))
        )


def _called(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def identity_of_a_job(folder: Path) -> str:
    """The folder with the identity of all instances of a new job."""
    folder.mkdir()
    for name, content in issue().items():
        (folder / name).write_text(content, encoding="ascii")
    return str(folder)
