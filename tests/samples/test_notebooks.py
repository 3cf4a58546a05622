"""The notebook of samples, run by a real kernel; and a kernel that is interrupted while a model is trained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel
from nbclient import NotebookClient

from edl.data import connect
from sqlflow_edl.samples import tables

NOTEBOOK = Path(__file__).parents[2] / "samples" / "iris.ipynb"
DEADLINE = 120  # seconds, of what takes few
SLOW_TRAINING = (
    "SELECT i AS a, 2.0 * i AS b FROM range(4000) AS t(i) TO TRAIN DNNRegressor "
    "WITH epochs = 1000000, model.framework = torch LABEL b INTO never"
)

pytestmark = pytest.mark.filterwarnings("default")  # of Jupyter's own packages


@contextmanager
def kernel(folder: Path) -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    manager, client = start_new_kernel(cwd=str(folder))
    try:
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel()


def outputs(notebook: Any) -> list[list[dict[str, str]]]:
    """By code cell, what it shows, by MIME type; a stream's text is plain."""
    return [
        [output.get("data") or {"text/plain": output["text"]} for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.soak
def test_the_notebook_trains_measures_and_predicts(tmp_path: Path) -> None:
    with connect(f"duckdb:///{tmp_path}/demo.duckdb", create=True) as source:
        source.stage("iris", "samples", 0, 0, tables.TABLES["iris"]("iris").to_batches())
        source.commit("iris", "samples", 1)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are left out of the sample"
    NotebookClient(notebook, timeout=DEADLINE, resources={"metadata": {"path": str(tmp_path)}}).execute()

    _, [shown], _, training, measuring, [figures], predicting, _ = outputs(notebook)
    assert "10 of 150 rows" in shown["text/html"]
    progress, trained = training
    assert progress["text/plain"].startswith("TRAIN DNNClassifier INTO sqlflow_models.iris_notebook: done (")
    assert 'src="data:image/svg+xml;base64,' in trained["text/html"]
    assert "TO PREDICT table.column USING sqlflow_models.iris_notebook" in trained["text/plain"]
    assert [each["text/plain"].split(":")[0] for each in measuring] == [
        "EVALUATE sqlflow_models.iris_notebook"
    ]
    assert "accuracy" in figures["text/html"]
    assert predicting[-2]["text/plain"].startswith("wrote 50 rows to iris_notebook_guesses")
    assert "mean_probability" in predicting[-1]["text/html"]


@pytest.mark.soak
def test_an_interrupted_kernel_cancels_the_training_and_goes_on(tmp_path: Path) -> None:
    ended: list[str] = []

    with kernel(tmp_path) as (manager, client):

        def run(code: str) -> dict[str, Any]:
            reply = client.execute_interactive(code, output_hook=watch, timeout=DEADLINE)
            found: dict[str, Any] = reply["content"]
            return found

        def watch(message: dict[str, Any]) -> None:
            text = message["content"].get("data", {}).get("text/plain", "")
            if "rows/s" in text and not ended:
                ended.append("interrupted")
                manager.interrupt_kernel()
            elif "cancelled" in text:
                ended.append(text)
            elif message["msg_type"] == "error":
                ended.extend(message["content"]["traceback"])

        assert run("%load_ext sqlflow_edl.notebook\n%sqlflow_connect duckdb:")["status"] == "ok"
        assert run(f"%sqlflow {SLOW_TRAINING}")["ename"] == "Interrupted"
        assert ended[1].splitlines()[-1].startswith("TRAIN DNNRegressor INTO never: cancelled (")
        assert ended[2:] == ["cancelled: TRAIN DNNRegressor INTO never"]
        assert run("models = %sqlflow SHOW MODELS\nassert len(models) == 0")["status"] == "ok"
