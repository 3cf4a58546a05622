"""Searches of a model within a time: AutoGluon, and trees of three libraries tuned by Optuna; and the short form.

    python -m benchmarks.baselines.searches SYSTEM FOLDER METRIC SECONDS

FOLDER has train.parquet and held_out.parquet, with the column `label`. The program writes predictions.npy there, as
the functions of `benchmarks.baselines.tabular` return them, and prints the seconds of the training, without the imports
before and the predictions afterwards. It needs the libraries of its system only, so that each can have an environment
of its own, and uses the processors that it may run on.

Trees are tuned on a fifth of the training rows with early stopping: at most TRIALS trials, in TUNING of the time. They
are then fitted to all rows with the best settings, if the rest of the time is enough.
"""

from __future__ import annotations

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.baselines.tabular import LABEL, code_columns

TRIALS = 50
TUNING = 0.75
MOST_ROUNDS, PATIENCE = 2_000, 50
MORE_ROWS = 1.25  # ratio of all training rows to the rows that a trial learns from
SEED = 0

Predict = Callable[[Any], Any]
Search = Callable[[Any, str, float], Predict]  # training rows, metric, seconds -> prediction of other rows


def search_autogluon(train: Any, metric: str, seconds: float) -> Predict:
    from autogluon.tabular import TabularPredictor

    measure = {"rmse": "root_mean_squared_error", "auc": "roc_auc", "accuracy": "accuracy"}[metric]
    kind = {"rmse": "regression", "auc": "binary", "accuracy": "multiclass"}[metric]
    predictor = TabularPredictor(LABEL, problem_type=kind, eval_metric=measure, path="autogluon", verbosity=0)
    predictor.fit(train, presets="medium_quality", time_limit=seconds, num_cpus=cores(), num_gpus=0)

    def predict(rows: Any) -> Any:
        if metric == "rmse":
            return predictor.predict(rows).to_numpy()
        chances = predictor.predict_proba(rows)
        return chances[sorted(chances.columns)].to_numpy()

    return predict


def search_short_form(train: Any, metric: str, seconds: float) -> Predict:
    """Search by the statement that names nothing but the label."""
    from benchmarks.quality import predict_product, train_product

    database = Path("rows.duckdb").absolute()
    train_product(
        f"SELECT * FROM train LABEL {LABEL} WITH train.time_limit = {seconds:g} INTO m", database, train
    )
    classes = () if metric == "rmse" else sorted(train[LABEL].unique())
    return lambda rows: predict_product(database, rows, classes)


class Trees(ABC):
    """Boosted trees of one library."""

    @abstractmethod
    def suggest(self, trial: Any) -> dict[str, Any]:
        """Draw settings."""

    @abstractmethod
    def fit(
        self,
        settings: Mapping[str, Any],
        rounds: int,
        rows: Any,
        label: Any,
        measured: tuple[Any, Any] | None,
        end: float,
        classes: int,
    ) -> tuple[Predict, int]:
        """Fit until `end`; return predictions and the number of rounds, with measured rows of the best round."""


class LightGBM(Trees):
    def suggest(self, trial: Any) -> dict[str, Any]:
        return {
            "num_leaves": trial.suggest_int("num_leaves", 8, 256, log=True),
            "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
            "min_child_samples": trial.suggest_int("min_child_samples", 2, 100, log=True),
            "colsample_bytree": trial.suggest_float("colsample_bytree", 0.4, 1.0),
            "subsample": trial.suggest_float("subsample", 0.5, 1.0),
            "subsample_freq": 1,
            "reg_alpha": trial.suggest_float("reg_alpha", 1e-8, 10.0, log=True),
            "reg_lambda": trial.suggest_float("reg_lambda", 1e-8, 10.0, log=True),
        }

    def fit(self, settings, rounds, rows, label, measured, end, classes):  # type: ignore[no-untyped-def]
        import lightgbm

        def end_in_time(state: Any) -> None:
            if time.monotonic() > end:
                raise lightgbm.callback.EarlyStopException(
                    state.iteration, state.evaluation_result_list or []
                )

        kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
        model = kind(
            n_estimators=rounds, n_jobs=cores(), random_state=SEED, verbose=-1, deterministic=True, **settings
        )
        calls = [end_in_time]
        if measured:
            calls.append(lightgbm.early_stopping(PATIENCE, verbose=False))
        model.fit(rows, label, eval_set=[measured] if measured else None, callbacks=calls)
        best = model.best_iteration_ or rounds
        return (model.predict_proba if classes else model.predict), best


