"""PREDICT and EVALUATE as distributed tasks: each row once, whoever dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.data.results import ResultFolder
from edl.jobs.events import Tally
from edl.spec import Output
from edl.tasks.ranges import STREAMED_ROWS
from tests.edl.end_to_end.distributed import Job, kill, table

FRAMEWORK = "lightgbm"  # its processes start fastest
ROWS = 5 * STREAMED_ROWS + 1234


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        job = Job(table(2000), epochs=2, framework=FRAMEWORK)
        job.run_here()
        yield job.archive


def relaunched(job: Job) -> bool:
    """Whether anybody was."""
    return max(event.relaunches for event in job.events if isinstance(event, Tally)) > 0


PREDICT = {"output": Output(column="y", keep=("x",))}


@pytest.mark.parametrize(
    "orders",
    [
        pytest.param((), marks=pytest.mark.soak),
        pytest.param(("any/0 in a task 3",), marks=pytest.mark.soak),
        ("any/0 after stage 1",),
        pytest.param(("any/0 before report 1",), marks=pytest.mark.soak),
        pytest.param(("any/0 after report 1", "any/1 while idle 1"), marks=pytest.mark.soak),
        pytest.param(("master/1 before durable 3",), marks=pytest.mark.soak),
    ],
    ids=" and ".join,
)
def test_a12_prediction_gives_each_row_once(model: Path, orders: tuple[str, ...]) -> None:
    data, with_model = table(ROWS, seed=1), {"framework": FRAMEWORK, "weights": model, "spec": PREDICT}
    job = Job(data, kind="predict", how=kill(*orders), workers=2, **with_model)
    outcome = job.run()
    found = ResultFolder(job.folder.results).read(outcome.tasks).read_all()
    assert found.column("x").equals(data.column("x"))
    alone = Job(data, kind="predict", **with_model)
    expected = ResultFolder(alone.folder.results).read(alone.run_here().tasks).read_all()
    assert found.equals(expected)
    assert relaunched(job) == bool(orders), job.logs()


@pytest.mark.soak
@pytest.mark.parametrize(
    "orders", [(), ("any/0 after metrics 1",), ("master/1 after durable 2",)], ids=" and ".join
)
def test_a11_evaluation_gives_the_figures_of_one_process(model: Path, orders: tuple[str, ...]) -> None:
    data = table(ROWS, seed=1)
    with_model = {"framework": FRAMEWORK, "weights": model}
    expected = Job(data, kind="evaluate", **with_model).run_here()
    job = Job(data, kind="evaluate", workers=2, how=kill(*orders), **with_model)
    found = job.run()
    assert relaunched(job) == bool(orders), job.logs()
    assert found.rows == expected.rows
    assert found.figures.keys() == expected.figures.keys()
    for name, value in expected.figures.items():
        assert found.figures[name] == pytest.approx(value, rel=1e-9)
    assert ResultFolder(job.folder.results).read(1).read_all().num_rows == 1
