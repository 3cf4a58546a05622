"""Errors of a program, shown with its own line."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.errors import SemanticError
from edl.program import UserCodeError, user_code


def run(file: Path, text: str) -> None:
    file.write_text(text)
    with user_code(file, "loss()"):
        exec(compile(text, str(file), "exec"), {})  # noqa: S102 (a program of this test)


def test_the_innermost_line_of_the_program_is_named(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    text = "import json\n\ndef inner():\n    json.loads('[')\n\ndef outer():\n    inner()\n\nouter()\n"
    with pytest.raises(UserCodeError) as caught:
        run(file, text)
    assert caught.value.message.startswith(f"{file}:4, in inner: JSONDecodeError: Expecting value")
    assert caught.value.hint == "json.loads('[')"
    assert caught.value.__cause__ is not None


def test_a_syntax_error_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    with pytest.raises(UserCodeError) as caught:
        run(file, "x = 1\ndef f(:\n    pass\n")
    assert caught.value.message.startswith(f"{file}:2: ")
    assert caught.value.hint == "def f(:"


def test_an_error_outside_the_program_is_named_by_the_call(tmp_path: Path) -> None:
    with (
        pytest.raises(UserCodeError, match=r"^loss\(\) of model.py failed: ZeroDivisionError: "),
        user_code(tmp_path / "model.py", "loss()"),
    ):
        _ = 1 // 0


def test_an_error_with_words_of_its_own_passes(tmp_path: Path) -> None:
    with pytest.raises(SemanticError, match="no column"), user_code(tmp_path / "model.py", "feed()"):
        raise SemanticError("no column x")


def test_an_exit_is_an_error_of_the_program(tmp_path: Path) -> None:
    with pytest.raises(UserCodeError, match=r"model\.py:2: SystemExit: 3$"):
        run(tmp_path / "model.py", "import sys\nsys.exit(3)\n")


def test_an_interrupt_is_no_error_of_the_program(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), user_code(tmp_path / "model.py", "feed()"):
        raise KeyboardInterrupt


def test_the_dump_of_a_graph_is_cut_to_what_is_wrong(tmp_path: Path) -> None:
    dump = "Graph execution error:\n\nDetected at node M\n  File x\nMatrix size-incompatible: [1]\n\t [[{{node M}}]]"
    with (
        pytest.raises(UserCodeError, match=r"ValueError: Matrix size-incompatible: \[1\]$"),
        user_code(tmp_path / "model.py", "the step"),
    ):
        raise ValueError(dump)


def test_a_long_message_is_cut(tmp_path: Path) -> None:
    with pytest.raises(UserCodeError) as caught, user_code(tmp_path / "model.py", "feed()"):
        raise ValueError("x" * 10_000)
    assert len(caught.value.message) < 700
