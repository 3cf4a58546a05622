"""Clusters from TRAIN without a label to PREDICT and EVALUATE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, davies_bouldin_score

from edl.errors import SQLFlowError
from sqlflow_edl.session.session import Session
from tests.databases import fill

rng = np.random.default_rng(5)
TRUTH = rng.integers(0, 3, 400)
CENTRES = np.array([[0.0, 0.0], [8.0, 1.0], [3.0, 9.0]])
PLACES = CENTRES[TRUTH] + rng.normal(size=(400, 2))
POINTS = pa.table({"x": PLACES[:, 0], "y": PLACES[:, 1], "truth": TRUTH})
TRAIN = "SELECT x, y FROM points TO TRAIN KMeans WITH model.n_clusters = 3, train.epoch = 3"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("clusters")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(f"duckdb:///{folder}/clusters.duckdb", create=True) as opened:
            fill(opened, "points", POINTS)
            list(opened.run(f"{TRAIN} INTO places"))
            yield opened


def last(session: Session, text: str) -> pa.Table:
    return list(session.run(text))[-1].to_arrow()


def test_rows_of_one_group_get_one_cluster_and_the_distance_to_its_centre(session: Session) -> None:
    list(session.run("SELECT * FROM points TO PREDICT found.part USING places"))

    found = last(session, "SELECT * FROM found")
    assert found.column_names == ["x", "y", "truth", "part", "part_distance"]
    pairs = set(zip(found["truth"].to_pylist(), found["part"].to_pylist(), strict=True))
    assert len(pairs) == 3
    places = np.column_stack([found["x"], found["y"]])
    part, distance = found["part"].to_numpy(), found["part_distance"].to_numpy()
    scaled = places / places.std(axis=0)
    for each in range(3):
        rows = scaled[part == each]
        wanted = np.linalg.norm(rows - rows.mean(axis=0), axis=1)
        np.testing.assert_allclose(distance[part == each], wanted, atol=0.15)


def test_the_centres_are_told_in_the_units_of_the_columns(session: Session) -> None:
    found = last(session, "SELECT * FROM ML.CENTROIDS(MODEL places)").to_pylist()
    assert [(each["centroid_id"], each["feature"]) for each in found] == [
        (cluster, name) for cluster in range(1, 4) for name in ("x", "y")
    ]
    centres = np.reshape([each["numerical_value"] for each in found], (3, 2))
    means = np.array([PLACES[each == TRUTH].mean(axis=0) for each in range(3)])
    nearest = np.linalg.norm(centres[:, None] - means, axis=2).argmin(axis=1)
    assert sorted(nearest) == [0, 1, 2]
    np.testing.assert_allclose(centres, means[nearest], atol=0.6)
    scaled = last(
        session, "SELECT numerical_value FROM ML.CENTROIDS(MODEL places, STRUCT(TRUE AS standardize))"
    )
    assert np.abs(scaled["numerical_value"].to_numpy()).max() < 2


def test_functions_of_bigquery_ml_number_clusters_from_one_and_list_the_nearest_centres(
    session: Session,
) -> None:
    query = "SELECT * FROM points WHERE rowid % 40 = 0 UNION ALL SELECT NULL, NULL, NULL"
    found = last(session, f"SELECT * FROM ML.PREDICT(MODEL places, ({query})) ORDER BY x, y")
    ours = last(session, f"SELECT * FROM PREDICT(places, ({query})) ORDER BY x, y")
    assert found.column_names == ["x", "y", "truth", "CENTROID_ID", "NEAREST_CENTROIDS_DISTANCE"]
    for row, own in zip(found.to_pylist(), ours.to_pylist(), strict=True):
        centres = row["NEAREST_CENTROIDS_DISTANCE"]
        assert row["CENTROID_ID"] == own["cluster"] + 1 == centres[0]["CENTROID_ID"]
        assert centres[0]["DISTANCE"] == pytest.approx(own["cluster_distance"])
        assert sorted(each["CENTROID_ID"] for each in centres) == [1, 2, 3]
        assert [each["DISTANCE"] for each in centres] == sorted(each["DISTANCE"] for each in centres)


def test_the_davies_bouldin_index_equals_scikit_learn(session: Session) -> None:
    [row] = last(session, "SELECT * FROM ML.EVALUATE(MODEL places)").to_pylist()
    assert list(row) == ["davies_bouldin_index", "mean_squared_distance"]
    [ours] = last(session, "SELECT * FROM points TO EVALUATE places").to_pylist()
    assert row["mean_squared_distance"] == pytest.approx(ours["inertia"])
    parts = last(session, "SELECT cluster FROM PREDICT(places, points)")["cluster"].to_numpy()
    wanted = davies_bouldin_score(PLACES / PLACES.std(axis=0), parts)
    assert row["davies_bouldin_index"] == pytest.approx(
        wanted, rel=0.1
    )  # of the means of the rows, not the centres


@pytest.mark.parametrize("start", [(5, 6, 7), (0, 1, 2)])
def test_given_centres_are_where_lloyds_algorithm_starts(session: Session, start: tuple[int, ...]) -> None:
    fill(session, "numbered", POINTS.append_column("row", pa.array(range(len(POINTS)))))
    list(
        session.run(
            f"SELECT x, y, row IN {start} AS first FROM numbered TO TRAIN KMeans "
            "WITH model.n_clusters = 3, model.init_column = first, validation.fraction = 0 INTO given"
        )
    )
    found = last(session, "SELECT cluster FROM PREDICT(given, (SELECT * FROM numbered))")[
        "cluster"
    ].to_numpy()
    scaled = (PLACES - PLACES.mean(axis=0)) / PLACES.std(axis=0)
    expected = KMeans(3, init=scaled[list(start)], n_init=1).fit(scaled)
    assert adjusted_rand_score(expected.labels_, found) > 0.98
    centroids = last(session, "SELECT DISTINCT feature FROM ML.CENTROIDS(MODEL given)")
    assert sorted(centroids["feature"].to_pylist()) == ["x", "y"]


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ("row < 4", "4 rows are marked as first centres, and there are 3 clusters"),
        ("row = 0", "1 row is marked"),
        ("NULL::BOOLEAN", "0 rows are marked"),
        ("'yes'", "first is a text, and what marks rows is a boolean, or 0 and 1"),
    ],
)
def test_as_many_rows_are_marked_as_there_are_clusters(session: Session, marks: str, message: str) -> None:
    fill(session, "numbered", POINTS.append_column("row", pa.array(range(len(POINTS)))))
    with pytest.raises(SQLFlowError, match=message) as raised:
        list(
            session.run(
                f"SELECT x, y, {marks} AS first FROM numbered "
                "TO TRAIN KMeans WITH model.n_clusters = 3, model.init_column = first INTO wrong"
            )
        )
    assert raised.value.span is not None


@pytest.mark.soak
def test_a_centre_has_the_share_of_each_category(session: Session) -> None:
    query = "SELECT CASE WHEN truth = 0 THEN 'near' ELSE 'far' END AS side, x FROM points"
    list(session.run(f"{query} TO TRAIN KMeans WITH model.n_clusters = 2, train.epoch = 1 INTO sides"))
    found = last(session, "SELECT * FROM ML.CENTROIDS(MODEL sides) WHERE feature = 'side'").to_pylist()
    assert [[each["category"] for each in row["categorical_value"]] for row in found] == [
        ["far", "near", None]
    ] * 2
    shares = [[each["value"] for each in row["categorical_value"]] for row in found]
    np.testing.assert_allclose(np.sum(shares, axis=1), 1, atol=0.1)


def test_evaluate_gives_inertia_and_silhouette(session: Session) -> None:
    [row] = last(session, "SELECT * FROM points TO EVALUATE places").to_pylist()

    assert row["inertia"] == pytest.approx(row["loss"], rel=1e-5)
    assert 0 < row["inertia"] < 0.3
    assert row["silhouette"] > 0.7


@pytest.mark.soak
def test_a_statement_of_sqlflow_finds_the_clusters_of_deep_codes(session: Session) -> None:
    settings = "model.n_clusters = 3, model.pretrain_dims = [8, 2], model.pretrain_epochs = 20, model.train_lr = 0.01"
    more = "model.pretrain_lr = 1, model.train_max_iters = 6, train.batch_size = 100, model.tol = 0.0001"
    query = "SELECT x, y FROM points TO TRAIN sqlflow_models.DeepEmbeddingClusterModel"
    [trained] = session.run(f"{query} WITH {settings}, {more} COLUMN x, y INTO deep_places")
    assert any("model.tol has no effect" in note for note in trained.notes)
    list(session.run("SELECT * FROM points TO PREDICT deep_found.part USING deep_places"))

    found = last(session, "SELECT * FROM deep_found")
    pairs = Counter(zip(found["truth"].to_pylist(), found["part"].to_pylist(), strict=True))
    assert sum(rows for _, rows in pairs.most_common(3)) >= 390
    assert found.column_names[-2:] == ["part", "part_distance"]
    [row] = last(session, "SELECT * FROM points TO EVALUATE deep_places").to_pylist()
    assert row["silhouette"] > 0.7


@pytest.mark.soak
def test_a_training_ends_when_its_loss_no_longer_falls(session: Session) -> None:
    [trained] = session.run(f"{TRAIN}, train.tolerance = 0.1 INTO early")

    assert "its loss fell by less than 10 %" in trained.ending


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{TRAIN}, loss = kld INTO other", "KMeans has no loss cluster_divergence"),
        ("SELECT * FROM points TO EXPLAIN places", "finds clusters, and EXPLAIN"),
        ("SELECT * FROM points TO EVALUATE places LABEL truth", "is trained without a label"),
        ("SELECT * FROM points TO PREDICT WITH predict.interval = 0.9 USING places", "finds clusters"),
        (f"{TRAIN}, validation.metrics = accuracy INTO other", "for a cluster"),
        ("SELECT x FROM points LIMIT 2 TO TRAIN KMeans WITH n_clusters = 3 INTO other", "2 training rows"),
    ],
)
def test_what_clusters_cannot_do_is_an_error(session: Session, text: str, message: str) -> None:
    with pytest.raises(SQLFlowError) as caught:
        list(session.run(text))

    assert message in f"{caught.value} {caught.value.hint}"
