"""Extra outputs of models beside the predicted column, from the statement to the table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from edl.arrays import Array
from edl.errors import SQLFlowError
from tests.databases import fill
from tests.workshops import Workshop

ROWS = 60


@pytest.fixture(scope="session")
def workshop(workshop: Workshop) -> Workshop:
    """With rows of which one lacks its number, a network of members, trees, and clusters."""
    draw = np.random.default_rng(3)
    x = draw.normal(size=ROWS).tolist()
    kind = np.where(np.array(x) > 0.3, "c", np.where(np.array(x) < -0.3, "a", "b"))
    table = pa.table({"id": range(ROWS), "x": [None, *x[1:]], "cost": 3 * np.array(x), "kind": kind})
    fill(workshop.session, "sized", table)
    workshop.run(
        f"SELECT x, kind FROM sized TO TRAIN DNNClassifier WITH model.framework = {workshop.framework}, epochs = 1, "
        "model.hidden_units = [4], model.members = 2 LABEL kind INTO netted;"
        "SELECT x, cost FROM sized TO TRAIN BoostedTreesRegressor WITH num_boost_round = 3 LABEL cost INTO grown;"
        "SELECT x FROM sized WHERE x IS NOT NULL TO TRAIN KMeans WITH model.n_clusters = 3 INTO grouped"
    )
    return workshop


def predicted(workshop: Workshop, model: str, outputs: str, more: str = "") -> pa.Table:
    return workshop.rows(
        f"SELECT * FROM sized TO PREDICT extra.guess USING {model} WITH predict.extra_outputs = {outputs}{more}; "
        "SELECT * FROM extra ORDER BY id"
    )


def numbers(found: pa.Table, name: str) -> Array:
    """The numbers of a column of texts, (rows, width)."""
    return np.array([[float(each) for each in text.split(",")] for text in found[name].to_pylist()])


def test_logits_and_members_belong_to_the_probabilities_and_the_embedding_is_the_last_hidden_layer(
    workshop: Workshop,
) -> None:
    found = predicted(workshop, "netted", "'logits,members,embedding'")
    probabilities = np.stack([found[f"guess_prob_{each}"].to_numpy() for each in "abc"], axis=1)
    assert np.exp(numbers(found, "guess_logits")) == pytest.approx(probabilities)
    members = numbers(found, "guess_members").reshape(ROWS, 2, 3)
    assert members.mean(axis=1) == pytest.approx(probabilities)
    assert not np.allclose(members[:, 0], members[:, 1])
    embedding = numbers(found, "guess_embedding")
    assert embedding.shape == (ROWS, 2 * 4)
    assert (embedding >= 0).all()  # behind a ReLU
    assert embedding.any()


@pytest.mark.soak
def test_rows_of_one_leaf_in_each_tree_get_one_prediction(workshop: Workshop) -> None:
    found = predicted(workshop, "grown", "[pred_leaf]")
    assert numbers(found, "guess_leaves").shape == (ROWS, 3)
    by_leaves = dict(zip(found["guess_leaves"].to_pylist(), found["guess"].to_pylist(), strict=True))
    assert [by_leaves[each] for each in found["guess_leaves"].to_pylist()] == found["guess"].to_pylist()
    assert len(by_leaves) > 2


def test_the_nearest_centre_belongs_to_the_cluster(workshop: Workshop) -> None:
    found = workshop.rows(
        "SELECT * FROM sized WHERE x IS NOT NULL TO PREDICT USING grouped WITH predict.extra_outputs = [distances]"
    )
    distances = numbers(found, "cluster_distances")
    assert distances.argmin(axis=1).tolist() == found["cluster"].to_pylist()
    assert distances.min(axis=1) == pytest.approx(found["cluster_distance"].to_numpy())


@pytest.mark.soak
def test_probabilities_are_the_columns_of_many_classes(workshop: Workshop) -> None:
    found = predicted(workshop, "netted", "[probabilities]", ", predict.probabilities = false")
    assert found.column_names[-4:] == ["guess_confidence", "guess_prob_a", "guess_prob_b", "guess_prob_c"]


def test_a_call_of_predict_takes_them_as_a_text(workshop: Workshop) -> None:
    found = workshop.rows(
        "SELECT count(cost_leaves) AS n FROM PREDICT(grown, sized, extra_outputs = 'leaves') p"
    )
    assert found["n"].to_pylist() == [ROWS]


def test_a_query_without_rows_has_the_columns(workshop: Workshop) -> None:
    found = workshop.rows(
        "SELECT * FROM sized WHERE id < 0 TO PREDICT USING netted WITH predict.extra_outputs = [embedding]"
    )
    assert found.schema.field("kind_embedding").type == pa.string()


@pytest.mark.soak
def test_workers_give_the_extra_outputs_of_one_process(workshop: Workshop) -> None:
    alone = predicted(workshop, "netted", "[embedding, members]")
    shared = predicted(workshop, "netted", "[embedding, members]", ", predict.num_workers = 2")
    assert shared["guess_members"].to_pylist() == alone["guess_members"].to_pylist()
    assert shared["guess_embedding"].to_pylist() == alone["guess_embedding"].to_pylist()


@pytest.mark.parametrize(
    ("model", "output", "known"),
    [
        ("netted", "leaves", "it has probabilities, logits, embedding, members"),
        ("grown", "embedding", "it has leaves"),
        ("grouped", "embedding", "it has distances"),
    ],
)
def test_an_unknown_output_is_refused_with_the_models_outputs(
    workshop: Workshop, model: str, output: str, known: str
) -> None:
    with pytest.raises(SQLFlowError, match=f"{model}@1 has no extra output {output}") as caught:
        predicted(workshop, model, f"[{output}]")
    assert caught.value.hint == known
    assert caught.value.span is not None