class XGBoost(Trees):
    def suggest(self, trial: Any) -> dict[str, Any]:
        return {
            "max_depth": trial.suggest_int("max_depth", 3, 10),
            "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
            "min_child_weight": trial.suggest_float("min_child_weight", 0.1, 100.0, log=True),
            "colsample_bytree": trial.suggest_float("colsample_bytree", 0.4, 1.0),
            "subsample": trial.suggest_float("subsample", 0.5, 1.0),
            "reg_alpha": trial.suggest_float("reg_alpha", 1e-8, 10.0, log=True),
            "reg_lambda": trial.suggest_float("reg_lambda", 1e-8, 10.0, log=True),
        }

    def fit(self, settings, rounds, rows, label, measured, end, classes):  # type: ignore[no-untyped-def]
        import xgboost

        class EndInTime(xgboost.callback.TrainingCallback):  # type: ignore[misc]
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                return bool(time.monotonic() > end)

        kind = xgboost.XGBClassifier if classes else xgboost.XGBRegressor
        model = kind(
            n_estimators=rounds,
            n_jobs=cores(),
            random_state=SEED,
            enable_categorical=True,
            early_stopping_rounds=PATIENCE if measured else None,
            callbacks=[EndInTime()],
            **settings,
        )
        model.fit(rows, label, eval_set=[measured] if measured else None, verbose=False)
        # There is no best round if the time ended in the first.
        best = getattr(model, "best_iteration", 0) + 1 if measured else rounds
        return (model.predict_proba if classes else model.predict), best


class CatBoost(Trees):
    def suggest(self, trial: Any) -> dict[str, Any]:
        return {
            "depth": trial.suggest_int("depth", 3, 10),
            "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
            "l2_leaf_reg": trial.suggest_float("l2_leaf_reg", 0.1, 100.0, log=True),
            "random_strength": trial.suggest_float("random_strength", 0.1, 10.0, log=True),
            "bagging_temperature": trial.suggest_float("bagging_temperature", 0.0, 1.0),
            "one_hot_max_size": trial.suggest_int("one_hot_max_size", 2, 25, log=True),
        }

    def fit(self, settings, rounds, rows, label, measured, end, classes):  # type: ignore[no-untyped-def]
        import catboost

        class EndInTime:
            def after_iteration(self, info: Any) -> bool:
                return bool(time.monotonic() < end)

        kind = catboost.CatBoostClassifier if classes else catboost.CatBoostRegressor
        model = kind(
            iterations=rounds,
            thread_count=cores(),
            random_seed=SEED,
            verbose=False,
            allow_writing_files=False,
            cat_features=[name for name in rows.columns if rows[name].dtype == "category"],
            **settings,
        )
        as_texts = self._with_texts
        model.fit(
            as_texts(rows),
            label,
            eval_set=(as_texts(measured[0]), measured[1]) if measured else None,
            early_stopping_rounds=PATIENCE if measured else None,
            callbacks=[EndInTime()],
        )
        predict = model.predict_proba if classes else model.predict
        best = (model.get_best_iteration() + 1) if measured else rounds
        return (lambda others: predict(as_texts(others))), best

    @staticmethod
    def _with_texts(rows: Any) -> Any:
        """Return the rows with categories as texts: it takes no missing ones."""
        texts = [name for name in rows.columns if rows[name].dtype == "category"]
        return rows.assign(**{name: rows[name].astype(object).fillna("").astype(str) for name in texts})


