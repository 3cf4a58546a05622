"""What a person would train on a table by hand: LightGBM, XGBoost, scikit-learn's HistGradientBoosting and a linear
model.

Each takes training and held-out rows as data frames with the column `label`, learns with its own defaults, and returns
predictions for the held-out rows: numbers, or probabilities of the classes in their natural order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

LABEL = "label"
MOST_CATEGORIES = 255  # of scikit-learn's trees; the codes of more are numbers to them


def lightgbm(train: Any, held_out: Any) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    features, others = code_columns(train, held_out, most=None)
    return _predicted(LGBMRegressor(verbose=-1), LGBMClassifier(verbose=-1), train, features, others)


def xgboost(train: Any, held_out: Any) -> Any:
    import pandas as pd
    from xgboost import XGBClassifier, XGBRegressor

    features, others = code_columns(train, held_out, most=None)
    models = XGBRegressor(enable_categorical=True), XGBClassifier(enable_categorical=True)
    if not pd.api.types.is_numeric_dtype(train[LABEL].dtype):  # it takes classes as numbers only
        train = train.assign(**{LABEL: train[LABEL].astype("category").cat.codes.astype("category")})
    return _predicted(*models, train, features, others)


def hist_gradient_boosting(train: Any, held_out: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    features, others = code_columns(train, held_out, most=MOST_CATEGORIES)
    chosen = {"categorical_features": "from_dtype", "random_state": 0}
    models = HistGradientBoostingRegressor(**chosen), HistGradientBoostingClassifier(**chosen)
    return _predicted(*models, train, features, others)


def linear(train: Any, held_out: Any) -> Any:
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="ignore", min_frequency=2),
            make_column_selector(dtype_exclude="number"),
        ),
    )
    features, others = (_with_times_as_numbers(each.drop(columns=LABEL)) for each in (train, held_out))
    models = make_pipeline(columns, Ridge()), make_pipeline(columns, LogisticRegression(max_iter=200))
    return _predicted(*models, train, features, others)


Model = Callable[[Any, Any], Any]  # from training rows and features of others to their predictions
MODELS: Mapping[str, Model] = {
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "HistGradientBoosting": hist_gradient_boosting,
    "linear": linear,
}


def _predicted(regressor: Any, classifier: Any, train: Any, features: Any, others: Any) -> Any:
    import pandas as pd

    label = train[LABEL]
    if pd.api.types.is_numeric_dtype(label.dtype):
        return regressor.fit(features, label).predict(others)
    return classifier.fit(features, label).predict_proba(others)


def code_columns(train: Any, held_out: Any, most: int | None) -> tuple[Any, Any]:
    """Return the features of both, texts as categories of the training rows."""
    import pandas as pd

    features, others = (_with_times_as_numbers(each.drop(columns=LABEL)) for each in (train, held_out))
    for name in features.columns:
        if pd.api.types.is_numeric_dtype(features[name]):
            continue
        known = pd.CategoricalDtype(sorted(features[name].dropna().astype(str).unique()))
        for frame in (features, others):
            coded = frame[name].where(frame[name].isna(), frame[name].astype(str)).astype(known)
            few = most is None or len(known.categories) < most
            frame[name] = coded if few else coded.cat.codes
    return features, others


def _with_times_as_numbers(frame: Any) -> Any:
    import pandas as pd

    times = [name for name in frame.columns if pd.api.types.is_datetime64_any_dtype(frame[name])]
    return frame.assign(**{name: frame[name].astype("int64") / 1e9 for name in times})
