"""Analysis of PREDICT, EVALUATE and EXPLAIN: from the statement and the model's JobSpec to a JobSpec.

Nothing is derived again: features, label and parameters stay as in training. The query is only checked for the
columns that the model reads; names match without case, and the query may have more columns in another order.
"""

from __future__ import annotations

from sqlflow_edl.analysis.inference.evaluation import check_evaluation, evaluation
from sqlflow_edl.analysis.inference.explanation import check_explanation, explanation
from sqlflow_edl.analysis.inference.prediction import check_prediction, prediction

# Kind of statement -> the check that needs no database, and the function that makes its JobSpec.
USES = {
    "predict": (check_prediction, prediction),
    "evaluate": (check_evaluation, evaluation),
    "explain": (check_explanation, explanation),
}
