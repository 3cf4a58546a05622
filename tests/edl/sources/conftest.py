"""Sources of the conformance tests: those of the package, and a made-up database that one short file adds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edl.data import url as urls
from tests.edl.conftest import SCHEMES
from tests.fixtures.databases import granite


@pytest.fixture(params=[*SCHEMES, "granite"])
def url(
    request: pytest.FixtureRequest, new_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """A source of each kind, in a file or a database of its own."""
    monkeypatch.setitem(urls.SOURCES, "granite", (granite.__name__, "GraniteSource"))
    monkeypatch.setattr(urls, "DATABASES", (*urls.DATABASES, "granite"))
    return new_url(request.param)
