"""Attributes of a search, beside those that every candidate takes over."""

from __future__ import annotations

from collections.abc import Mapping

from edl import metrics
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow, Dictionary
from sqlflow_edl.analysis.settings.attributes import TRAIN

ACTIVATE = "train.activate"
KINDS = ("trees", "networks", "linear", "lightgbm", "xgboost", "torch")

TIME_LIMIT, TRIALS, METRIC, MODELS, MEMBERS, FOLDS, REFIT, HALVING, GAP = (
    "train.time_limit", "auto.trials", "auto.metric", "auto.models", "auto.max_members", "auto.folds", "auto.refit",
    "auto.halving", "validation.gap",
)  # fmt: skip
LOSSES, NO_LOSS = "auto.losses", "none"
SEARCH = (
    AttributeRow(
        TRIALS,
        "integer",
        "Maximum number of candidates; by default the whole portfolio and settings near the best "
        "ones, as far as the time allows.",
        low=1,
        high=1000,
        aliases=("auto.max_trials", "max_trials", "num_trials"),
    ),
    AttributeRow(
        METRIC,
        "text",
        "Metric on the validation rows that selects the models; by default log_loss for classes, rmse "
        "for numbers. In the short form it decides whether a label of whole numbers has classes or is a number.",
        choices=tuple(
            name
            for kind in ("binary", "regression")
            for name in metrics.names(kind)
            if metrics.by_name(name, kind).ranks_models
        ),
        aliases=("auto.objective",),
    ),
    AttributeRow(
        MODELS,
        "texts",
        f"Kinds of models to try: {', '.join(KINDS)}. By default all installed ones.",
        choices=KINDS,
    ),
    AttributeRow(
        LOSSES,
        "texts",
        "Losses with which trees are tried for a number, beside the squared error: poisson for counts, gamma for "
        "amounts above 0, tweedie for amounts from 0 on; none tries no other. By default the one that suits a label "
        "without negative values and with a long tail.",
        choices=(NO_LOSS, "poisson", "gamma", "tweedie"),
        aliases=("auto.loss",),
    ),
    AttributeRow(
        FOLDS,
        "integer",
        "Trainings of each candidate; each one validates on another part of the rows, and the model "
        "is their mean. 1 is a single training. By default 5 for up to 5,000 rows (fewer with more "
        "than 200 columns), else 1, and 1 if the statement names validation rows or a date orders the rows. "
        "validation.split chooses the rows of a fold; by time, each training reads only earlier rows. If TO TRAIN "
        "names the model, the trainings cross-validate it, and then it is trained on all rows.",
        low=1,
        high=20,
        aliases=("auto.k_folds", "validation.folds"),
    ),
    AttributeRow(
        GAP,
        "number",
        "Least distance between the training rows and the validation rows of a fold by time: days of a date or "
        "timestamp, units of a number.",
        low=0,
    ),
    AttributeRow(
        REFIT,
        "boolean",
        "Train the selected models once more at the end, on all rows and for the best number of "
        "epochs, as far as the time allows. By default true in the short form, unless it trains in "
        "folds, its validation rows are written, or train.activate = better compares versions.",
    ),
    AttributeRow(
        HALVING,
        "boolean",
        "Train candidates on a ninth of the training rows first, and only the best third on all rows. "
        "By default true for 10 trials or more of RANGE and CANDIDATES from 50,000 training rows on. "
        "Not in folds.",
        aliases=("auto.successive_halving",),
    ),
    AttributeRow(
        MEMBERS,
        "integer",
        "Maximum number of models in the ensemble; each adds its time to a prediction.",
        5,
        low=1,
        high=50,
    ),
)
_FOLDS = next({row.name, *row.aliases} for row in SEARCH if row.name == FOLDS)
# Attributes of TRAIN that a search passes on to its candidates.
SHARED = (
    "train.seed", "train.weight_column", "train.on_bad_row", "train.text_numbers", "train.class_weights",
    "validation.fraction", "validation.select", "validation.test_fraction", "validation.metrics", "validation.split",
    "validation.column", "validation.calibration", "validation.threshold", "model.keep_rows",
)  # fmt: skip
_OWN = tuple(row for row in TRAIN if row.name in (TIME_LIMIT, ACTIVATE))
# of a TRAIN statement with several values
OF_SPACE = (*_OWN, *(row for row in SEARCH if row.name not in (MODELS, LOSSES)))
ROWS = (*(row for row in TRAIN if row.name in SHARED), *_OWN, *SEARCH)
_OF_TRAIN = Dictionary(TRAIN)
_ONE_MODEL = "TRAIN of one model, such as TO TRAIN BoostedTreesClassifier; a search chooses it"
ELSEWHERE: Mapping[str, str] = {
    name: _ONE_MODEL for row in TRAIN if row not in ROWS for name in (row.name, *row.aliases)
}
_SEARCHES = "searches: write RANGE or CANDIDATES as the value of an attribute, or name no model"
OF_SEARCHES: Mapping[str, str] = {
    **{name: _SEARCHES for row in SEARCH for name in (row.name, *row.aliases)},
    **dict.fromkeys((*_FOLDS, GAP), "a training in folds; write validation.folds = 2 or more"),
}


def find(key: str) -> AttributeRow | None:
    """Return the row of an attribute of TRAIN by its name or alias, or None."""
    return _OF_TRAIN.find(key)


def is_of_search(key: str) -> bool:
    """Return True if an attribute of a TRAIN statement with several values is the search's, not its candidates'."""
    names = {name for row in OF_SPACE for name in (row.name, *row.aliases)}
    return key.casefold() in names or key.casefold().startswith("auto.")


def is_folds(key: str) -> bool:
    """Return True if an attribute is the number of folds, by its name or an alias."""
    return key.casefold() in _FOLDS
