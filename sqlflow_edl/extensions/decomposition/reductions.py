"""Principal components and autoencoders, which put a few numbers in place of the columns of a row.

Both are models without a label. Principal components are solved for (`edl.extensions.decomposition.components`); an
autoencoder is a network like others, with the error of the restored features as its loss.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import msgspec

from edl import spec
from edl.errors import SemanticError, Span
from edl.spec.job import COMPONENTS
from sqlflow_edl.analysis.columns.inputs import ModelInputs, Placed
from sqlflow_edl.analysis.models.base import Architecture, Length, Model, Parameters
from sqlflow_edl.analysis.models.parts import ACTIVATION, DROPOUT, HIDDEN_UNITS, assemble_unlabelled
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow
from sqlflow_edl.analysis.settings.optimizer import train_in_one_pass

MOST_FEATURES = 2000  # the work of an exact solution grows with their square
COMPONENT, CODE = "principal_component", "latent_col"

NUMBER = AttributeRow(
    "model.num_components",
    "integer",
    "Number of principal components; by default as many as features, or rows if these are fewer.",
    low=1,
    high=MOST_FEATURES,
    aliases=(
        "num_components",
        "n_components",
        "model.n_components",
        "num_principal_components",
        "model.num_principal_components",
    ),
)
RATIO = AttributeRow(
    "model.explained_variance_ratio",
    "number",
    "Share of the variance to explain, by as few components as possible.",
    low=1e-9,
    high=1,
    aliases=(
        "explained_variance_ratio",
        "pca_explained_variance_ratio",
        "model.pca_explained_variance_ratio",
    ),
)
SCALE = AttributeRow(
    "model.scale_features",
    "boolean",
    "Divide numbers by their standard deviation; without it they only lose their mean.",
    True,
    aliases=("scale_features",),
)


def _assemble(
    columns: Sequence[Placed], label: spec.Label, parameters: Parameters, span: Span | None
) -> ModelInputs:
    """Return the features, unscaled if the parameters say so. Raises SemanticError for too many or too few of them."""
    inputs = assemble_unlabelled(columns, label, parameters, span)
    width = sum(map(spec.width, inputs["features"]))
    number = parameters.get("num_components")
    if isinstance(number, int) and "explained_variance_ratio" in parameters:
        raise SemanticError(
            "num_components and explained_variance_ratio both tell the number of components",
            span=span,
            hint="leave one of them out",
        )
    if width > MOST_FEATURES:
        raise SemanticError(
            f"PCA has at most {MOST_FEATURES:,} features, and these columns make {width:,}",
            span=span,
            hint="categories of many values make many features",
        )
    if isinstance(number, int) and number > width:
        raise SemanticError(
            f"{width:,} features have at most {width:,} components",
            span=span,
            hint=f"write num_components = {width}",
        )
    return inputs


def _width(job: spec.JobSpec) -> int:
    return sum(map(spec.width, job.features))


def _count_components(job: spec.JobSpec) -> spec.JobSpec:
    """Return the JobSpec with the number of components, and its share of the variance at the solver."""
    parameters = dict(job.model.params)
    ratio = parameters.pop("explained_variance_ratio", None)
    most = min(_width(job), job.rows.training)
    parameters["num_components"] = number = min(int(parameters.get("num_components", most)), most)  # type: ignore[arg-type]
    counted = msgspec.structs.replace(
        job,
        model=spec.Component(job.model.name, parameters),
        label=spec.ReductionLabel(number, COMPONENT),
        optimizer=spec.Component(COMPONENTS, {} if ratio is None else {"explained_variance_ratio": ratio}),
    )
    return train_in_one_pass(counted)


def _units(job: spec.JobSpec) -> list[int]:
    return [int(units) for units in job.model.params["hidden_units"]]  # type: ignore[union-attr,arg-type]  # integers


def _count_codes(job: spec.JobSpec) -> spec.JobSpec:
    return msgspec.structs.replace(job, label=spec.ReductionLabel(min(_units(job)), CODE))


def _autoencoder_size(job: spec.JobSpec) -> int:
    width = _width(job)
    return sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise([width, *_units(job), width]))


def _autoencoder_values(job: spec.JobSpec) -> Mapping[str, object]:
    return {"units": _units(job)}


MODELS = (
    Model(
        "PCA",
        "Principal components, solved for exactly; TRAIN without a LABEL.",
        (NUMBER, RATIO, SCALE),
        aliases=("PrincipalComponents", "PrincipalComponentAnalysis"),
        task="dimensionality reduction",
        frameworks=("torch",),
        architecture=Architecture(
            "principal_components",
            _assemble,
            size=lambda job: job.label.dimensions * _width(job),
        ),
        defaults={"optimizer": COMPONENTS, "validation.fraction": 0.0},
        length=Length(1, (1, 1), 0, (), spec.BLOCK, least_steps=1),
        solver=COMPONENTS,
        finish=_count_components,
    ),
    Model(
        "Autoencoder",
        "Network that restores the columns of a row from a few codes; TRAIN without a LABEL.",
        (HIDDEN_UNITS, ACTIVATION, DROPOUT),
        aliases=("AutoEncoder",),
        task="dimensionality reduction",
        frameworks=("torch",),
        architecture=Architecture(
            "autoencoder", assemble_unlabelled, size=_autoencoder_size, values=_autoencoder_values
        ),
        defaults={
            "model.hidden_units": (32, 8, 32),
            "optimizer": "adam",
            "optimizer.learning_rate": 0.002,
            "optimizer.schedule": "cosine",
        },
        length=Length(2000, (5, 100), 10, ((1_000, 32), (10_000, 64), (100_000, 256))),
        finish=_count_codes,
    ),
)
