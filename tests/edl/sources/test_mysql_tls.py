"""TLS to a MariaDB that has a certificate: who is trusted, who is not, and what is said then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.data import connect, open_reader
from edl.errors import SourceError
from edl.sources.mysql import arrow_driver
from tests.certificates import Authority
from tests.mariadb import MISSING, PASSWORD, Server, is_installed, running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """One that is 127.0.0.1 by its certificate, and has a user who must show one."""
    if not is_installed():
        pytest.skip(MISSING)
    ours, other = Authority(folder, "ours"), Authority(folder, "other")
    certificate, key = ours.sign("server", "127.0.0.1")
    ours.sign("client", "127.0.0.1")
    other.sign("stranger", "127.0.0.1")
    (folder / "both.pem").write_bytes(
        (folder / "client.pem").read_bytes() + (folder / "client.key").read_bytes()
    )
    options = (f"--ssl-ca={ours.path}", f"--ssl-cert={certificate}", f"--ssl-key={key}")
    with running(folder, *options) as server:
        server.run(
            "CREATE DATABASE shop",
            f"CREATE USER known@'127.0.0.1' IDENTIFIED BY '{PASSWORD}' REQUIRE X509",
            f"CREATE USER careful@'127.0.0.1' IDENTIFIED BY '{PASSWORD}' REQUIRE SSL",
            "GRANT ALL ON shop.* TO known@'127.0.0.1'",
            "GRANT ALL ON shop.* TO careful@'127.0.0.1'",
        )
        yield server


def cipher(url: str) -> str:
    with connect(url) as source:
        status = source.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        assert status is not None
        found: str = status.read_all()["Value"][0].as_py()
        return found


@pytest.mark.parametrize(
    ("user", "options"),
    [
        ("owner", "ssl_ca=ours.pem"),
        ("known", "ssl_ca=ours.pem&ssl_cert=client.pem&ssl_key=client.key"),
        ("known", "ssl_ca=ours.pem&ssl_cert=both.pem"),
    ],
)
def test_a_server_with_the_certificate_of_a_trusted_authority_is_spoken_to_in_secret(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch, user: str, options: str
) -> None:
    monkeypatch.chdir(folder)
    assert cipher(server.url("shop", user=user, options=f"?{options}")).startswith("TLS_")


@pytest.mark.parametrize(
    ("host", "user", "options", "words", "hint"),
    [
        ("127.0.0.1", "owner", "ssl_ca=other.pem", "CERTIFICATE_VERIFY_FAILED", "ssl_ca=/path/to/ca.pem"),
        ("127.0.0.1", "owner", "ssl=true", "CERTIFICATE_VERIFY_FAILED", "ssl_ca=/path/to/ca.pem"),
        ("localhost", "owner", "ssl_ca=ours.pem", "certificate is not valid for 'localhost'", "write the host"),
        ("127.0.0.1", "known", "ssl_ca=ours.pem", "Access denied", "the password is wrong"),
        ("127.0.0.1", "known", "ssl_ca=ours.pem&ssl_cert=stranger.pem&ssl_key=stranger.key", "cannot open", ""),
        ("127.0.0.1", "owner", "ssl_ca=none.pem", r"ssl_ca \(none.pem\) cannot be used for TLS", "PEM"),
        ("127.0.0.1", "owner", "ssl_cert=client.pem", "cannot be used for TLS", "PEM"),
        ("127.0.0.1", "owner", "ssl_ca=ours.pem&ssl_key=client.key", "without a certificate", "ssl_cert"),
        ("127.0.0.1", "owner", "ssl_ca=ours.pem&ssl=false", "ssl_ca is given, and ssl=false", "leave one"),
        ("127.0.0.1", "owner", "ssl=yes", "ssl is 'yes'", "ssl=true"),
    ],
)  # fmt: skip
def test_what_keeps_two_sides_apart_is_named(
    server: Server,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    user: str,
    options: str,
    words: str,
    hint: str,
) -> None:
    monkeypatch.chdir(folder)
    url = server.url("shop", user=user, options=f"?{options}").replace("127.0.0.1", host, 1)
    with pytest.raises(SourceError, match=words) as caught:
        connect(url)
    assert hint in (caught.value.hint or "")
    assert PASSWORD not in str(caught.value)


def test_a_server_without_tls_is_not_told_a_password_in_the_clear(mariadb: Server, folder: Path) -> None:
    with pytest.raises(SourceError, match="server doesn't support it") as caught:
        connect(mariadb.url(options="?ssl=true"))
    assert caught.value.hint == "enable TLS on the server, or leave the ssl options out"


@pytest.mark.parametrize(
    ("user", "options", "said"),
    [("careful", "", ["encrypted"]), ("owner", "", ["encrypted"]), ("owner", "?ssl=false", [])],
)
def test_rows_are_read_by_a_driver_that_encrypts_where_connections_are_encrypted(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    user: str, options: str, said: list[str],
) -> None:  # fmt: skip
    pytest.importorskip("connectorx", reason="no connectorx")
    monkeypatch.setattr(arrow_driver, "LEAST_ROWS", 1)
    caplog.set_level("DEBUG", arrow_driver.__name__)
    with connect(server.url("shop", user=user, options=options)) as source:
        pinned = source.pin("SELECT 1 AS a UNION ALL SELECT 2", tmp_path, seed=0, shuffle=False)
        assert [batch["a"].to_pylist() for batch in open_reader(pinned, tmp_path).read(0, 2)] == [[1, 2]]
        assert [word for word in said if word in caplog.text] == said
        assert len(caplog.messages) == len(said)
        source.unpin(pinned, tmp_path)
