"""runtime/Dockerfile, read by a small parser: builders are not everywhere, and what they refuse shows here."""

from __future__ import annotations

import re
import shlex
import sys
from configparser import ConfigParser
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from edl.embeddings.numba_cache import BROUGHT
from edl.installation import VERSION
from edl.program.user_model import PATH_VARIABLE
from sqlflow_edl.analysis.settings.kubernetes import USER

# What every builder of OCI images knows; BuildKit's own flags and here-documents are not among it.
FLAGS = {"FROM": {"platform"}, "COPY": {"from", "chown", "chmod"}, "RUN": set[str]()}
PLAIN = ("ARG", "CMD", "ENV", "LABEL", "USER", "WORKDIR")

# Modules that no pod of a job imports, or that it can do without.
NOT_IN_PODS = {
    "adbc_driver_snowflake",
    "clickhouse_connect",
    "connectorx",
    "deltalake",
    "highspy",
    "holidays",
    "impala",
    "keyring",
    "onnx",
    "pyiceberg",
    "sqlglot",
    "thrift",
    "trino",
}


@dataclass
class Stage:
    """base: an earlier stage, or an image. instructions: name, flags, words."""

    name: str
    base: str
    instructions: list[tuple[str, dict[str, str], list[str]]] = field(default_factory=list)

    def of(self, name: str) -> list[list[str]]:
        return [words for each, _, words in self.instructions if each == name]


@pytest.fixture(scope="module")
def text(repository: Path) -> str:
    return (repository / "runtime" / "Dockerfile").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def stages(text: str) -> dict[str, Stage]:
    found: dict[str, Stage] = {}
    joined = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.M))
    for line in filter(None, map(str.strip, joined.splitlines())):
        name, _, rest = line.partition(" ")
        assert name in (*FLAGS, *PLAIN), f"{name} is not for every builder"
        flags = dict(re.findall(r"--([a-z-]+)=(\S+) ", rest)) if name in FLAGS and name != "RUN" else {}
        assert set(flags) <= FLAGS.get(name, set()), line
        words = shlex.split(re.sub(r"^(--[a-z-]+=\S+ )*", "", rest) if flags else rest)
        if name == "FROM":
            assert words[1] == "AS"
            found[words[2]] = Stage(words[2], words[0])
        elif found:
            list(found.values())[-1].instructions.append((name, flags, words))
    return found


