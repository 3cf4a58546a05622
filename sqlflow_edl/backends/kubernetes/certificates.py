"""Certificates with which the instances of a job encrypt their calls (`edl.tls`), and the jobs that can have them."""

from __future__ import annotations

import datetime as dt

from edl.errors import ClusterError, SemanticError
from edl.installation import install_extras
from edl.spec import JobSpec
from edl.spec.job import Cluster
from edl.spec.runnable import RunnableSpec
from edl.tls import FILES, NAME
from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings

VALID = dt.timedelta(days=365)
SKEW = dt.timedelta(hours=1)  # between the clocks of this machine and of nodes


def encrypts(spec: JobSpec | RunnableSpec, settings: KubernetesSettings) -> bool:
    """Return True if the job has certificates. Raises SemanticError if not all of its connections would be encrypted.

    The program of TO RUN has no peer.
    """
    if not settings.true("tls") or isinstance(spec, RunnableSpec):
        return False
    if spec.work == "train":
        check(spec.cluster, settings)
    return True


def check(cluster: Cluster, settings: KubernetesSettings) -> None:
    """Raise SemanticError if workers of a training with these settings would talk to each other without TLS."""
    if settings.true("tls") and cluster.strategy == "allreduce":
        raise SemanticError(
            "kubernetes.tls cannot encrypt the sockets of gloo and XGBoost, by which the workers of an all-reduce "
            "group exchange gradients, and those of trees histograms",
            hint="train networks on parameter servers (train.num_ps) and trees on one worker; or leave kubernetes.tls "
            "out, on a network that encrypts",
        )


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
