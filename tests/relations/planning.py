"""Relations of plans: what would run, from statements and rows in other forms."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

from edl.spec import to_json
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax.layout import laid_out
from tests.relations.comparing import Pair, answer
from tests.relations.kinds import quoted
from tests.relations.places import DATABASES
from tests.relations.registry import Case, Pairs, relation
from tests.relations.tables import LABEL


def plan(session: Session, text: str) -> Any:
    """The JobSpec that a TRAIN statement compiles to, without its text and its place."""
    [compiled] = session.compile(text)
    found = json.loads(to_json(compiled.spec))
    for key in ("statement", "query", "sql"):
        found.pop(key, None)
    return found


def _train(case: Case, session: Session, name: str) -> str:
    columns = ", ".join(quoted(each, session.dialect) for each in case.table.names)
    return case.train.text(f"SELECT {columns} FROM {name}", "m", session.dialect)


@relation(sources=(*DATABASES, "parquet", "frame"))
def planned_again(case: Case) -> Pairs:
    """A statement compiles to the same JobSpec each time."""
    with case.place.stored(case.table, case.source) as (session, name):
        text = _train(case, session, name)
        first = answer(lambda: plan(session, text))
        yield Pair(first, answer(lambda: plan(session, text)))


@relation()
def plan_formatted(case: Case) -> Pairs:
    """A statement as `sqlflow fmt` lays it out has the same plan, and is laid out already."""
    with case.place.stored(case.table, case.source) as (session, name):
        text = _train(case, session, name)
        neat = laid_out(text, session.dialect)
        yield Pair(neat, laid_out(neat, session.dialect), what="laid out twice")
        yield Pair(answer(lambda: plan(session, text)), answer(lambda: plan(session, neat)), what=neat)


@relation()
def plan_respelt(case: Case) -> Pairs:
    """Keywords in other letters, comments, line ends and clauses in another order have the same plan."""
    with case.place.stored(case.table, case.source) as (session, name):
        text = _train(case, session, name)
        other = respelt(text, case.draw)
        yield Pair(answer(lambda: plan(session, text)), answer(lambda: plan(session, other)), what=other)


def respelt(text: str, draw: Random) -> str:
    """Write the statement in another form."""
    select, _, rest = text.partition(" TO TRAIN ")
    model, _, clauses = rest.partition(" WITH ")
    parts = [part for part in re.split(r" (?=COLUMN |LABEL |INTO )", f"WITH {clauses}") if part]
    draw.shuffle(parts)
    gaps: tuple[Callable[[], str], ...] = (
        lambda: " ",
        lambda: "\n",
        lambda: " /* a 'comment */ ",
        lambda: " -- to 'train\n",
        lambda: "\t\n ",
    )
    said = [f"{select}", draw.choice(("TO TRAIN", "to train", "TRAIN", "To Train")), model]
    for part in parts:
        keyword, _, others = part.partition(" ")
        said += [draw.choice((keyword, keyword.lower())), others]
    return "".join(piece + draw.choice(gaps)() for piece in said) + draw.choice(("", ";", ";;"))


@relation(sources=("sqlite", "mysql", "postgres", "parquet", "frame"))
def planned_elsewhere(case: Case) -> Pairs:
    """The same rows in DuckDB and in another source have the same features, with the same statistics."""
    found = []
    for source in ("duckdb", case.source):
        with case.place.stored(case.table, source) as (session, name):
            text = _train(case, session, name)
            found.append(answer(lambda session=session, text=text: plan(session, text)))
    yield Pair(*found)


@relation("split held", tolerance="singles")  # of the mean of a label, written in single precision
def plan_of_permuted_rows(case: Case) -> Pairs:
    """Rows in another order have the same plan."""
    order = case.draw.sample(range(case.table.rows), case.table.rows)
    found = []
    for table in (case.table, case.table.take(order)):
        with case.place.stored(table, case.source) as (session, name):
            text = _train(case, session, name)
            found.append(answer(lambda session=session, text=text: plan(session, text)))
    yield Pair(*found)


@relation()
def plan_of_renamed_columns(case: Case) -> Pairs:
    """Other names of the columns have the same plan, with these names in it."""
    features = [name for name in case.table.names if name != LABEL]
    new = {name: f"renamed {at}" for at, name in enumerate(features)}
    found = []
    for table, names in ((case.table, new), (case.table.rename(new), {})):
        with case.place.stored(table, case.source) as (session, name):
            columns = ", ".join(quoted(each, session.dialect) for each in table.names)
            text = case.train.text(f"SELECT {columns} FROM {name}", "m", session.dialect)
            outcome = answer(lambda session=session, text=text: plan(session, text))
            found.append(_renamed(outcome, names))
    yield Pair(*found)


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """Replace texts that are names of columns; keys are fields, which a column may be named like."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    if isinstance(value, dict):
        return {key: _renamed(each, names) for key, each in value.items()}
    return value


@relation()
def explained_as_compiled(case: Case) -> Pairs:
    """EXPLAIN of a statement never fails where it compiles, and says the same twice."""
    with case.place.stored(case.table, case.source) as (session, name):
        text = f"EXPLAIN {_train(case, session, name)}"
        found = [answer(lambda: next(session.stream(text)).to_arrow().to_pylist()) for _ in range(2)]
        yield Pair(*found)
