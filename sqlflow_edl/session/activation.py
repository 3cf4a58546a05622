"""Comparison of a new version with the current one, by `train.activate = better` and `sqlflow retrain`.

The current one is measured on the validation rows of the new training before that starts, so that whatever process
stores the new version compares two figures.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pyarrow as pa

from edl import metrics
from edl.data import Pinned, Source
from edl.data.pinned import pin_rows
from edl.errors import SemanticError, Span, SQLFlowError
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError
from edl.models.archive import read_archive
from edl.models.pending import Rival
from edl.models.registry.base import Registry
from edl.models.registry.records import ModelVersion
from edl.spec import Cluster, JobSpec, Rows
from sqlflow_edl.analysis.inference.evaluation import evaluation
from sqlflow_edl.analysis.search.plan import AnyPlan, SearchPlan
from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved
from sqlflow_edl.analysis.settings.search import ACTIVATE
from sqlflow_edl.backends.submit import Submitter
from sqlflow_edl.codegen import generate
from sqlflow_edl.session.comparison import SeenRowsFinder
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.pinning import reader_of
from sqlflow_edl.syntax import ast

METRICS = "validation.metrics"
# of each kind of label, the metric that sees small differences
_USUAL = {"rmse", "log_loss", "ndcg@10", "inertia"}


@dataclass(frozen=True, slots=True)
class Activation:
    """Comparison of a new version with the current one of its name.

    span: of the attribute that asks for it; None if the comparison does not decide. pinned, job: rows of the training,
    and its folder.
    """

    source: Source
    plan: AnyPlan
    fitted: JobSpec
    pinned: Pinned
    job: JobFolder
    span: Span | None

    def rival(self, registry: Registry, submitter: Submitter, name: str) -> Rival | None:
        """Measure the current version on the rows that will measure the new one; return None if there is no version.

        Raises SemanticError if there are no such rows, or the model cannot be used on them.
        """
        metric, start = self._metric(), self._first_row()
        current = current_version(registry, name)
        if current is None:
            return None
        with TemporaryDirectory(prefix="current-", dir=self.job.path) as folder:
            job_of_rival = JobFolder(Path(folder))
            registry.load(current.reference, job_of_rival.model)
            try:
                evaluation = self._evaluation(current.reference, metric, job_of_rival.model)
                pinned = self._pin_new_rows(start, job_of_rival)
                rows = Rows(True, pinned.rows, 0, 0, pinned.digest)
                evaluation = msgspec.structs.replace(evaluation, rows=rows, cluster=Cluster())
                generate(evaluation).write(job_of_rival.program)
                seen = SeenRowsFinder(
                    self.source,
                    current.reference,
                    read_archive(job_of_rival.model),
                    self.fitted.query,
                    pinned,
                    job_of_rival,
                ).find()
                outcome = submitter.run(
                    job_of_rival, evaluation, pinned, Silent(), weights=job_of_rival.model
                )
            except JobCancelledError:
                raise
            except SQLFlowError as error:
                raise SemanticError(
                    f"{current.reference} cannot be measured on the validation rows: {error.message}",
                    span=self.span,
                    hint=f"leave {ACTIVATE} out, and compare the versions by EVALUATE",
                ) from None
        higher = metrics.by_name(_own_name(metric), None).higher_is_better
        return Rival(
            current.reference,
            metric,
            outcome.figures.get(metric),
            pinned.rows,
            higher,
            outcome.figures,
            None if seen is None or seen.why else seen.seen,
            self.span is not None,
        )

    def _metric(self) -> str:
        """Return the metric that compares: a search's metric, the first written one, or the usual one of the label."""
        names = [name for name in self.fitted.metrics if metrics.by_name(_own_name(name), None).ranks_models]
        if self.fitted.forecast is not None:
            raise SemanticError(
                "versions are compared on the same rows, and each forecast has a backtest of its own",
                span=self.span,
                hint="compare the metrics of their backtests",
            )
        if self.fitted.label.tells_anomalies:
            raise SemanticError(
                "versions are compared by their errors, and a model of anomalies has no label to be wrong about",
                span=self.span,
                hint="compare versions by EVALUATE with a label, and choose one with SET MODEL",
            )
        if not names:
            raise SemanticError(
                "versions are compared by a metric with a name, and the metrics are those of the model's module",
                span=self.span,
                hint=f'write {METRICS} = "rmse"',
            )
        search = self.fitted.search
        if search is not None and search.metric in names:
            return search.metric
        usual = () if METRICS in self.plan.settings.resolved else (name for name in names if name in _USUAL)
        return next(iter(usual), names[0])

    def _first_row(self) -> int:
        """Return the first of the last rows, those that measure the new version."""
        rows = self.fitted.rows
        test = rows.test
        if test:
            return rows.total - test
        if self.fitted.folds > 1 or not rows.validation:
            why = "a search in folds validates on all rows" if self.fitted.folds > 1 else "there are none"
            raise SemanticError(
                f"a comparison of versions needs validation rows that the new one is not trained on, and {why}",
                span=self.span,
                hint="write VALIDATE 0.2, or VALIDATE ON (SELECT …)",
            )
        return rows.training

    def _pin_new_rows(self, start: int, job_of_rival: JobFolder) -> Pinned:
        """Copy the rows from `start` on into the folder of the evaluation."""
        reader = reader_of(self.pinned, self.job)
        batches = reader.read(start, self.fitted.rows.total)
        first = next(batches)
        query = self.fitted.query
        stream = pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], batches))
        return pin_rows(
            job_of_rival.rows, stream, source=query.source, select=query.select, seed=0, shuffled=False
        )

    def _evaluation(self, reference: str, metric: str, file: Path) -> JobSpec:
        """Return the JobSpec that measures the version as a training measures its own: by the more probable class."""
        statement, span = self.plan.statement, self.span or self.plan.statement.span
        names = ", ".join(dict.fromkeys((metric, *self.fitted.metrics)))
        evaluate = replace(
            statement,
            kind="evaluate",
            model=ast.Name((reference,), reference, span),
            attributes=(ast.Attribute(METRICS, ast.Constant(names, span), span),),
            into=(),
        )
        job = evaluation(evaluate, read_archive(file), reference, self.fitted.query, self.plan.schema)
        return msgspec.structs.replace(job, threshold=None, temperature=1.0)


def _own_name(metric: str) -> str:
    """Return the name of a metric, without the label before it if there are several."""
    return metric.rpartition(".")[2]


def find_comparison(plan: AnyPlan) -> Resolved | None:
    """Return the attribute that asks for a comparison, or None."""
    resolved = plan.written if isinstance(plan, SearchPlan) else plan.settings.resolved
    attribute = resolved.get(ACTIVATE)
    return attribute if attribute is not None and attribute.value == "better" else None


def current_version(registry: Registry, name: str) -> ModelVersion | None:
    """Return the current version of the model, or None before the first one."""
    version = registry.look_up(name) if registry.has(name) else None
    return version if version is not None and version.state == "ready" else None
