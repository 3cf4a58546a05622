"""The entry of a container: what it becomes, and with what."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from edl import exit_codes
from edl.build import PROTOCOL, Build, present_build
from edl.cluster import Instance
from edl.cluster.local.instance_process import TAKE_OVER
from edl.data.server_url import parse_server
from edl.entrypoints.pod import read_spec
from edl.errors import SpecError
from edl.jobs.cluster_folder import CLIENT, TESTING, ClusterFolder, RunSpec
from tests.edl.entrypoints.mounted import JOB, mounted

ENTRIES = {"EDL_TESTING_ENTRIES": f"{__name__}:worker,{__name__}:server"}
SHOWN = ("OMP_NUM_THREADS", "PYTHONHASHSEED", "MINE", "SQLFLOW_EDL_SECRETS")


def worker(job: Path, instance: Instance) -> int:
    """Says what it is; the second worker goes on as a server, the third begins for ever."""
    found = {name: os.environ.get(name) for name in SHOWN}
    found["password"] = parse_server("mysql://u@h/d").with_password().password
    print("trouble", file=sys.stderr, flush=True)  # before who waits for the next line ends us
    print(json.dumps([str(job), instance.name, instance.role, found]))
    if instance.name == "worker-2":
        sys.stdout.flush()
        while True:  # a signal just before one endless wait would end none
            time.sleep(0.05)
    return TAKE_OVER if instance.name == "worker-1" else 7


def server(job: Path, instance: Instance) -> int:
    print(json.dumps([str(job), instance.name, instance.role]))
    return 0


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv(TESTING, ENTRIES["EDL_TESTING_ENTRIES"])
    monkeypatch.delenv("SQLFLOW_EDL_SECRETS", raising=False)  # of the databases of other tests
    spec = RunSpec(
        "torch",
        threads=3,
        worker=f"{__name__}:worker",
        server=f"{__name__}:server",
        environment={"MINE": "yes"},
    )
    files = {
        "cluster/spec.json": msgspec.json.encode(spec),
        "cluster/kubernetes.json": b"{}",
        f"cluster/{CLIENT}": msgspec.json.encode(present_build()),
    }
    given = mounted(tmp_path, files, {"mysql://u@h/d": "Geheim"})
    return {**os.environ, **ENTRIES, **given, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def run(
    environment: dict[str, str], role: str, instance: Instance | None = None
) -> tuple[int, list[str], str]:
    """The exit code, and the lines of standard output and the text of standard error."""
    with started(environment, role, instance) as process:
        out, errors = process.communicate()
    return process.returncode, out.splitlines(), errors


def started(
    environment: dict[str, str], role: str, instance: Instance | None = None
) -> subprocess.Popen[str]:
    given = {} if instance is None else {"EDL_INSTANCE": msgspec.json.encode(instance).decode()}
    command = [sys.executable, "-P", "-m", "edl.entrypoints.pod", role]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env={**environment, **given}, stdout=pipe, stderr=pipe, text=True)


def test_a_worker_has_its_folder_and_environment_and_ends_with_its_code(
    environment: dict[str, str], tmp_path: Path
) -> None:
    code, [line], errors = run(environment, "instance", Instance("worker-0", "worker", 2))
    job, name, role, found = json.loads(line)
    assert (code, job, name, role) == (7, str(tmp_path / "empty" / JOB), "worker-0", "worker")
    assert found == {**dict(zip(SHOWN, ("3", "0", "yes", None), strict=True)), "password": "Geheim"}
    assert errors == "trouble\n"  # both go to the container's log


def test_a_worker_that_takes_over_goes_on_as_a_server(environment: dict[str, str]) -> None:
    code, lines, _ = run(environment, "instance", Instance("worker-1", "worker"))
    assert code == 0
    assert [json.loads(line)[2] for line in lines] == ["worker", "ps"]


def test_a_worker_that_is_told_to_leave_before_it_has_begun_leaves_at_once(
    environment: dict[str, str],
) -> None:
    with started(environment, "instance", Instance("worker-2", "worker")) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())[1] == "worker-2"
        process.terminate()
        _, errors = process.communicate()
    assert process.returncode == exit_codes.PREEMPTED
    assert errors == "trouble\nterminated before it started\n"


@pytest.mark.parametrize(
    ("role", "said"),
    [("instance", "needs EDL_INSTANCE"), ("shell", "shell is neither master nor instance")],
)
def test_a_container_that_nobody_can_be_says_why(environment: dict[str, str], role: str, said: str) -> None:
    code, _, errors = run(environment, role)
    assert (code, errors.startswith("error: ")) == (exit_codes.USAGE, True)
    assert said in errors


NEWER = b'{"framework": "torch", "client": "9.1.0", "unheard_of": 1}'


@pytest.mark.parametrize(
    ("spec", "job", "made"),
    [
        (NEWER, None, "sqlflow-edl 9.1.0, build unknown"),
        (NEWER, b'{"version": 7}', "sqlflow-edl 9.1.0, build unknown"),
        (b'{"framework": "torch", "client": "0.1.0"}', b"{}", "sqlflow-edl 0.1.0, build unknown"),
        (b'{"client": 7}', None, "sqlflow-edl of another version, build unknown"),
        (b'{"framework": "torch", "client": ""}', b"{}", "sqlflow-edl of another version, build unknown"),
    ],
)
def test_a_job_of_another_version_is_an_error_that_names_both(
    tmp_path: Path, spec: bytes, job: bytes | None, made: str
) -> None:
    folder = ClusterFolder(tmp_path)
    for path, content in ((folder.path / "spec.json", spec), (tmp_path / "program" / "job.json", job)):
        if content is not None:
            path.parent.mkdir()
            path.write_bytes(content)
    with pytest.raises(SpecError) as raised:
        read_spec(folder)
    text = f"the job was made by {made}, and its image has {present_build()}, which cannot read it: "
    assert raised.value.message.startswith(text)
    assert "build the image from the code that is installed where the job is submitted" in raised.value.report


OTHER = Build("0.1.0", "c0ffee000000", PROTOCOL)


def of_build(
    folder: Path, build: Build | None, spec: bytes = b'{"framework": "torch", "client": "0.1.0"}'
) -> ClusterFolder:
    """The folder of a job that this build made; None made no file of its build."""
    cluster = ClusterFolder(folder)
    cluster.path.mkdir()
    (cluster.path / "spec.json").write_bytes(spec)
    if build is not None:
        (cluster.path / CLIENT).write_bytes(msgspec.json.encode(build))
    return cluster


def test_a_job_of_this_build_is_taken_up_without_a_word(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert read_spec(of_build(tmp_path, present_build())).framework == "torch"
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("build", "named"), [(OTHER, "build c0ffee000000"), (None, "build unknown")])
def test_another_build_of_the_same_protocol_runs_the_job_and_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], build: Build | None, named: str
) -> None:
    assert read_spec(of_build(tmp_path, build)).framework == "torch"
    said = f"sqlflow-edl 0.1.0, {named}, and its image has {present_build()}, which runs it too"
    assert said in capfd.readouterr().err


def test_a_build_of_another_protocol_refuses_the_job_before_it_reads_it(tmp_path: Path) -> None:
    later = Build("0.1.0", "c0ffee000000", PROTOCOL + 1)
    with pytest.raises(SpecError) as raised:
        read_spec(of_build(tmp_path, later, b"not read"))
    assert raised.value.message == (
        f"the job was made by {later}, and its image has {present_build()}, which does not run it: the protocol of "
        f"jobs is {PROTOCOL + 1} there, {PROTOCOL} here"
    )


def test_a_specification_that_another_build_made_and_this_one_cannot_read_names_both(tmp_path: Path) -> None:
    unknown = b'{"framework": "torch", "unheard_of": 1}'
    with pytest.raises(SpecError, match=r"c0ffee000000, and its image has .*unheard_of"):
        read_spec(of_build(tmp_path, OTHER, unknown))


def test_a_damaged_job_of_this_version_is_called_damaged(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path)
    folder.path.mkdir()
    folder.write_run_spec(RunSpec("torch"))
    (folder.path / CLIENT).write_bytes(msgspec.json.encode(present_build()))
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "job.json").write_bytes(b"{")
    with pytest.raises(SpecError, match="not a JobSpec"):
        read_spec(folder)


@pytest.mark.parametrize(
    "spec", [b"", b'{"framework": "torch", "client": "9.1.0", "thr', b'{"framework": "\xff"}']
)
def test_a_truncated_specification_is_called_damaged(tmp_path: Path, spec: bytes) -> None:
    folder = ClusterFolder(tmp_path)
    folder.path.mkdir()
    (folder.path / "spec.json").write_bytes(spec)
    with pytest.raises(SpecError, match=f"the run specification of job {tmp_path.name} is damaged: "):
        read_spec(folder)
