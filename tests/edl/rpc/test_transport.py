"""Mutual TLS between instances: which peers get an answer, and what is said to the others."""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from edl import tls
from edl.errors import SpecError
from edl.ps import messages as msg
from edl.ps.channel import ServerChannel
from edl.reachability import probe_calls
from edl.rpc import transport
from edl.rpc.channel import AwayError
from tests.certificates import identity_of_a_job

SECONDS = 10.0
# A parameter server of another process, until its input ends.
SERVER = """
import sys
from pathlib import Path
from edl.checkpoints.folder import SharedFolder
from edl.ps.server import Server
from edl.ps.servicer import serve
server = Server("secret", SharedFolder(Path("/")))
served, port = serve(server, "127.0.0.1:0", "secret")
print(port, flush=True)
sys.stdin.read()
server.close()
served.stop(None).wait()
"""


@contextmanager
def server() -> Iterator[str]:
    """The address of a server with the identity that this process has."""
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"127.0.0.1:{process.stdout.readline().strip()}"
        process.communicate(timeout=SECONDS)


def status(address: str) -> msg.Figures:
    """The answer to a call that has the token of the job."""
    with ServerChannel(address, "secret") as channel:
        return channel.call(msg.Status(), (), msg.Figures, SECONDS)[0]


class Person:
    """Identities of instances by the name of their job; "" has none."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._folders = {"": "", **{name: identity_of_a_job(folder / name) for name in ("ours", "theirs")}}

    def become(self, name: str) -> None:
        self._patch.setenv(tls.VARIABLE, self._folders[name])

    def folder(self, name: str) -> Path:
        return Path(self._folders[name])


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    return Person(tmp_path, monkeypatch)


def test_a_server_answers_instances_of_its_own_job_and_tells_the_others_nothing(person: Person) -> None:
    person.become("ours")
    with server() as address:
        assert status(address)
        assert probe_calls(address) == "it accepts connections, and has not answered calls"
        person.become("theirs")
        with pytest.raises(
            AwayError, match=r"server does not answer \(its TLS certificate is not one of this job"
        ):
            status(address)
        assert probe_calls(address) == "its TLS certificate is not one of this job"
        person.become("")
        with pytest.raises(AwayError):
            status(address)
        assert probe_calls(address).startswith("it expects TLS")


def test_an_instance_sends_nothing_to_a_server_without_tls(person: Person) -> None:
    person.become("")
    with server() as address:
        assert status(address)
        person.become("ours")
        with pytest.raises(AwayError, match="it does not speak TLS"):
            status(address)
        assert probe_calls(address).startswith("it does not speak TLS")


class Echo(grpc.GenericRpcHandler):
    def service(self, details: grpc.HandlerCallDetails) -> Any:
        return grpc.unary_unary_rpc_method_handler(lambda payload, context: payload)


@pytest.mark.parametrize("own", [False, True])
def test_to_know_the_authority_is_not_enough(person: Person, own: bool) -> None:
    """A client that verifies the server needs a certificate of that authority itself."""
    person.become("ours")
    served = grpc.server(ThreadPoolExecutor(1), handlers=(Echo(),))
    address = f"127.0.0.1:{transport.listen(served, '127.0.0.1:0')}"
    served.start()
    ours, theirs = (
        [(person.folder(name) / file).read_bytes() for file in tls.FILES] for name in ("ours", "theirs")
    )
    authority, certificate, key = ours if own else (ours[0], *theirs[1:])
    credentials = grpc.ssl_channel_credentials(authority, key, certificate)
    options = (("grpc.ssl_target_name_override", tls.NAME),)
    with grpc.secure_channel(address, credentials, options=options) as channel:
        call = channel.unary_unary("/any/method")
        if own:
            assert call(b"rows", timeout=SECONDS) == b"rows"
        else:
            with pytest.raises(grpc.RpcError):
                call(b"rows", timeout=SECONDS)
    served.stop(None).wait()


def test_a_refused_certificate_is_named(person: Person) -> None:
    """The probe trusts the server, which does not trust the probe."""
    person.become("ours")
    with server() as address:
        (person.folder("theirs") / tls.AUTHORITY).write_bytes(
            (person.folder("ours") / tls.AUTHORITY).read_bytes()
        )
        person.become("theirs")
        assert probe_calls(address) == tls.NOT_ACCEPTED


def test_an_identity_that_cannot_be_read_is_an_error_and_no_plain_call(person: Person) -> None:
    person.become("ours")
    (person.folder("ours") / tls.KEY).unlink()
    with pytest.raises(
        SpecError, match=r"calls of this job are encrypted, and .*tls\.key cannot be read: No such"
    ):
        transport.connect("127.0.0.1:1", ())


def test_certificates_are_of_the_job_alone_for_a_year_and_have_no_authority(person: Person) -> None:
    from cryptography import x509

    root, leaf = (
        x509.load_pem_x509_certificate((person.folder("ours") / file).read_bytes())
        for file in (tls.AUTHORITY, tls.CERTIFICATE)
    )
    leaf.verify_directly_issued_by(root)
    assert leaf.public_key() != root.public_key()
    assert (leaf.not_valid_after_utc - leaf.not_valid_before_utc).days == 365
    assert leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    with pytest.raises(ValueError, match=r"[Ii]ssuer|[Ss]ignature"):
        leaf.verify_directly_issued_by(leaf)


def test_a_key_does_not_show_in_texts(person: Person) -> None:
    person.become("ours")
    found = tls.identity()
    assert found is not None
    assert "PRIVATE" not in repr(found)
    assert found.context().verify_mode is ssl.CERT_REQUIRED
