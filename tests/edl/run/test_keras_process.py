"""One job in a training process of Keras."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.models.archive import read_archive
from edl.program import UserCodeError
from edl.run.training_client import TrainingProcess
from edl.spec import Rows
from tests.edl.programs import Events, simple
from tests.edl.run.conftest import line, log, new_job


@pytest.mark.soak
def test_keras_trains_in_a_process_and_cuts_the_dump_of_an_error_in_the_graph(tmp_path: Path) -> None:
    good = simple(tmp_path / "good", "keras", rows=Rows(True, 200, 150, 50), epochs=30, batch_size=10)
    text = "\n\ndef loss(labels, predictions):\n    return keras.ops.matmul(labels, predictions)\n"
    bad = simple(tmp_path / "bad", "keras", rows=Rows(True, 200, 150, 50), append=text)
    with TrainingProcess.start("keras", 1) as process:
        broken = new_job(line(200))
        with pytest.raises(UserCodeError, match="InvalidArgumentError: Matrix size-incompatible: "):
            process.run(bad, broken.path, Events())
        assert "Traceback" in log(broken)
        job = new_job(line(200))
        outcome = process.run(good, job.path, Events())
    assert outcome.figures["rmse"] is not None
    assert outcome.figures["rmse"] < 0.2
    archive = read_archive(job.path / "archive.zip")
    assert sorted(archive.weights()) == ["0.kernel", "1.bias", "2.kernel", "3.bias"]
    assert {"keras", "tensorflow-cpu"} & archive.lineage.versions.keys()
