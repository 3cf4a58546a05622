"""URLs of servers: their parts, where their passwords come from, and that they are shown nowhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from edl.data.server_url import MOUNTED, PASSWORDS, SECRETS, SOURCE, ServerURL, named_connection, parse_server
from edl.data.url import parse
from edl.errors import SourceError


@pytest.fixture
def connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file of connections, which nobody else may read."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv(SECRETS, "{}")
    monkeypatch.delenv(SOURCE, raising=False)
    path = tmp_path / "sqlflow-edl" / "connections.toml"
    path.parent.mkdir()
    path.touch(mode=0o600)
    return path


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("mysql://u:geheim@db:1/x", ServerURL("mysql", "db", 1, "u", "geheim", "x")),
        ("MySQL://db/x?ssl=true", ServerURL("mysql", "db", 3306, "", "", "x", (("ssl", "true"),))),
        ("mysql://a%40b:p%2Fq%3A@[::1]:7/x%20y", ServerURL("mysql", "[::1]", 7, "a@b", "p/q:", "x y")),
        ("mysql://u:a@b@db/x", ServerURL("mysql", "db", 3306, "u", "a@b", "x")),
        ("mysql://u@db", ServerURL("mysql", "db", 3306, "u")),
        ("postgres://u@db/x", ServerURL("postgresql", "db", 3306, "u", "", "x")),
        ("postgresql:///x", ServerURL("postgresql", "", None, "", "", "x")),
    ],
)
def test_a_url_has_parts_and_reads_back_without_its_password(url: str, wanted: ServerURL) -> None:
    found = parse_server(url, 3306)
    assert found == wanted
    assert str(parse_server(str(found))) == str(found)
    assert not found.password or found.password not in str(found) + repr(found)


@pytest.mark.parametrize(
    "url", ["mysql://", "mysql:///x", "mysql://u:secret@/x", "mysql://u:secret@h:99999/x"]
)
def test_a_url_without_a_host_says_how_one_looks(url: str) -> None:
    with pytest.raises(SourceError, match="names no host") as caught:
        parse(url)
    assert "secret" not in str(caught.value)


def test_pods_read_passwords_from_mounted_files(
    connections: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MOUNTED, str(tmp_path))
    assert parse_server("mysql://u@h:1/x").with_password().password == ""
    (tmp_path / PASSWORDS).write_text('{"mysql://u@h:1/x": "Geheim"}')
    assert [parse_server("mysql://u@h:1/x").with_password().password] == ["Geheim"]
    assert "Geheim" not in os.environ[SECRETS]


def test_a_password_of_a_url_is_known_to_the_processes_that_are_started_from_here(connections: Path) -> None:
    assert parse_server("mysql://u@h:1/x").with_password().password == ""
    parse_server("mysql://u:secret@h:1/x").with_password()
    assert parse_server("mysql://u@h:1/x").with_password().password == "secret"  # noqa: S105
    assert parse_server("mysql://v@h:1/x").with_password().password == ""


def test_a_password_of_an_account_serves_its_other_databases_until_they_have_one(
    connections: Path,
) -> None:
    parse_server("mysql://u:secret@h:1/x").with_password()
    parse_server("mysql://u:typo@h:1/y").with_password()
    passwords = {
        url: parse_server(url).with_password().password
        for url in (
            "mysql://u@h:1/x",
            "mysql://u@h:1/y",
            "mysql://u@h:1/z",
            "mysql://u@h:2/x",
            "mysql://v@h:1/x",
        )
    }
    assert [*passwords.values()] == ["secret", "typo", "secret", "", ""]
    parse_server("mysql://u:secret@h:1/y").with_password()
    assert parse_server("mysql://u@h:1/y").with_password() == parse_server("mysql://u:secret@h:1/y")


def test_a_typed_password_precedes_the_connections_password(connections: Path) -> None:
    connections.write_text('[shop]\nurl = "mysql://u@h:1/x"\npassword = "old"\n')
    assert parse_server("mysql://u@h:1/x").with_password() == parse_server("mysql://u:old@h:1/x")
    parse_server("mysql://u@h:1/x").keep("typed")
    assert parse_server("mysql://u@h:1/x").with_password() == parse_server("mysql://u:typed@h:1/x")


def test_a_password_comes_from_the_environments_source(
    connections: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SOURCE, "mysql://u:secret@h/x")
    assert parse_server("mysql://u@h:3306/x").with_password().password == "secret"  # noqa: S105
    assert parse_server("mysql://u@other/x").with_password().password == ""


def test_a_named_connection_is_found_with_its_password(
    connections: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections.write_text(
        """
        [shop]
        url = "mysql://reader@db.example/shop"
        password_from = "SHOP_PASSWORD"
        [other]
        url = "mysql://writer@db.example/shop"
        password = "pw"
        """,
        encoding="utf-8",
    )
    monkeypatch.setenv("SHOP_PASSWORD", "secret")
    found = parse("shop")
    assert isinstance(found, ServerURL)
    assert str(found) == "mysql://reader@db.example:3306/shop"
    assert found.with_password().password == "secret"  # noqa: S105
    assert parse_server("mysql://writer@db.example:3306/shop").with_password().password == "pw"  # noqa: S105
    assert named_connection("nothing") is None
    with pytest.raises(SourceError) as caught:
        parse("shpo")
    assert caught.value.hint == "did you mean shop?"
    monkeypatch.delenv("SHOP_PASSWORD")
    with pytest.raises(SourceError, match="has no SHOP_PASSWORD"):
        found.with_password()


class Keyring(KeyringBackend):
    """Keyring in memory: this machine has no desktop."""

    priority = 1.0
    found: str | None = "secret"

    def get_password(self, service: str, username: str) -> str | None:
        if service == "locked":
            raise KeyringLocked("it is locked")
        return self.found if (service, username) == ("shop", "reader") else None

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError  # `keyring set` stores it


@pytest.fixture
def desktop(connections: Path) -> Iterator[None]:
    """A keyring with the password of a connection `shop`, and that connection."""
    before = keyring.get_keyring()
    keyring.set_keyring(Keyring())
    connections.write_text('[shop]\nurl = "mysql://reader@h/shop"\nkeyring = "shop"\n', encoding="utf-8")
    yield
    keyring.set_keyring(before)


@pytest.mark.usefixtures("desktop")
def test_a_password_of_the_keyring_is_kept_for_child_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = parse("shop")
    assert isinstance(found, ServerURL)
    assert found.with_password().password == "secret"  # noqa: S105
    monkeypatch.setattr(Keyring, "found", None)
    assert parse_server(str(found)).with_password().password == "secret"  # noqa: S105


@pytest.mark.usefixtures("desktop")
@pytest.mark.parametrize(
    ("service", "said"),
    [
        ("other", "no password of reader for other, which shop names"),
        ("locked", "cannot be read: it is locked"),
    ],
)
def test_a_keyring_without_the_password_is_named(connections: Path, service: str, said: str) -> None:
    connections.write_text(
        f'[shop]\nurl = "mysql://reader@h/shop"\nkeyring = "{service}"\n', encoding="utf-8"
    )
    found = parse("shop")
    assert isinstance(found, ServerURL)
    with pytest.raises(SourceError, match=said):
        found.with_password()


def test_a_file_of_connections_that_others_may_read_is_refused(connections: Path) -> None:
    connections.chmod(0o640)
    with pytest.raises(SourceError, match="is readable by other users") as caught:
        parse("shop")
    assert "chmod 600" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["[shop", "[shop]", "[shop]\nurl = 1", "[shop]\nurl = 'x'\npasswort = 'y'"])
def test_a_damaged_file_of_connections_is_named(connections: Path, text: str) -> None:
    connections.write_text(text, encoding="utf-8")
    with pytest.raises(SourceError, match=r"connections\.toml is damaged"):
        parse("shop")
