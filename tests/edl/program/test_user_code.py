"""Errors of a program, shown with its own line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edl.errors import SemanticError
from edl.program import UserCodeError, user_code
from edl.program.model_packages import VARIABLE


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
        pytest.raises(UserCodeError, match=r"^loss\(\) of model.py failed: ZeroDivisionError: ") as caught,
        user_code(tmp_path / "model.py", "loss()"),
    ):
        _ = 1 // 0
    assert caught.value.traceback == ""


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


def imported(path: Path, text: str, name: str, module: str = "") -> Any:
    """A function of a module with that text, which lies in the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    space: dict[str, Any] = {"__name__": module or path.stem}
    exec(compile(text, str(path), "exec"), space)  # noqa: S102 (a module of this test)
    return space[name]


BUILD = "def build(rows):\n    return rows['x']\n"


def test_the_line_in_a_users_module_comes_before_the_generated_programs_line(tmp_path: Path) -> None:
    nets = tmp_path / "models" / "nets.py"
    library = tmp_path / "site-packages" / "library.py"
    inner = imported(library, "def call(function):\n    return function([])\n", "call")
    build = imported(nets, f"call = None\n{BUILD}def model():\n    return call(build)\n", "model")
    build.__globals__["call"] = inner
    program = tmp_path / "model.py"
    custom_model = imported(program, "build = None\ndef custom_model():\n    build()\n", "custom_model")
    custom_model.__globals__["build"] = build
    with pytest.raises(UserCodeError) as caught, user_code(program, "custom_model()"):
        custom_model()
    assert caught.value.message.startswith(f"{nets}:3, in build: TypeError: list indices must be")
    assert caught.value.hint == "return rows['x']"
    files = [line for line in caught.value.traceback.splitlines() if line.startswith("  File")]
    assert [line.split('"')[1] for line in files] == [str(program), str(nets), str(nets)]


@pytest.mark.parametrize(("packages", "is_named"), [("", False), ("company.models", True)])
def test_an_installed_package_that_sql_may_name_is_users_code(
    packages: str, is_named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, packages)
    wide = tmp_path / "site-packages" / "company" / "models" / "wide.py"
    build = imported(wide, BUILD, "build", "company.models.wide")
    with pytest.raises(UserCodeError) as caught, user_code(tmp_path / "model.py", "custom_model()"):
        build([])
    assert caught.value.message.startswith(f"{wide}:2, in build") is is_named


def keras_error(message: str) -> ValueError:
    """An error as Keras raises it again, with the arguments of the call in its message."""
    try:
        try:
            raise KeyError("missing")
        except KeyError:
            raised = ValueError(message)
            raised._keras_call_info_injected = True  # type: ignore[attr-defined]
            raise raised from None
    except ValueError as error:
        return error


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (keras_error("Exception encountered when calling Net.call().\n\nArguments"), "KeyError: 'missing'"),
        (ValueError("Could not infer `Net.call()`. Error encountered:\n\nno 7"), "ValueError: no 7"),
        (
            ValueError(
                "Could not infer. Error encountered:\n\n"
                "Exception encountered when calling Net.call().\n\n\x1b[1mno 7\x1b[0m\n\nArguments received by Net"
            ),
            "ValueError: no 7",
        ),
        (
            ValueError("{{function_node __wrapped__MatMul}} sizes differ [Op:MatMul] name: "),
            "ValueError: sizes differ",
        ),
        (ValueError(), "ValueError"),
    ],
)
def test_what_a_framework_puts_around_the_cause_is_left_out(
    error: ValueError, cause: str, tmp_path: Path
) -> None:
    with pytest.raises(UserCodeError) as caught, user_code(tmp_path / "model.py", "the model"):
        raise error
    assert caught.value.message.endswith(f": {cause}")


def test_a_syntax_error_of_a_module_that_the_program_imports_is_named_with_its_line(tmp_path: Path) -> None:
    helper = tmp_path / "helper.py"
    with pytest.raises(UserCodeError) as caught, user_code(tmp_path / "model.py", "import"):
        imported(helper, "class Net(\n", "Net")
    assert caught.value.message == f"{helper}:1: '(' was never closed"
    assert caught.value.hint == "class Net("