def requirements(repository: Path) -> list[tuple[str, str]]:
    """Name and line, of all files of requirements."""
    lines = [
        line
        for path in (repository / "runtime" / "requirements").glob("*.txt")
        if path.name != "unused.txt"
        for line in path.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    return [(re.split(r"[\[; ]", line)[0], line) for line in lines]


def pins(repository: Path) -> dict[str, str]:
    lines = (repository / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {normal(name): version for name, _, version in (line.partition("==") for line in lines)}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_stage_stands_on_one_before_it_or_on_the_base_image(stages: dict[str, Stage]) -> None:
    known = {"${BASE}"}
    for stage in stages.values():
        assert stage.base in known
        copied = [
            flags["from"] for name, flags, _ in stage.instructions if name == "COPY" and "from" in flags
        ]
        assert set(copied) <= known
        known.add(stage.name)


def test_nothing_in_it_is_for_one_builder_alone_or_names_a_registry(text: str) -> None:
    for stranger in ("<<", "--mount", "--link", "# syntax", "http"):
        assert stranger not in text
    [base] = re.findall(r"^ARG BASE=(\S+)", text, flags=re.M)
    assert re.fullmatch(r"[a-z]+:[a-z0-9.-]+", base), "a plain name, without a registry's host"


def test_what_is_copied_is_there_and_is_sent_to_the_builder(
    stages: dict[str, Stage], repository: Path
) -> None:
    ignored = (repository / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sent = [line[1:] for line in ignored if line.startswith("!")]
    for stage in stages.values():
        for name, flags, words in stage.instructions:
            if name != "COPY" or "from" in flags:
                continue
            for source in words[:-1]:
                assert (repository / source).exists(), source
                path = source.rstrip("/")
                assert any(path == each or path.startswith(f"{each}/") for each in sent), source
                assert not any(fnmatch(path, each) for each in ignored[1:] if each[0] not in "!*#")


def test_variables_are_given_before_they_are_used(stages: dict[str, Stage]) -> None:
    shell = {"framework", "package"}  # of loops
    known: dict[str, set[str]] = {"${BASE}": {"PATH"}}
    for stage in stages.values():
        names = set(known[stage.base])
        for name, _, words in stage.instructions:
            used = set(re.findall(r"\$\{(\w+)\}", " ".join(words)))
            assert used <= names | shell, f"{name} {words}"
            if name in ("ARG", "ENV"):
                names |= {word.partition("=")[0] for word in words}
        known[stage.name] = names


def test_a_change_of_our_code_leaves_all_layers_before_it(stages: dict[str, Stage]) -> None:
    packages = [
        word for name, _, words in stages["packages"].instructions if name == "COPY" for word in words
    ]
    assert not any(word.startswith("runtime/edl") for word in packages)
    job = [words for name, flags, words in stages["job"].instructions if flags.get("from") == "code"]
    last = [(name, words) for name, _, words in stages["job"].instructions if name != "USER"]
    assert [words for _, words in last[-len(job) :]] == job
    assert last[0] == ("COPY", ["/opt/edl", "/opt/edl"])


def test_the_image_of_jobs_is_the_last_stage_and_holds_no_builder(stages: dict[str, Stage]) -> None:
    job, base = stages["job"], stages["base"]
    assert list(stages)[-1] == "job"
    assert (job.base, base.base) == ("base", "${BASE}")
    assert job.of("RUN") == []
    run = " ".join(word for words in base.of("RUN") for word in words)
    assert re.findall(r"install (?:--\S+ )*([^&]*?) &&", run) == ["libgomp1"], "a library of LightGBM alone"


@pytest.mark.parametrize("stage", ["job", "test"])
def test_containers_run_as_the_user_that_manifests_name(stages: dict[str, Stage], stage: str) -> None:
    assert stages[stage].instructions[-1] == ("USER", {}, [f"{USER}:{USER}"])
    made = " ".join(word for words in stages["base"].of("RUN") for word in words)
    assert f"--uid {USER} --gid {USER}" in made


def test_what_the_image_sets_is_what_our_code_reads(stages: dict[str, Stage], text: str) -> None:
    variables = {word.partition("=")[0] for words in stages["base"].of("ENV") for word in words}
    assert variables == {"PATH", BROUGHT, PATH_VARIABLE}
    assert f"sqlflow-edl:{VERSION} ." in text


def test_requirements_are_those_of_the_package_and_pinned(repository: Path) -> None:
    config = ConfigParser()
    config.read(repository / "setup.cfg")
    ours = config["options"]["install_requires"] + "".join(
        config["options.extras_require"][extra]
        for extra in (
            "tensorflow",
            "torch",
            "mysql",
            "postgresql",
            "maxcompute",
            "kafka",
            "kubernetes",
            "model-store",
            "recordio",
            "lightgbm",
            "xgboost",
            "imported",
        )
    )
    declared = {normal(re.split(r"[\[;<>= ]", line)[0]) for line in ours.split("\n")}
    pinned = pins(repository)
    for name, line in requirements(repository):
        assert normal(name) in declared
        assert normal(name) in pinned or f" == {pinned[f'{name}-cpu']}" in line


def test_every_package_that_the_runtime_imports_is_in_the_image(repository: Path) -> None:
    """A model of a library that the image lacks would fail in its first pod."""
    asked = {name for name, _ in requirements(repository)}
    installed = packages_distributions()
    present = {normal(each) for distributions in installed.values() for each in distributions}
    brought = {
        normal(re.split(r"[\[;<>=!~ (]", line)[0])
        for name in asked
        if normal(name) in present
        for line in requires(name) or []
    }
    there = {normal(name) for name in asked} | brought
    imported = {
        module
        for path in (repository / "runtime" / "edl").rglob("*.py")
        for module in re.findall(
            r"^\s*(?:import|from) (\w+)[\w.]*(?: as \w+$| import |$)", path.read_text(encoding="utf-8"), re.M
        )
    }
    strangers = imported - set(sys.stdlib_module_names) - {"edl"} - NOT_IN_PODS
    assert {"torch", "lightgbm", "pyarrow"} <= strangers
    assert [
        module
        for module in sorted(strangers)
        if there.isdisjoint(map(normal, installed.get(module, [module])))
    ] == []
