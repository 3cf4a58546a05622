"""What a job needs of this machine, packages and disk space, is looked at before rows are read."""

from __future__ import annotations

import importlib.util
import shutil
from collections import namedtuple
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from edl.errors import JobError, SourceError
from edl.installation import install_extras
from sqlflow_edl.cli.program.lint import problems_with_source
from sqlflow_edl.session.session import Session

TRAIN = "SELECT a, a AS y FROM t TO TRAIN DNNRegressor LABEL y INTO m"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Session("duckdb:") as found:
        found.source.execute("CREATE TABLE t AS SELECT range * 1.0 AS a FROM range(30)")
        monkeypatch.setattr(found.source, "pin", None)
        yield found


@pytest.fixture
def without_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    find: Callable[..., ModuleSpec | None] = importlib.util.find_spec

    def found(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in ("torch", "tensorflow") else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", found)


@pytest.mark.usefixtures("without_frameworks")
def test_a_missing_package_is_found_at_the_model(session: Session) -> None:
    [statement] = session.parse(TRAIN)
    for run in (session.plan, session.execute):
        with pytest.raises(JobError, match="is not installed") as raised:
            run(statement)
        assert raised.value.hint in (install_extras("torch"), install_extras("tensorflow"))
        assert raised.value.span is not None
        assert TRAIN[raised.value.span.start : raised.value.span.end] == "DNNRegressor"


def test_an_installed_framework_that_has_the_model_too_is_offered(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    find: Callable[..., ModuleSpec | None] = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "tensorflow" else find(name)
    )
    [statement] = session.parse(TRAIN)
    with pytest.raises(JobError, match="tensorflow is not installed") as raised:
        session.plan(statement)
    assert (raised.value.hint or "").endswith("; or train it with WITH model.framework = torch")


@pytest.mark.usefixtures("without_frameworks")
def test_several_workers_of_trees_need_torch_before_rows_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Session("duckdb:", workers=2) as several:
        several.source.execute("CREATE TABLE t AS SELECT range * 1.0 AS a FROM range(30)")
        [statement] = several.parse(TRAIN.replace("DNNRegressor", "BoostedTreesRegressor"))
        with pytest.raises(JobError, match="groups of all-reduce, which need torch") as raised:
            several.plan(statement)
    assert (raised.value.hint or "").startswith(install_extras("torch"))


@pytest.mark.usefixtures("without_frameworks")
def test_who_compiles_or_checks_for_another_machine_needs_no_package(session: Session) -> None:
    assert list(problems_with_source(TRAIN, session)) == []
    [compiled] = session.compile(TRAIN)
    assert compiled.spec.framework in ("torch", "keras")


def test_a_full_disk_is_found_before_rows_are_read(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1 << 30, 1 << 30, 1 << 20))
    [statement] = session.parse(TRAIN)
    for run in (session.plan, session.execute):
        with pytest.raises(SourceError, match="is full: 1 MiB are left") as raised:
            run(statement)
        assert "XDG_STATE_HOME" in (raised.value.hint or "")
