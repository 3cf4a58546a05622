"""Answers to calls of functions of BigQuery ML, such as ML.PREDICT, in the columns of its reference."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from edl.data import Source
from edl.models.registry.base import Registry
from edl.spec import JobSpec
from sqlflow_edl.extensions.bigquery_ml import reference_columns as reference
from sqlflow_edl.extensions.bigquery_ml.data_statistics import describe_rows
from sqlflow_edl.extensions.bigquery_ml.forecast_quality import evaluate_later
from sqlflow_edl.extensions.bigquery_ml.functions import ModelFunction, Predict, is_derived
from sqlflow_edl.reports.models import open_archive
from sqlflow_edl.syntax.ast import Name, Statement
from sqlflow_edl.syntax.predict_calls import PredictCall


def answer_call(
    call: PredictCall,
    statement: Statement,
    source: Source,
    predict: Predict,
    trained: Callable[[Name], JobSpec],
    registry: Callable[[], Registry],
) -> pa.Table | None:
    """Return the rows of a call, or None if our own statement has them in the columns of the reference.

    statement: ours for the call. trained: returns the JobSpec of a model. registry: returns what has the models.
    source and predict: as of `ModelFunction`.
    """
    if call.is_of_rows:
        return describe_rows(call, statement, source)
    if not (call.is_derived or reference.has_columns_of_its_own(call)):
        return None
    spec = trained(call.model)
    function = ModelFunction(
        call, statement, spec, source, predict, lambda name: open_archive(registry(), name, str(name))
    )
    if is_derived(call, spec):
        return function.rows()
    if (
        call.function == "EVALUATE"
        and spec.label.is_forecast
        and (later := evaluate_later(function)) is not None
    ):
        return later
    rows, computed = predict(reference.request_settings(call, statement, spec))
    return reference.as_in_reference(call, spec, rows, computed)
