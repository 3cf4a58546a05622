"""TLS to a PostgreSQL that has a certificate: who is trusted, who is not, and what is said then."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.data import connect, open_reader
from edl.errors import SourceError
from tests.certificates import Authority
from tests.postgresql import MISSING, PASSWORD, Server, is_installed, running

VERIFIED = "sslmode=verify-full&sslrootcert={}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """One that is 127.0.0.1 by its certificate."""
    if not is_installed():
        pytest.skip(MISSING)
    ours = Authority(folder, "ours")
    Authority(folder, "other")
    certificate, key = ours.sign("server", "127.0.0.1")
    with running(
        folder, files=(certificate, key), ssl="on", ssl_cert_file=certificate.name, ssl_key_file=key.name
    ) as found:
        found.run("CREATE DATABASE shop")
        yield found


@pytest.mark.variants(1)
@pytest.mark.parametrize("options", ["sslmode=require", "{verified}/ours.pem"])
def test_rows_are_read_from_a_trusted_server_in_secret(
    server: Server, folder: Path, tmp_path: Path, options: str
) -> None:
    with connect(
        server.url("shop", options=f"?{options.format(verified=VERIFIED.format(folder))}")
    ) as source:
        used = source.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        assert used is not None
        assert used.read_all()["ssl"].to_pylist() == [True]
        pinned = source.pin("SELECT 1 AS a", tmp_path, seed=0, shuffle=False)
        assert [batch["a"].to_pylist() for batch in open_reader(pinned, tmp_path).read(0, 1)] == [[1]]


@pytest.mark.soak
def test_rows_are_read_in_secret_after_an_import_of_tensorflow(server: Server) -> None:
    """TensorFlow's BoringSSL has global symbols; a process that takes them for OpenSSL's aborts."""
    program = (
        "import sys; import tensorflow; from edl.data import connect\n"
        "with connect(sys.stdin.read()) as source: print(source.execute('SELECT 7 AS a').read_all()['a'][0])"
    )
    url = server.url("shop", options="?sslmode=require")
    ran = subprocess.run([sys.executable, "-c", program], input=url, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "7\n"), ran.stderr


@pytest.mark.parametrize(
    ("host", "options", "words", "hint"),
    [
        ("127.0.0.1", "{verified}/other.pem", "certificate verify failed", "sslrootcert=/path"),
        ("localhost", "{verified}/ours.pem", "does not match host name", "write the host"),
        ("127.0.0.1", "{verified}/none.pem", "root certificate file", "sslrootcert=/path"),
        ("127.0.0.1", "sslmode=yes", "invalid sslmode value", ""),
    ],
)  # fmt: skip
def test_what_keeps_two_sides_apart_is_named(
    server: Server, folder: Path, host: str, options: str, words: str, hint: str
) -> None:
    url = server.url("shop", options=f"?{options.format(verified=VERIFIED.format(folder))}").replace(
        "127.0.0.1", host, 1
    )
    with pytest.raises(SourceError, match=words) as caught:
        connect(url)
    assert hint in (caught.value.hint or "")
    assert PASSWORD not in str(caught.value)


@pytest.mark.soak
def test_a_server_on_this_machine_is_reached_by_its_socket(server: Server) -> None:
    found = server.run("SHOW unix_socket_directories")[0][0]
    url = f"postgresql://owner:{PASSWORD.replace('%', '%25')}@/shop?socket={found}"
    with connect(url.replace("@/", f"@127.0.0.1:{server.port}/")) as source:
        reader = source.execute("SELECT inet_client_addr() IS NULL AS local")
        assert reader is not None
        assert reader.read_all()["local"].to_pylist() == [True]
