"""Stand-in for docker and podman: it runs the command of a container as a process of this machine.

The process gets the variables of the container alone, and the folders that its image would have by SQLFLOW_MODEL_PATH.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

SCRIPT = """#!{python}
import sys
sys.argv[0] = {name!r}
sys.path.insert(0, {repository!r})
from tests.engine import main
main({log!r}, {programs!r})
"""


def write_engine(folder: Path, repository: Path, programs: Path, name: str = "docker") -> Path:
    """Write the engine into a folder for PATH; return the file in which it notes its arguments."""
    log, file = folder / "arguments.json", folder / name
    file.write_text(
        SCRIPT.format(
            python=sys.executable, name=name, repository=str(repository), log=str(log), programs=str(programs)
        )
    )
    file.chmod(0o755)
    return log


def main(log: str, programs: str) -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["info"]:  # asked if there is another engine, too
        return
    Path(log).write_text(json.dumps(arguments))
    place = next(number for number, text in enumerate(arguments) if text.startswith("--entrypoint="))
    image, command = arguments[place + 1], arguments[place + 2 :]
    if image.endswith("absent"):
        print(f"Unable to find image '{image}' locally")
        sys.exit(125)
    variables = dict(
        text.removeprefix("--env=").split("=", 1) for text in arguments[:place] if "--env=" in text
    )
    os.execve(  # noqa: S606 - a list, and our own Python
        sys.executable, [sys.executable, *command], {**variables, "SQLFLOW_MODEL_PATH": programs}
    )
