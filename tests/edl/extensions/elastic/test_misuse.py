"""Scripts that use `edl.elastic` wrongly in several workers: the job ends at once and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl import exit_codes
from edl.cli.main import main

WRONG = {
    "other rows": (
        (
            "import os, edl\nrows = edl.elastic.dataset(100_000 + int(os.environ['RANK']), batch_size=1)\n"
            "edl.elastic.run(lambda: [[*rows] for _ in rows.epochs()])()\n"
        ),
        "same rows",
    ),
    "no function": (
        "import edl\nfor epoch in edl.elastic.sampler(8, batch_size=2).epochs():\n    pass\n",
        "the decorator @edl.elastic.run",
    ),
    "no loop": ("import edl\nedl.elastic.sampler(8, batch_size=2)\n", "had trained all rows"),
    "two functions": (
        (
            "import edl\n"
            "rows = edl.elastic.dataset(8, batch_size=2)\n"
            "loop = edl.elastic.run(lambda: [[*rows] for _ in rows.epochs()])\n"
            "loop()\nloop()\n"
        ),
        "ended with the first function",
    ),
    "own time": (
        (
            "import edl, os, torch\n"
            "s = edl.elastic.dataset(8, batch_size=2, epochs=None)\n"
            "model = torch.nn.Linear(1, 1)\n"
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            "edl.elastic.checkpoint(model, optimizer)\n"
            "@edl.elastic.run\n"
            "def loop():\n"
            "    for _ in s.epochs():\n"
            "        for rows in s:\n"
            "            model(torch.ones(1, 1)).sum().backward()\n"
            "            optimizer.step()\n"
            "            if edl.elastic.step() > 5 + edl.elastic.rank():\n"
            "                return\n"
            "loop()\n"
        ),
        "another one is at another point of the script",
    ),
    "early end": (
        "import edl\ns = edl.elastic.sampler(8, batch_size=2)\nedl.elastic.run(lambda: next(s.epochs()))()\n",
        "returned before all rows were trained",
    ),
}


@pytest.mark.soak
@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_misuse_ends_the_job(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong.py").write_text(text, encoding="utf-8")
    assert main(["run", "--workers", "2", str(tmp_path / "wrong.py")]) == exit_codes.FAILED
    out, error = capsys.readouterr()
    assert said in error + out
    assert "in a row ended" not in error
