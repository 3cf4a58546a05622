"""Factors of users and items by alternating least squares, see `edl.extensions.decomposition.rating_matrix`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from edl import spec
from edl.errors import SemanticError, Span
from edl.spec.job import FACTORS
from sqlflow_edl.analysis.columns.inputs import ModelInputs, Placed, embed
from sqlflow_edl.analysis.models.base import Architecture, Length, Model, Parameters
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow
from sqlflow_edl.analysis.settings.optimizer import train_in_one_pass

IMPLICIT = "implicit"
_ALPHA = 40.0
_PARAMETERS = (
    AttributeRow(
        "model.num_factors",
        "integer",
        "Length of the vector of each user and item.",
        16,
        low=1,
        high=200,
        aliases=("num_factors", "n_factors", "model.n_factors", "model.embedding_dim", "embedding_dim"),
    ),
    AttributeRow(
        "model.feedback_type",
        "text",
        "Ratings, or implicit feedback: how often or how long a user has chosen an item.",
        "explicit",
        choices=("explicit", IMPLICIT),
        aliases=("feedback_type",),
    ),
    AttributeRow(
        "model.l2_reg",
        "number",
        "Penalty of the squared factors: for each rating of a user or item, in units of the ratings' deviation, by "
        "default 0.1; of implicit feedback once, by default 1.",
        low=0,
        aliases=("l2_reg", "model.l2", "l2", "model.reg", "reg"),
    ),
    AttributeRow(
        "model.iterations",
        "integer",
        "Largest number of iterations; the loss decides on the last one.",
        20,
        low=1,
        high=1000,
        aliases=("iterations", "max_iterations", "model.max_iterations", "train.epochs", "epochs"),
    ),
    AttributeRow(
        "model.wals_alpha",
        "number",
        "Growth of the confidence in a choice with its number, of implicit feedback; by default 40.",
        low=0,
        aliases=("wals_alpha", "alpha", "model.alpha"),
    ),
)


def _assemble(
    columns: Sequence[Placed], label: spec.Label, parameters: Parameters, span: Span | None
) -> ModelInputs:
    """Return the vectors of two categories, with a number for the bias. Raises SemanticError for other columns."""
    names = [", ".join(map(str, spec.sources(placed.column))) for placed in columns]
    categories = [
        placed.column
        for placed in columns
        if spec.is_category(placed.column) and "sequence" not in placed.column.places
    ]
    if len(categories) != 2 or len(columns) != 2:
        read = (
            " and ".join(names) if len(names) < 3 else f"{', '.join(names[:2])} and {len(names) - 2} others"
        )
        raise SemanticError(
            f"MatrixFactorization learns from two categories, a user and an item, and the columns are {read}",
            span=span,
            hint="name them: COLUMN VOCABULARIZE(user), VOCABULARIZE(item)",
        )
    if "wals_alpha" in parameters and parameters["feedback_type"] != IMPLICIT:
        raise SemanticError(
            "wals_alpha is of implicit feedback",
            span=span,
            hint='leave it out, or write model.feedback_type = "implicit"',
        )
    factors = int(parameters["num_factors"])  # type: ignore[arg-type]
    return {"features": tuple(embed(category, factors + 1, initial="zeros") for category in categories)}


def _move_to_solver(job: spec.JobSpec) -> spec.JobSpec:
    """Return the JobSpec with the parameters of the solver in place of an optimizer's.

    Predictions from implicit feedback are preferences near 0 or 1, so ratings have no metrics.
    """
    parameters = dict(job.model.params)
    solver: dict[str, spec.job.Parameter] = {"iterations": parameters.pop("iterations")}
    if (penalty := parameters.pop("l2_reg", None)) is not None:
        solver["l2"] = penalty
    alpha = parameters.pop("wals_alpha", _ALPHA)
    is_implicit = parameters["feedback_type"] == IMPLICIT
    if is_implicit:
        solver["alpha"] = alpha
    moved = msgspec.structs.replace(
        job,
        model=spec.Component(job.model.name, parameters),
        optimizer=spec.Component(FACTORS, solver),
        **({"loss": spec.Component("preference"), "metrics": ()} if is_implicit else {}),
    )
    return train_in_one_pass(moved)


def _values(job: spec.JobSpec) -> Mapping[str, object]:
    implicit = job.model.params["feedback_type"] == IMPLICIT
    return {
        "factors": job.model.params["num_factors"],
        "implicit": ", implicit=True" if implicit else "",
        **({"scaled": ""} if implicit else {}),
    }


MODELS = (
    Model(
        "MatrixFactorization",
        "Vectors of users and items by alternating least squares, for ratings or implicit feedback.",
        _PARAMETERS,
        aliases=("ALS", "AlternatingLeastSquares"),
        task="regression",
        frameworks=("torch",),
        architecture=Architecture(
            "matrix_factorization",
            _assemble,
            size=lambda job: sum(
                spec.num_ids(feature.category) * feature.dim for feature in spec.embeddings(job.features)
            ),
            values=_values,
        ),
        defaults={"optimizer": FACTORS},
        length=Length(1, (1, 1), 0, (), spec.BLOCK, least_steps=1),
        solver=FACTORS,
        finish=_move_to_solver,
        constant_label=("model.feedback_type", IMPLICIT),  # rows say which pairs were chosen
    ),
)
