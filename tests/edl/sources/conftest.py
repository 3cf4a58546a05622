"""Sources of the conformance tests: the package's, and made-up ones that short files add."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edl.data import url as urls
from edl.data.server_url import SECRETS
from tests.edl.conftest import SCHEMES
from tests.fixtures.databases import granite, quarry

MADE_UP = {
    "granite": (granite.__name__, "GraniteSource"),
    "quarry": (quarry.__name__, "QuarrySource"),
}


@pytest.fixture(autouse=True)
def passwords() -> Iterator[None]:
    """Passwords of a test leave the environment with it: later tests share the training processes of earlier ones."""
    before = os.environ.get(SECRETS)
    yield
    os.environ.pop(SECRETS, None)
    if before is not None:
        os.environ[SECRETS] = before


@pytest.fixture(params=[*SCHEMES, *MADE_UP])
def url(
    request: pytest.FixtureRequest,
    new_url: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """A source of each kind, in a file or a database of its own."""
    for scheme, place in MADE_UP.items():
        monkeypatch.setitem(urls.SOURCES, scheme, place)
    monkeypatch.setattr(urls, "DATABASES", (*urls.DATABASES, *MADE_UP))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return new_url(request.param)
