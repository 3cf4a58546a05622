"""Settings of jobs on Kubernetes among the attributes of a statement, wherever it runs."""

from __future__ import annotations

import pytest

from edl.errors import SemanticError, raise_all
from sqlflow_edl.analysis.inference import USES
from sqlflow_edl.analysis.train_settings import check_settings
from sqlflow_edl.syntax import parse
from sqlflow_edl.syntax.ast import Statement

STATEMENTS = {
    "train": "SELECT * FROM t TO TRAIN DNNRegressor WITH {} LABEL y INTO m",
    "predict": "SELECT * FROM t TO PREDICT p.y WITH {} USING m",
    "evaluate": "SELECT * FROM t TO EVALUATE m WITH {} LABEL y INTO e",
}


def check(kind: str, attributes: str) -> None:
    statement: Statement = parse(STATEMENTS[kind].format(attributes))[0]
    if kind == "train":
        raise_all(list(check_settings(statement).errors))
    else:
        USES[kind][0](statement)


@pytest.mark.parametrize("kind", STATEMENTS)
def test_every_statement_that_starts_a_job_takes_them(kind: str) -> None:
    check(
        kind, "kubernetes.image = 'mine:1', kubernetes.labels = {'a/b': 1}, kubernetes.tolerations = [spot]"
    )


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_wrong_one_is_answered_with_the_nearest(kind: str) -> None:
    with pytest.raises(SemanticError, match=r"unknown attribute kubernetes\.worker_gpus") as refused:
        check(kind, "kubernetes.worker_gpus = 1")
    assert refused.value.hint == "did you mean kubernetes.worker_gpu?"


def test_one_name_stands_for_all_of_them_in_a_list() -> None:
    with pytest.raises(SemanticError) as refused:
        check("predict", "zzz = 1")
    assert refused.value.hint == (
        "known: kubernetes.…, predict.batch_size, predict.device, predict.extra_outputs, predict.interval, "
        "predict.num_workers, predict.probabilities, predict.report, predict.task_timeout, predict.threshold; "
        "sqlflow help attributes lists all attributes"
    )
