"""Where statements train: in both frameworks, and on each kind of database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.databases import Databases
from tests.workshops import WORKSHOPS, Workshop, opened


@pytest.fixture(scope="session", params=WORKSHOPS, ids="-".join)
def workshop(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workshop]:
    """One that the tests share: each has tables and models under names of its own."""
    framework, dialect = request.param
    with opened(databases, framework, dialect, tmp_path_factory.mktemp("workshop")) as found:
        yield found
