"""Where statements run: on each kind of database, and where they train, in both frameworks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.data import connect
from tests.databases import DIALECTS, Databases
from tests.trained import Models, models
from tests.workshops import WORKSHOPS, Workshop, opened


@pytest.fixture(params=DIALECTS)
def url(request: pytest.FixtureRequest, databases: Databases) -> str:
    """Of an empty database, of each kind in turn."""
    url = databases.url(request.param)
    connect(url, create=True).close()
    return url


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Models]:
    """Small models, each trained when a test asks for it."""
    with models(tmp_path_factory.mktemp("trained")) as found:
        yield found


@pytest.fixture(scope="session", params=WORKSHOPS, ids="-".join)
def workshop(
    request: pytest.FixtureRequest,
    databases: Databases,
    tmp_path_factory: pytest.TempPathFactory,
    user_models: Path,
) -> Iterator[Workshop]:
    """One that the tests share: each has tables and models under names of its own."""
    framework, dialect = request.param
    folder = tmp_path_factory.mktemp("workshop")
    with opened(databases, framework, dialect, folder, user_models) as found:
        yield found
