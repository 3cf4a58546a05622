"""`sqlflow report`: a model as one static file, without references to anything else."""

from __future__ import annotations

from sqlflow_edl.web.model_reader import ModelDetails
from sqlflow_edl.web.model_view import view
from sqlflow_edl.web.rendering import asset, render


def report_of(model: ModelDetails) -> str:
    """Render the report of a version of a model."""
    return render("report", view=view(model), style=asset("page.css"), script=asset("page.js"))
