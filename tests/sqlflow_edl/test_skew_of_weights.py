"""Weights that ML.WEIGHTS tells of a linear model give the predictions of the statement PREDICT."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from edl.spec import Standardize
from sqlflow_edl.extensions.bigquery_ml.model_weights import weights
from sqlflow_edl.session.session import Session
from tests.trained import Models


def rows(session: Session, text: str) -> list[dict]:
    *_, last = session.run(text)
    return last.to_arrow().to_pylist()


@pytest.mark.soak
def test_the_weights_of_a_linear_model_give_its_predictions(trained: Models) -> None:
    """Model of three classes, with a logarithm, dates that are NULL, categories, and numbers scaled in two ways."""
    archive = trained["linear_classes"].archive
    values = {"log(price)": math.log1p(20), "small": 5.0, "amount": 12.0, "is_new": 1.0}
    categories = {"city": "Kyiv", "shop": "42"}
    query = "SELECT 20::DECIMAL(9, 2) AS price, 5 AS small, 12.0::DOUBLE AS amount, TRUE AS is_new, 'Kyiv' AS city, "
    query += "42::BIGINT AS shop, NULL::DATE AS day, NULL::TIMESTAMP AS seen"
    [predicted] = rows(trained.session, f"SELECT * FROM PREDICT(linear_classes, ({query}))")
    shares = list(predicted.values())[-3:]

    found = rows(trained.session, "SELECT * FROM ML.WEIGHTS(MODEL linear_classes)")
    assert list(found[0]) == ["processed_input", "weight", "category_weights", "class_label"]
    logits = dict.fromkeys(archive.spec.label.classes, 0.0)  # type: ignore[union-attr]
    for row in found:
        name = str(row["processed_input"])
        if row["category_weights"] is None:
            number = values.get(name, 0.0 if name.endswith("IS NULL") else 1.0)
            logits[row["class_label"]] += row["weight"] * number
        elif not name.startswith("piecewise"):  # which are 0 for NULL
            of = {each["category"]: each["weight"] for each in row["category_weights"]}
            logits[row["class_label"]] += of[categories.get(name)]
    odds = np.exp(list(logits.values()))
    np.testing.assert_allclose(odds / odds.sum(), shares, rtol=1e-5)


def test_standardized_weights_are_for_numbers_in_units_of_their_deviation(trained: Models) -> None:
    summaries = trained["linear_classes"].archive.fitting.columns  # type: ignore[union-attr]
    own, standardized = (
        {
            row["processed_input"]: row["weight"]
            for row in rows(trained.session, f"SELECT * FROM ML.WEIGHTS(MODEL linear_classes{settings})")
            if row["class_label"] == "ü"
        }
        for settings in ("", ", STRUCT(TRUE AS standardize)")
    )
    shift = 0.0
    for name in ("amount", "small", "is_new"):
        assert standardized[name] == pytest.approx(own[name] * summaries[name].std)
        shift += own[name] * summaries[name].mean
    assert standardized["__INTERCEPT__"] == pytest.approx(own["__INTERCEPT__"] + shift)
    assert standardized["log(price)"] is None, "the deviation of the logarithm is not known"


def test_a_number_that_is_clipped_smoothly_has_no_weight_in_units_of_its_deviation(trained: Models) -> None:
    archive = trained["linear_classes"].archive
    inputs = {
        name: tuple(
            msgspec.structs.replace(each, limit=3.0) if isinstance(each, Standardize) else each
            for each in features
        )
        for name, features in archive.spec.inputs.items()
    }
    clipped = replace(archive, spec=msgspec.structs.replace(archive.spec, inputs=inputs))
    found = {
        row["processed_input"]: row["weight"]
        for row in weights(clipped, standardize=True).read_all().to_pylist()
    }
    assert "amount" not in found
    assert found["standardize(amount)"] is None
    assert found["small"] is not None
