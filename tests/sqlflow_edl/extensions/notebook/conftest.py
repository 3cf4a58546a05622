"""A notebook without a kernel: a shell of IPython in this process, with our magics loaded, over DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config


@dataclass
class Cell:
    """What became of a cell: its value, the outputs that it displayed, and what it printed."""

    value: Any
    error: BaseException | None
    outputs: list[dict[str, Any]] = field(default_factory=list)  # data, transient, update
    printed: str = ""

    def htmls(self) -> list[str]:
        return [output["data"]["text/html"] for output in self.outputs]

    def texts(self) -> list[str]:
        return [output["data"]["text/plain"] for output in self.outputs]


class Notebook:
    """Runs cells, and gives what each did."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell

    def __call__(self, text: str) -> Cell:
        with capture_output() as captured:
            done = self.shell.run_cell(text)
        error = done.error_before_exec or done.error_in_exec
        return Cell(done.result, error, captured._outputs, captured.stdout + captured.stderr)


@contextmanager
def opened_shell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """A shell with the magics, and its files in the folder."""
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    monkeypatch.delenv("SQLFLOW_SOURCE", raising=False)
    quiet = Config()
    quiet.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=quiet)
    try:
        shell.run_line_magic("load_ext", "sqlflow_edl.notebook")
        yield shell
    finally:
        shell.run_line_magic("unload_ext", "sqlflow_edl.notebook")
        InteractiveShell.clear_instance()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    with opened_shell(tmp_path, monkeypatch) as shell:
        yield shell


@pytest.fixture
def notebook(shell: InteractiveShell) -> Notebook:
    """With nothing connected."""
    return Notebook(shell)


@pytest.fixture
def connected(notebook: Notebook) -> Notebook:
    """With a database in memory."""
    assert notebook("%sqlflow_connect duckdb:").error is None
    return notebook
