"""Check of a whole program before its first statement runs.

Every statement is checked for all that needs no rows: syntax, models, attributes, clauses, columns. Nothing
is trained, written or pinned. What an earlier statement may change is left to run time, so that no program is
refused that would run:

* a query is described only where no earlier statement changes the tables that it reads, nor, where it reads a
  view, any table; and never after SQL of unknown effects (`USE`, `ATTACH`, SQL that sqlglot cannot read);
* a model that an earlier statement trains is known by its name alone;
* of ordinary SQL, which belongs to the database, the syntax is checked by the database's own parser, and the models
  and queries of PREDICT in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

from edl.data.source import ConflictError, Source, UnreachableError
from edl.errors import Advice, SemanticError, SQLFlowError, did_you_mean, nearest, raise_all
from edl.extension_loader import load
from edl.models.registry.records import ModelVersion, check_name, split_reference
from sqlflow_edl.analysis import inference, measurement, train
from sqlflow_edl.analysis.columns.items import check_calls
from sqlflow_edl.analysis.programs.ddl import changes, tables_read
from sqlflow_edl.analysis.programs.outline import Thing, effects, held_out
from sqlflow_edl.analysis.search import plan as search
from sqlflow_edl.analysis.search.drafts import is_search
from sqlflow_edl.errors.spans import set_missing_spans
from sqlflow_edl.session import passed_on
from sqlflow_edl.session.compiler import Compiler
from sqlflow_edl.session.extended_statements import phase_of_extensions
from sqlflow_edl.session.predictions import refuse_in_job, used_statements
from sqlflow_edl.syntax.ast import Name, Statement
from sqlflow_edl.syntax.kinds import Kind
from sqlflow_edl.syntax.predict_calls import calls_predict

LARGEST_ARCHIVE = 64 << 20  # bytes of a stored model that is fetched only to check a statement
_VIEWS = {  # scheme of a source -> query for its view names; without one, any table may be a view
    "duckdb": "SELECT view_name FROM duckdb_views() WHERE NOT internal",
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'view'",
    "mysql": "SELECT table_name FROM information_schema.views",
    "postgresql": "SELECT viewname FROM pg_views UNION SELECT matviewname FROM pg_matviews",
}


@dataclass(slots=True)
class _Before:
    """Effects of the preceding statements, none of which has run."""

    tables: list[Thing] = field(default_factory=list)  # created, changed or dropped
    trained: set[str] = field(default_factory=set)  # models by name, and tags as name@tag
    dropped: set[str] = field(default_factory=set)  # models, by name; also renamed ones
    renamed: dict[str, Name] = field(default_factory=dict)  # models by name -> their new names
    unknown: bool = False  # anything may be different
    syntax: bool = False  # the database may read what follows otherwise

    def add(self, statement: Statement, dialect: str) -> None:
        """Add the effects of the statement."""
        statement_changes = changes(statement, dialect)
        self.tables += statement_changes.tables
        self.unknown = self.unknown or statement_changes.unknown
        self.syntax = self.syntax or passed_on.changes_syntax(statement)
        is_gone = statement.kind in ("drop_model", "rename_model")
        if is_gone and split_reference(str(statement.model))[1] is None:
            self.dropped.add(str(statement.model))
            self.trained.discard(str(statement.model))
        if statement.kind == "rename_model":
            self.renamed[str(statement.model)] = statement.into[0]
        models = {thing.parts[0] for thing in effects(statement, dialect).makes if thing.kind == "model"}
        self.trained |= models
        self.dropped -= models


class ProgramCheck:
    """Check of one program."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._before = _Before()

    def problems(self, program: Sequence[Statement | SQLFlowError]) -> list[SQLFlowError | None]:
        """Return one error or None for each statement; an unreadable statement is given as its error."""
        return [self._problem(parsed) for parsed in program]

    def _problem(self, statement: Statement | SQLFlowError) -> SQLFlowError | None:
        if isinstance(statement, SQLFlowError):
            self._before.unknown = True
            return statement
        errors: list[SQLFlowError] = []
        with _collect_errors(errors):
            self._check(statement)
        self._before.add(statement, self._compiler.dialect)
        return errors[0] if errors else None

    def _check(self, statement: Statement) -> None:
        """Raise all errors of the statement together."""
        refuse_in_job(statement, self._compiler.dialect)
        if not self._before.syntax:
            self._compiler.check_syntax(statement)
        if statement.trains:
            self._check_training(statement)
        elif statement.traits.generated:
            self._check_use(statement)
        elif statement.traits.job:
            self._check_in_client(statement)
        elif statement.kind == "rename_model":
            self._check_about_model(statement)
            with set_missing_spans(statement.into[0].span):
                check_name(str(statement.into[0]))
        elif statement.traits.makes == "model":
            load("sqlflow_edl.extensions.imported", "check")(statement)
        elif statement.kind != "sql":
            self._check_about_model(statement)
        elif calls_predict(statement.text):
            for used in used_statements(statement, self._compiler.dialect):
                self._check(used)

    # TRAIN ---------------------------------------------------------------------------------------------------

    def _check_training(self, statement: Statement) -> None:
        compiler = self._compiler
        errors: list[SQLFlowError] = []
        with _collect_errors(errors):
            compiler.check_place(statement)
        for name in statement.into:
            with _collect_errors(errors), set_missing_spans(name.span):
                check_name(str(name))
        if not errors:
            with _collect_errors(errors):
                compiler.check_rights(statement)
        with _collect_errors(errors):
            parent = self._find_model(statement.using)
            if statement.using is not None and not _is_small(parent):
                check_without_columns(statement)
            elif (
                self._sees(statement.select)
                and self._sees(held_out(statement))
                and all(_is_small(self._find_model(name)) for name in statement.reused_models)
            ):
                compiler.training_plan(statement)
            else:
                compiler.check_without_columns(statement)
        raise_all(errors)

    # PREDICT, EVALUATE, EXPLAIN ------------------------------------------------------------------------------

    def _check_use(self, statement: Statement) -> None:
        errors: list[SQLFlowError] = []
        with _collect_errors(errors):
            check_without_columns(statement)
            self._compiler.check_place(statement)
        with _collect_errors(errors):
            model = self._find_model(statement.used_model)
            is_seen = self._sees(statement.select) and not self._makes_again(statement)
            if not errors and _is_small(model) and is_seen:
                self._compiler.job_spec(statement)
            elif statement.select and is_seen:
                self._compiler.describe(statement)
        raise_all(errors)

    def _check_about_model(self, statement: Statement) -> None:
        if statement.kind == "drop_tag" and statement.model is not None:
            self._find_model(replace(statement.model, version=statement.tag), ready=False)
        elif not statement.if_exists:
            self._find_model(statement.model, ready=statement.kind in ("set_model", "set_tag"))

    def _check_in_client(self, statement: Statement) -> None:
        if self._sees(statement.select) and not self._makes_again(statement):
            WITH_COLUMNS[statement.kind](self._compiler, statement)
        elif check := OF_PLACE.get(statement.kind):
            check(self._compiler, statement)
        else:
            check_without_columns(statement)

    def _makes_again(self, statement: Statement) -> bool:
        """Return True if an earlier statement changes the table that this statement creates."""
        tables = changes(statement, self._compiler.dialect).tables
        return any(table.is_same(other) for table in tables for other in self._before.tables)

    # What there is -------------------------------------------------------------------------------------------

    def _find_model(self, name: Name | None, *, ready: bool = True) -> ModelVersion | None:
        """Return the stored model of that name, or None if it is not known yet.

        ready: refuse a model if its training failed. Raises SemanticError if there will be no such model.
        """
        before, reference = self._before, str(name)
        if name is None or before.unknown:
            return None
        bare, version = split_reference(reference)
        if {bare, reference} & before.trained:
            return None
        with set_missing_spans(name.span):
            if bare in before.dropped and (new_name := before.renamed.get(bare)):
                raise SemanticError(
                    f"the model {bare} is renamed to {new_name} by an earlier statement",
                    hint=Advice(f"write {new_name}", str(new_name)),
                )
            if bare in before.dropped:
                raise SemanticError(
                    f"the model {bare} is dropped by an earlier statement", hint="use it before DROP MODEL"
                )
            try:
                registry = self._compiler.registry
                return registry.find(reference) if ready else registry.look_up(reference)
            except SemanticError as error:
                if version is None and (near := nearest(bare, before.trained)):
                    error.hint = f"did you mean {near}, which an earlier statement trains?"
                elif version is None:
                    error.hint = error.hint or did_you_mean(bare, before.trained)
                raise

    def _sees(self, query: str) -> bool:
        """Return True if the query's columns are those that it will have when the statement runs."""
        before = self._before
        if before.unknown:
            return False
        if not before.tables or not query:
            return True
        read = tables_read(query, self._compiler.dialect)
        return read is not None and not any(
            self._is_view(table) or any(map(table.is_same, before.tables)) for table in read
        )

    def _is_view(self, table: Thing) -> bool:
        return self._views is None or table.parts[-1].casefold() in self._views

    @cached_property
    def _views(self) -> frozenset[str] | None:
        """Folded names of the views in the source, or None if unknown."""
        return views(self._compiler.source)


