"""Names that programs, samples and scripts of users import: they stay where they are when modules move."""

from __future__ import annotations

from importlib import import_module

import pytest

PUBLIC = {
    "sqlflow_edl": "connect load_transform parse register",
    "edl": "Callback Control Ragged Trained elastic train",
    "edl.data": "ConflictError Pinned Reader Source connect open_reader redacted",
    "edl.data.recordio": "RecordWriter read_records",
    "edl.elastic": "checkpoint dataset rank run sampler world_size",
    "edl.features": "DENSE ClassTarget Entry Features Inputs Mode RegressionTarget RowWeights Target bucket category_id"
    " class_label concat cross day embedding hash_bucket hour label list_of log log_count minute month ngrams"
    " normalize numeric one_hot periodic piecewise_linear ranking standardize target target_mean vector vocabulary"
    " weekday weights year",
    "edl.keras": "Embedding FeatureScales NTPDense by_class checked_model concatenated feature_inputs member_inputs"
    " member_outputs weighted_sum",
    "edl.metrics": "AUC F1 MAE MAP MAPE MSE NDCG R2 RMSE Accuracy LogLoss Metric Precision Recall by_name",
    "edl.runnable": "rows write",
    "edl.schedules": "constant coslog cosine exponential linear step",
    "edl.torch": "Concatenated Embedding FeatureScales MemberOutputs Members NTPLinear WeightedSum by_class"
    " checked_model clipped",
}


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_where_users_import_them(module: str) -> None:
    loaded = import_module(module)
    assert not [name for name in PUBLIC[module].split() if not hasattr(loaded, name)]