def tune(trees: Trees, train: Any, metric: str, seconds: float) -> Predict:
    """Tune the trees, and fit them to all training rows."""
    import optuna

    began = time.monotonic()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rows, _ = code_columns(train, train, most=None)
    label, classes = train[LABEL], 0
    if metric != "rmse":
        names = sorted(label.unique())
        classes = len(names)
        label = label.map({name: number for number, name in enumerate(names)})
    apart = _split(label, classes)
    fitted = rows[~apart], label[~apart]
    measured = rows[apart], label[apart]
    best: dict[str, Any] = {"loss": np.inf}

    def objective(trial: Any) -> float:
        settings, trial_began = trees.suggest(trial), time.monotonic()
        predict, rounds = trees.fit(
            settings, MOST_ROUNDS, *fitted, measured, began + TUNING * seconds, classes
        )
        loss = _loss(metric, measured[1].to_numpy(), predict(measured[0]))
        if loss < best["loss"]:
            taken = time.monotonic() - trial_began
            best.update(loss=loss, settings=settings, rounds=rounds, predict=predict, seconds=taken)
        return loss

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=SEED))
    study.optimize(objective, n_trials=TRIALS, timeout=TUNING * seconds)
    predict = best["predict"]
    if time.monotonic() - began + best["seconds"] * MORE_ROWS < seconds:
        predict, _ = trees.fit(best["settings"], best["rounds"], rows, label, None, began + seconds, classes)
    return lambda others: predict(code_columns(train, others, most=None)[1])


def _split(label: Any, classes: int) -> Any:
    """Return a mask of a fifth of the rows, by the classes if each has two rows."""
    from sklearn.model_selection import train_test_split

    even = label if classes and label.value_counts().min() >= 2 else None
    _, apart = train_test_split(np.arange(len(label)), test_size=0.2, random_state=SEED, stratify=even)
    return np.isin(np.arange(len(label)), apart)


def _loss(metric: str, truth: Any, predicted: Any) -> float:
    from sklearn.metrics import roc_auc_score

    if metric == "rmse":
        return float(np.sqrt(np.mean((predicted - truth) ** 2)))
    if metric == "auc":
        return 1 - float(roc_auc_score(truth, predicted[:, 1]))
    return float(np.mean(predicted.argmax(axis=1) != truth))


def cores() -> int:
    return len(os.sched_getaffinity(0))


def _tune_by(kind: type[Trees]) -> Search:
    return lambda train, metric, seconds: tune(kind(), train, metric, seconds)


SYSTEMS: Mapping[str, Search] = {
    "short form": search_short_form,
    "AutoGluon": search_autogluon,
    "LightGBM": _tune_by(LightGBM),
    "XGBoost": _tune_by(XGBoost),
    "CatBoost": _tune_by(CatBoost),
}
IMPORTS = {  # before the clock starts
    "short form": ("benchmarks.quality", "duckdb", "pandas"),
    "AutoGluon": ("autogluon.tabular",),
    "LightGBM": ("lightgbm", "optuna", "sklearn.model_selection"),
    "XGBoost": ("xgboost", "optuna", "sklearn.model_selection"),
    "CatBoost": ("catboost", "optuna", "sklearn.model_selection"),
}


def main(system: str, folder: str, metric: str, seconds: str) -> None:
    from importlib import import_module

    import pandas as pd

    for name in IMPORTS[system]:
        import_module(name)
    os.chdir(folder)
    train, held_out = (pd.read_parquet(f"{name}.parquet") for name in ("train", "held_out"))
    began = time.perf_counter()
    predict = SYSTEMS[system](train, metric, float(seconds))
    taken = time.perf_counter() - began
    np.save("predictions.npy", predict(held_out))
    print(json.dumps({"seconds": taken}))


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    main(*sys.argv[1:])
