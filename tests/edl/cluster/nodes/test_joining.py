"""The join token of a job on several machines, and its proofs."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from edl.cluster.nodes.joining import (
    agent_context,
    is_proof,
    make_proof,
    own_certificate,
    read_token,
    server_context,
)
from edl.errors import SemanticError
from edl.tls import issue

TOKEN = "a token of twenty-eight letters"  # noqa: S105


def write_identity(folder: Path) -> Path:
    folder.mkdir()
    for name, content in issue().items():
        (folder / name).write_text(content)
    return folder


def test_a_proof_is_of_one_side_one_token_and_one_certificate() -> None:
    proof = make_proof(TOKEN, "agent", b"certificate")
    assert is_proof(proof, TOKEN, "agent", b"certificate")
    assert not is_proof(proof, TOKEN, "supervisor", b"certificate")
    assert not is_proof(proof, TOKEN + "x", "agent", b"certificate")
    assert not is_proof(proof, TOKEN, "agent", b"another certificate")
    assert not is_proof("é", TOKEN, "agent", b"certificate")
    assert TOKEN not in proof


def test_both_sides_see_the_same_certificate(tmp_path: Path) -> None:
    identity = write_identity(tmp_path / "tls")

    async def see() -> bytes:
        async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        async with await asyncio.start_server(close, "127.0.0.1", 0, ssl=server_context(identity)) as server:
            port = server.sockets[0].getsockname()[1]
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=agent_context())
            connection: ssl.SSLObject = writer.get_extra_info("ssl_object")
            assert connection.version() == "TLSv1.3"
            certificate = connection.getpeercert(binary_form=True)
            writer.close()
            return certificate or b""

    assert asyncio.run(see()) == own_certificate(identity)


def test_the_first_machine_makes_the_token_and_the_others_wait_for_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    assert read_token(file, creates=False) is None
    token = read_token(file, creates=True)
    assert token is not None
    assert len(token) > 40
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_token(file, creates=False) == read_token(file, creates=True) == token
    file.write_text("")
    assert read_token(file, creates=False) is None  # it is being written


def test_the_environment_has_the_token_unless_a_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDL_JOIN_TOKEN", TOKEN)
    assert read_token(None, creates=False) == TOKEN
    assert read_token(tmp_path / "token", creates=True) != TOKEN


def test_a_token_that_is_missing_short_or_open_to_others_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SemanticError, match="several machines needs a join token"):
        read_token(None, creates=True)
    with pytest.raises(SemanticError, match="cannot be written to"):
        read_token(tmp_path / "nowhere" / "token", creates=True)
    monkeypatch.setenv("EDL_JOIN_TOKEN", "short")
    with pytest.raises(SemanticError, match="in EDL_JOIN_TOKEN has 5 characters"):
        read_token(None, creates=False)
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o644)
    with pytest.raises(SemanticError, match="others may read the join token"):
        read_token(file, creates=False)
