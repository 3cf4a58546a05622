"""Workshops: a framework and a database each, for statements that train models and use them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from edl.models.archive import Archive, read_archive
from edl.program.user_model import PATH_VARIABLE
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.session import Session
from tests.databases import Databases

# Each database and each framework; the fast one where it is the database that differs. `make test` has the one that
# starts quickest: programs of both frameworks run in tests/samples and tests/sqlflow_edl/codegen.
WORKSHOPS = [
    ("torch", "sqlite"),
    *(
        pytest.param(variant, marks=pytest.mark.soak)
        for variant in (("keras", "duckdb"), ("torch", "duckdb"), ("torch", "mysql"), ("torch", "maxcompute"))
    ),
]


@dataclass(frozen=True)
class Workshop:
    """models: the folder of those of a user, which the training process has on its path."""

    framework: str
    session: Session
    models: Path

    @property
    def dialect(self) -> str:
        return self.session.dialect

    def run(self, text: str) -> list[Result]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(PATH_VARIABLE, str(self.models))
            return list(self.session.run(text))

    def rows(self, text: str) -> pa.Table:
        """Of the last statement."""
        return self.run(text)[-1].to_arrow()

    def archive(self, model: str, folder: Path) -> Archive:
        self.session.registry.load(model, folder / "model.zip")
        return read_archive(folder / "model.zip")


@contextlib.contextmanager
def opened(
    databases: Databases, framework: str, dialect: str, folder: Path, models: Path
) -> Iterator[Workshop]:
    """A workshop whose training process has started, and stays."""
    with contextlib.ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(folder))
            session = stack.enter_context(Session(databases.url(dialect), create=True))
            workshop = Workshop(framework, session, models)
            workshop.run(
                f"SELECT 1 AS a, 2 AS b UNION ALL SELECT 2, 4 UNION ALL SELECT 3, 6 "
                f"TO TRAIN LinearRegressor WITH model.framework = {framework}, epochs = 1 LABEL b INTO first_model"
            )
        yield workshop
