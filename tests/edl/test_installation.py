"""Commands that install what is missing, for the ways in which an environment can be made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from edl import installation
from edl.installation import install_extras, install_packages, requirements

METADATA = """\
numpy>=2.0
starlette>=0.40; extra == "serve"
uvicorn>=0.30; extra == "serve"
psycopg[binary]>=3.2; extra == "postgresql"
xgboost-cpu>=3.0; platform_machine == "x86_64" and extra == "xgboost"
xgboost>=3.0; platform_machine != "x86_64" and extra == "xgboost"
sqlflow-edl[postgresql,serve]; extra == "start"
"""


@pytest.fixture(autouse=True)
def metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        installation, "_read_requirements", lambda: tuple(map(Requirement, METADATA.splitlines()))
    )


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A virtual environment with pip that this process seems to run in; a shell in another folder finds it."""
    folder = tmp_path / "my env"
    (folder / "bin").mkdir(parents=True)
    for name in ("python", "pip"):
        (folder / "bin" / name).touch(0o755)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    monkeypatch.setattr(sys, "prefix", str(folder))
    monkeypatch.setattr(sys, "executable", str(folder / "bin" / "python"))
    monkeypatch.setenv("PATH", str(folder / "bin"))
    return folder


@pytest.mark.usefixtures("environment")
def test_an_extra_is_named_by_its_packages_because_the_project_may_be_on_no_index() -> None:
    assert install_extras("serve") == "pip install 'starlette>=0.40' 'uvicorn>=0.30'"
    assert install_extras("postgresql", "serve").startswith("pip install 'psycopg[binary]>=3.2' 'starlette")


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("has_gpu", [False, True])
def test_pytorch_comes_without_libraries_for_a_gpu_where_there_is_none(
    has_gpu: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(installation, "_GPU_DRIVER", tmp_path if has_gpu else tmp_path / "none")
    index = "" if has_gpu else " --extra-index-url https://download.pytorch.org/whl/cpu"
    assert install_packages("numba", "torch>=2.6") == f"pip install numba 'torch>=2.6'{index}"
    assert install_packages("torchvision") == "pip install torchvision"


def test_an_extra_of_extras_has_the_packages_of_each() -> None:
    assert requirements("start") == ("psycopg[binary]>=3.2", "starlette>=0.40", "uvicorn>=0.30")


def test_requirements_are_for_this_machine() -> None:
    assert len(requirements("xgboost")) == 1


@pytest.mark.usefixtures("environment")
def test_an_extra_that_the_metadata_does_not_know_is_installed_from_the_checkout() -> None:
    assert install_extras("new", "newer") == "pip install '.[new,newer]'"


def test_outside_of_an_active_environment_the_pip_of_the_environment_is_named(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert install_packages("numba") == f"'{environment}/bin/pip' install numba"
    monkeypatch.chdir(environment)
    assert install_packages("numba") == "bin/pip install numba"


def test_an_environment_of_uv_has_no_pip(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\nuv = 0.13.9\n")
    assert install_packages("numba") == "uv pip install numba"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert install_packages("numba") == f"uv pip install --python '{environment}' numba"


def test_pipx_has_a_command_of_its_own(environment: Path) -> None:
    (environment / "pipx_metadata.json").write_text("{}")
    assert install_packages("numba") == "pipx runpip 'my env' install numba"
