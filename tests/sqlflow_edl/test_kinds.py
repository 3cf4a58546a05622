"""Kinds of statements: each has its traits, and stands in each table of a phase that has a function for it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import get_args

import pytest

from edl.errors import Span
from edl.jobs import job_folder
from sqlflow_edl.analysis import inference
from sqlflow_edl.analysis.programs.outline import title
from sqlflow_edl.reports.models import HANDLERS
from sqlflow_edl.session.plan import PLANNERS
from sqlflow_edl.session.program_check import WITH_COLUMNS, WITHOUT_COLUMNS
from sqlflow_edl.session.runner import without_program
from sqlflow_edl.syntax.ast import Constant, Formula, Name, Statement
from sqlflow_edl.syntax.kinds import TRAITS, Kind, Traits

SPAN = Span(0, 1)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_the_title_of_a_kind_begins_with_its_verb(kind: Kind) -> None:
    name = Name(("m",), "m", SPAN, version=3)
    objective = Formula("SUM(x)", Constant(1, SPAN), SPAN)
    written = Statement(
        kind,
        "SELECT 1",
        SPAN,
        model=name,
        using=name,
        into=(name,),
        direction="minimize",
        objective=objective,
    )
    assert title(written, "duckdb").split()[0].replace("_", "").isupper()
    assert "{" not in title(written, "duckdb")


@pytest.mark.parametrize("kind", get_args(Kind))
def test_the_traits_of_a_kind_agree(kind: Kind) -> None:
    traits = TRAITS[kind]
    assert traits.job in (None, *get_args(job_folder.Kind))
    assert traits.job or not traits.generated
    if kind not in (
        "import_model",
        "rename_model",
    ):  # a file makes the first, and the second has another name
        assert bool(traits.job) == (
            traits.makes in ("model", "table")
        )  # the result of a job is kept, or can be
    assert not traits.final or traits.changes_model


@pytest.mark.parametrize(
    ("name", "table", "wanted"),
    [
        ("session.plan.PLANNERS", PLANNERS, lambda _: True),
        ("session.program_check.WITH_COLUMNS", WITH_COLUMNS, lambda each: each.job and not each.generated),
        ("session.program_check.WITHOUT_COLUMNS", WITHOUT_COLUMNS, lambda each: bool(each.job)),
        ("session.runner.without_program", without_program(), lambda each: each.job and not each.generated),
        ("analysis.inference.USES", inference.USES, lambda each: each.generated and each.makes == "table"),
        ("reports.models.HANDLERS", HANDLERS, lambda each: each.title and not each.job),
    ],
)
def test_a_table_has_every_kind_that_it_is_for(
    name: str, table: Collection[str], wanted: Callable[[Traits], object]
) -> None:
    lacking = {kind for kind, traits in TRAITS.items() if wanted(traits)} ^ {*table}
    assert not lacking, f"{name} lacks {', '.join(sorted(lacking))}, or should not have it"
