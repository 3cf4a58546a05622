"""Plan of a search as rows of the plan of a statement: section, name, value and reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edl.spec import JobSpec, Search
from sqlflow_edl.analysis.checks.warning import DataWarning
from sqlflow_edl.analysis.search.label_losses import TRIED
from sqlflow_edl.analysis.search.plan import SearchPlan
from sqlflow_edl.analysis.search.portfolio import NOT_INSTALLED
from sqlflow_edl.analysis.settings import search as settings
from sqlflow_edl.reports import text

Row = tuple[str, str, str, str]
WRITTEN, DEFAULT = "written", "default"


def rows(plan: SearchPlan, spec: JobSpec, warnings: Sequence[DataWarning]) -> list[Row]:
    """Plan a search. Raises ValueError if the JobSpec has none."""
    if spec.search is None:
        raise ValueError("the JobSpec has no search")
    return list(_rows(plan, spec, spec.search, warnings))


def _rows(plan: SearchPlan, spec: JobSpec, search: Search, warnings: Sequence[DataWarning]) -> Iterator[Row]:
    def origin(name: str, default: str = DEFAULT) -> str:
        return WRITTEN if name in plan.written else default

    why = "no model is named" if plan.statement.kind == "auto" else "attributes have several values"
    why = "a training in folds" if plan.is_in_folds else why
    several = search.max_members > 1 or search.folds > 1
    best = "the mean of the models that predict" if several else "the model that predicts"
    yield "model", spec.model.name, f"{best} the validation rows best", why
    yield "model", "name", spec.output.name, "a new version under that name"
    yield "label", spec.label.column, text.label(spec.label), _explain_task(plan, spec)
    by_rows = f"{DEFAULT} for {spec.rows.total:,} rows"
    yield "search", "time_limit", f"{search.time_limit:g} s", origin(settings.TIME_LIMIT, by_rows)
    yield "search", "metric", search.metric, origin(settings.METRIC)
    losses = dict.fromkeys(candidate.spec.loss.name for candidate in search.candidates)
    if not spec.label.has_classes and (len(losses) > 1 or settings.LOSSES in plan.written):
        reasons = (note.removeprefix(TRIED).partition(": ")[2] for note in plan.notes if TRIED in note)
        yield "search", "losses", ", ".join(losses), next(reasons, WRITTEN)
    yield "search", "folds", f"{search.folds:,}", origin(settings.FOLDS, by_rows)
    yield "search", "refit", "yes" if search.refit else "no", origin(settings.REFIT)
    yield "search", "max_members", f"{search.max_members:,}", origin(settings.MEMBERS)
    listed = search.ordered or search.count
    if search.ordered:
        of_all = f" of {len(search.candidates):,}" if search.count < len(search.candidates) else ""
        tried = f"at most {search.count:,}{of_all} candidates"
        yield "search", "trials", tried, f"after the first {listed:,}, chosen by the results"
    if search.screening:
        first = f"first on {search.screening:,} training rows, the best third on all"
        yield "search", "halving", first, origin(settings.HALVING)
    for number, candidate in enumerate(search.candidates[:listed], 1):
        model, _, parameters = candidate.name.partition(", ")
        yield "candidates", f"{number} {model}", parameters, origin(settings.MODELS, "")
    if search.ordered:
        others = f"{len(search.candidates) - listed:,} with other settings"
        yield "candidates", "others", others, "those near the best are tried, while there is time"
    missing = (note for note in plan.notes if NOT_INSTALLED in note)
    yield from (("note", str(number), note, "") for number, note in enumerate(missing, 1))
    for column in spec.columns:
        yield "columns", column, "", ""
    left_out = {
        ", ".join(decision.columns): decision.why for decision in plan.decisions if decision.fitted is None
    }
    models = [candidate.spec for candidate in search.candidates]
    for columns, reason in left_out.items():
        if described := text.left_out(columns, reason, models, "candidate"):
            yield "left out", columns, "", described
    yield from (("warnings", warning.about, warning.message, warning.advice) for warning in warnings)
    yield from _list_rows(plan, spec, search)


def _explain_task(plan: SearchPlan, spec: JobSpec) -> str:
    """Tell why a label of whole numbers has classes or is a number, and how to change that."""
    column = spec.label.column
    if plan.statement.kind != "auto" or not plan.schema.is_integer(column):
        return ""
    if plan.task:
        return f"by the metric {spec.search.metric}" if spec.search is not None else ""
    if spec.label.has_classes:
        return "few different whole numbers are classes; write auto.metric = rmse to predict a number"
    return "many different whole numbers are one number; write auto.metric = log_loss for classes"


def _list_rows(plan: SearchPlan, spec: JobSpec, search: Search) -> Iterator[Row]:
    yield "rows", "total", f"{spec.rows.total:,}", "counted now; pinned when the search starts"
    blocks = spec.rows.blocks
    is_forward = blocks.is_forward if blocks else False
    item = f"in {'the last' if is_forward else 'each'} fold" if search.folds > 1 else ""
    yield "rows", "training", f"{spec.rows.training:,}", item
    chooses = "choose the models and their length"
    yield "rows", "validation", f"{spec.rows.validation:,}", f"{item}, {chooses}" if item else chooses
    if spec.split is not None:
        why = WRITTEN if plan.splitting.span else f"{DEFAULT}: {plan.splitting.why}"
        yield "rows", "split", text.split(spec.split), why
    if search.test:
        yield "rows", "test", f"{search.test:,}", "choose nothing: the figures of the ensemble are of them"