# checks of a statement and of the place where it runs, where the columns of its query are not known
OF_PLACE: Mapping[Kind, Callable[[Compiler, Statement], object]] = phase_of_extensions("check_of_place")

# checks of a statement that runs no generated program, where the columns of its query are known
WITH_COLUMNS: Mapping[Kind, Callable[[Compiler, Statement], object]] = {
    "measure": Compiler.measurement,
    **phase_of_extensions("check_columns"),
}


def views(source: Source) -> frozenset[str] | None:
    """Return the folded names of the views in the source, or None if any table may be one.

    A query that reads a view also reads tables that it does not name.
    """
    query = _VIEWS.get(source.url.partition(":")[0])
    reader = source.execute(query) if query else None
    if reader is None:
        return None
    return frozenset(str(name).casefold() for name in reader.read_all().column(0).to_pylist())


def check_without_columns(statement: Statement) -> None:
    """Check an extended statement as far as its text alone shows. Raises all errors together."""
    if check := WITHOUT_COLUMNS.get(statement.kind):
        check(statement)


def _training(statement: Statement) -> None:
    if statement.using is not None:  # all else depends on the model that is trained further
        raise_all([error for clause in statement.columns for error in check_calls(clause.items)])
    elif is_search(statement):
        search.check_without_columns(statement)
    else:
        train.check_without_columns(statement)


WITHOUT_COLUMNS: Mapping[str, Callable[[Statement], object]] = {
    "train": _training,
    "auto": _training,
    **{kind: check for kind, (check, _) in inference.USES.items()},
    "measure": measurement.check,
    **phase_of_extensions("check"),
}


def _is_small(model: ModelVersion | None) -> bool:
    return model is not None and model.archive_bytes <= LARGEST_ARCHIVE


@contextmanager
def _collect_errors(errors: list[SQLFlowError]) -> Iterator[None]:
    """Collect errors in the list. An unreachable or busy source is left to run time."""
    try:
        yield
    except (ConflictError, UnreachableError):
        pass
    except SQLFlowError as error:
        errors.append(error)
