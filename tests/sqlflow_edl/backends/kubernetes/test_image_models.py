"""Models of an image in pods of it, see `place`: a pod lists them before the training is compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sqlflow_edl.backends.kubernetes.place import Place
from tests.sqlflow_edl.backends.kubernetes.whole_jobs import ROWS, place, points, refused, run

__all__ = ["place", "points"]

TRAIN = (
    "SELECT a, b, y FROM points TO TRAIN {image}/{model} WITH loss = mse, epochs = 2 LABEL y INTO of_image"
)


@pytest.mark.soak
def test_pods_train_and_use_a_model_of_their_image(
    points: Place, capsys: pytest.CaptureFixture[str], repository: Path
) -> None:
    """The image of the double is this machine, but a pod does not see its /tmp."""
    if points.double is None:
        pytest.skip("the image of a real cluster has no fixtures")
    where = f"--set=env=SQLFLOW_MODEL_PATH={repository / 'tests' / 'fixtures' / 'models'}"
    train = TRAIN.format(image=points.image, model="{}")
    assert "defines Absent" in refused(points, capsys, train.format("Absent"), where)
    run(points, capsys, train.format("torch_nets.Model"), where)
    run(points, capsys, "SELECT n, a, b FROM points TO PREDICT said.y USING of_image", where)
    assert points.query("SELECT COUNT(y) AS n FROM said") == [{"n": ROWS}]
    jobs = points.objects("/apis/batch/v1", "jobs")
    assert not [job for job in jobs if job["metadata"]["name"].startswith("sqlflow-edl-image-")]


@pytest.mark.soak
def test_an_image_that_does_not_start_is_an_error_with_the_reason(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    if points.double is None:
        pytest.skip("a pull of a real cluster may take minutes to fail")
    said = refused(points, capsys, TRAIN.format(image="missing/nets:1", model="Net"))
    assert "the image missing/nets:1 does not say which models it has" in said
    assert "pull" in said
