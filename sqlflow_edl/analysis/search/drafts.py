"""Candidates of a search from its statement: the portfolio's models, or the points of its search space."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from edl.errors import SemanticError, Span, SQLFlowError, raise_all
from edl.installation import install_extras
from sqlflow_edl.analysis.search import local, portfolio, space
from sqlflow_edl.analysis.search.candidates import CandidateDraft, of_portfolio, of_space
from sqlflow_edl.analysis.settings import search as settings
from sqlflow_edl.analysis.settings.attribute_dictionary import Dictionary, Resolved
from sqlflow_edl.analysis.settings.attributes import TRAIN
from sqlflow_edl.analysis.settings.kubernetes import KUBERNETES
from sqlflow_edl.analysis.several_labels import refuse_search
from sqlflow_edl.analysis.train_settings import check_settings
from sqlflow_edl.syntax import ast

TRIALS = 20  # points of a search space by default
POOL = 4  # points of a search space for each trial, among which trials are chosen by the results of others
LEAST_TRIALS = 10  # for which that pays
SPREAD, LEAST_SPREAD = 1 / 3, 5  # share and least number of those trials that are spread over the space
# of the short form, up to which it goes on around the portfolio: each candidate is planned
MOST_COLUMNS = 100
SEED = next({row.name, *row.aliases} for row in TRAIN if row.name == "train.seed")


def is_search(statement: ast.Statement) -> bool:
    """Return True for the short form of TRAIN, for attributes or items of COLUMN with several values, and for folds.

    A model that is trained in folds is the only candidate of its search.
    """
    if statement.kind != "train":
        return statement.kind == "auto"
    return bool(space.searched_items(statement)) or _folds(statement) is not None


def _folds(statement: ast.Statement) -> ast.Attribute | None:
    """Return the attribute that divides the rows into several folds, or None."""
    for attribute in statement.attributes:
        is_one = isinstance(attribute.value, ast.Constant) and attribute.value.value == 1
        if settings.is_folds(attribute.key) and not is_one:
            return attribute
    return None


class Drafts(NamedTuple):
    """Candidates, the number of those that are tried in their order (0: all), and the attributes of the search."""

    candidates: tuple[CandidateDraft, ...]
    ordered: int
    written: dict[str, Resolved]


def drafts_of(
    statement: ast.Statement, notes: list[str], columns: int = 0, *, only_first: bool = False
) -> Drafts:
    """Return the candidates and the checked attributes of the search; raises all errors together.

    only_first: candidates after the first are not wanted.
    """
    errors: list[SQLFlowError] = []
    refuse_search(statement)
    if statement.kind != "auto":
        return _points(statement, notes, errors, columns)
    if several := space.searched_items(statement):
        raise SemanticError(
            "without a model, a search has candidates of its own",
            span=several[0].value.span,
            hint="name the model that is to be tried with several values: TO TRAIN BoostedTrees …",
        )
    dictionary = Dictionary((*settings.ROWS, *KUBERNETES), settings.ELSEWHERE)
    resolved = dictionary.resolve(statement.attributes, errors, notes)
    raise_all(errors)
    models, trials = (value_of(resolved, name) for name in (settings.MODELS, settings.TRIALS))
    variants, missing = portfolio.variants(models or (), trials or 0)
    seconds = float(value_of(resolved, settings.TIME_LIMIT) or math.inf)
    variants = portfolio.sort_by_cost(variants, seconds)
    if not trials and columns > portfolio.WIDE:
        variants = variants[: portfolio.FEWER]
    notes.extend(map(portfolio.note_on_missing, missing))
    if not variants:
        raise SemanticError(
            "none of the models to try is installed",
            span=statement.span,
            hint=install_extras("lightgbm", "torch"),
        )
    further: list[portfolio.Variant] = []
    if only_first:
        variants = variants[:1]
    elif columns <= MOST_COLUMNS and not trials:
        further = local.further_candidates(variants, local.COUNT)
    elif columns <= MOST_COLUMNS:  # generated features may not be tried
        more = max(0, trials - len([variant for variant in variants if not variant.generates]))
        further = local.further_candidates(variants, POOL * more)
    if seconds < portfolio.SHORT:
        further = [candidate.with_one_member() for candidate in further]
    drafts = tuple(of_portfolio(statement, [*variants, *further], resolved))
    ordered = len(variants) if seconds >= portfolio.SHORT else min(portfolio.FIRST_OF_SHORT, len(variants))
    return Drafts(drafts, ordered if further else 0, resolved)


def _points(statement: ast.Statement, notes: list[str], errors: list[SQLFlowError], columns: int) -> Drafts:
    """Return a candidate for each point of the statement's search space, or for as many as are tried."""
    why = _search_reason(statement)
    if statement.using is not None:
        errors.append(
            SemanticError(
                f"{why.words} trains new models, and USING starts from a trained one",
                span=statement.using.span,
                hint=f"leave USING out, or {why.instead}",
            )
        )
    search_attributes = (
        attribute for attribute in statement.attributes if settings.is_of_search(attribute.key)
    )
    resolved = Dictionary(settings.OF_SPACE).resolve(search_attributes, errors, notes)
    all_dimensions = space.dimensions(statement, errors)
    raise_all(errors)
    seed = next(
        (attribute.value for attribute in statement.attributes if attribute.key.casefold() in SEED), None
    )
    first = seed.value if isinstance(seed, ast.Constant) and isinstance(seed.value, int) else 0
    trials = value_of(resolved, settings.TRIALS) or TRIALS
    chooses = trials >= LEAST_TRIALS and columns <= portfolio.WIDE
    drafts = tuple(of_space(statement, all_dimensions, trials, POOL * trials if chooses else trials, first))
    _refuse_other_tasks(drafts[0].statement, why)
    spread = max(LEAST_SPREAD, math.ceil(SPREAD * trials))
    return Drafts(drafts, spread if len(drafts) > trials else 0, resolved)


class _Why(NamedTuple):
    """Words and place of the part that makes a TRAIN statement a search, for messages."""

    words: str
    span: Span
    instead: str


def _search_reason(statement: ast.Statement) -> _Why:
    if several := space.searched_items(statement):
        one_each = "write one value for each attribute and column"
        return _Why("a search over values", several[0].value.span, one_each)
    folds = _folds(statement)
    if folds is None:
        return _Why("a search", statement.span, "name a model")
    return _Why("a training in folds", folds.span, f"leave {folds.key} out")


def _refuse_other_tasks(statement: ast.Statement, why: _Why) -> None:
    """Raise SemanticError if the candidates rank rows (a search cuts their groups), have no label, or forecast."""
    model = check_settings(statement).settings.model
    does = {"ranking": "ranks rows", "forecasting": "forecasts series"}
    does |= {"clustering": "finds clusters", "anomaly detection": "finds anomalies"}
    does |= {"dimensionality reduction": "reduces columns to fewer numbers"}
    if model is not None and model.task in does:
        raise SemanticError(
            f"{why.words} is for numbers and classes, and {model.name} {does[model.task]}",
            span=why.span,
            hint=why.instead,
        )


def value_of(resolved: Mapping[str, Resolved], name: str) -> Any:
    return resolved[name].value if name in resolved else None
