"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import itertools
import logging
import os
import random
import re
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from edl.cluster.environment import RESOLVER
from edl.data.server_url import parse_server
from edl.embeddings import numba_cache
from edl.frameworks.imports import without_extras
from tests.selection import for_every_change, of_fault_matrix

if TYPE_CHECKING:
    from sqlflow_edl.session.session import Session
    from tests.databases import Databases
    from tests.distributions import Installation
    from tests.kubernetes.process import Cluster
    from tests.mariadb import Server
    from tests.maxcompute.process import Running
    from tests.postgresql import Server as PostgreSQL

# What is equal in all bits is so on the CPU: the tests leave a GPU of this machine alone, but for those that need one.
# All processes of a run share the machine code of the kernels, which takes 12 s to compile.
for name, value in {
    "EDL_DEVICE": "cpu",
    "EDL_STANDBY": "0",  # most sessions of tests end after their first job with workers
    numba_cache.FOLDER: str(numba_cache.cache_folder() or ""),
    "KERAS_BACKEND": "tensorflow",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    **RESOLVER,
}.items():
    os.environ.setdefault(name, value)
os.environ.pop("FORCE_COLOR", None)

# A shell that runs the suite in the background has SIGINT ignored, which all processes of the tests would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no error. Of random examples `make test` tries the first.
settings.register_profile("all", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("some", settings.get_profile("all"), max_examples=25)

TESTS = Path(__file__).parent
REPOSITORY = TESTS.parent
LONG = (TESTS, TESTS / "edl" / "end_to_end")  # whose files go first, so that none of them is alone at the end
MANY = 2000  # tests: of so many, some use the servers
LEFT_OUT = pytest.StashKey[int]()  # how many tests wait for --soak


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what is generated into tests/golden")
    parser.addoption(
        "--soak", action="store_true", help="with the variants that `make test` leaves to `make test-all`"
    )
    parser.addoption(
        "--faults",
        type=int,
        metavar="TURN",
        help="only rows of the fault matrix, and of a test with several variants the one whose turn it is",
    )


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("all" if config.getoption("--soak") else "some")


def pytest_unconfigure() -> None:
    """Thaw what is frozen below: DuckDB reports what the interpreter cannot free at its end, in a hundred lines."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        gc.unfreeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Collect garbage once per file, so that later collections, as Keras makes before each model, see few objects."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: there is none, and looking takes half of the time."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        import odps  # noqa: F401 - looks through all imported modules: seconds once there are thousands

        with without_extras():  # as the processes of jobs do: a quarter of its start
            import keras  # noqa: F401
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave variants to `make test-all` and `make soak`; that may want the rows of the fault matrix only: test_a1_…"""
    soak, faults = config.getoption("--soak"), config.getoption("--faults")
    wanted = items if soak else for_every_change(items)
    if faults is not None:
        wanted = of_fault_matrix(wanted, faults)
    config.stash[LEFT_OUT] = 0 if soak else len(items) - len(wanted)
    chosen = set(wanted)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = sorted(wanted, key=lambda item: item.path.parent not in LONG)


def pytest_collection_finish() -> None:
    """Let PyTorch's forty loggers propagate: pytest adds handlers to all that do not, three times in each test."""
    for logger in [*logging.root.manager.loggerDict.values()]:
        if isinstance(logger, logging.Logger) and logger.name.startswith("torch"):
            logger.propagate = True


def pytest_sessionstart(session: pytest.Session) -> None:
    """Send the controller of pytest-xdist one message per test that passes, not five, which take 2 ms."""
    for plugin in session.config.pluginmanager.get_plugins():
        if isinstance(getattr(plugin, "workerid", None), str) and hasattr(plugin, "sendevent"):
            plugin.sendevent = partial(_send_news, plugin.sendevent)


def _send_news(send: Callable[..., None], name: str, **what: Any) -> None:
    report = what.get("data", {}) if name == "testreport" else {}
    is_news = report.get("when") == "call" or report.get("outcome") != "passed"
    if name not in ("logstart", "logfinish") and is_news:
        send(name, **what)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if output := getattr(session.config, "workeroutput", None):  # of a worker of pytest-xdist
        output["left out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if left_out := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(f"{left_out:,} variants are left to make test-all")


@pytest.fixture(scope="session", autouse=True)
def state_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Jobs that modules of tests share stay out of the folders of who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp("user")))
        yield


@pytest.fixture(scope="session")
def user_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the models that stand for those of a user."""
    return shutil.copytree(TESTS / "fixtures" / "models", tmp_path_factory.mktemp("user") / "models")


@pytest.fixture(scope="session", autouse=True)
def warm_processes(request: pytest.FixtureRequest, user_models: Path) -> Iterator[None]:
    """Sessions take the training processes that earlier sessions have left.

    A process has the passwords that its session had when it started, and would be left for another once a session
    meets a further server. So a run of many tests, which needs both servers anyway, has their passwords first.
    """
    from tests import mariadb, postgresql, warm_processes

    if len(request.session.items) > MANY:
        for name, module in (("mariadb", mariadb), ("postgresql", postgresql)):
            if module.is_installed():
                parse_server(request.getfixturevalue(name).url("any")).with_password()
    with warm_processes.shared(user_models):
        yield


@pytest.fixture
def own_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training processes start and end with the test, as in a client."""
    from tests import warm_processes

    monkeypatch.setattr(warm_processes.TrainingProcess, "start", warm_processes.start)
    monkeypatch.setattr(warm_processes.TrainingProcess, "close", warm_processes.close)


@pytest.fixture(autouse=True)
def state_of_libraries() -> None:
    """Every test draws the same random numbers, in any order of the tests; Keras takes its seeds from Python's.

    As in a process of edl, optimizers of torch do without the compiler, whose import takes seconds.
    """
    random.seed(0)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(0)
    if torch := sys.modules.get("torch"):
        from edl.frameworks.torch.imports import skip_compiler_import

        torch.default_generator.manual_seed(0)
        skip_compiler_import()


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Numbered paths in one folder, without end."""
    base = tmp_path_factory.mktemp("tests")
    return (base / str(number) for number in itertools.count())


@pytest.fixture
def folder_of_test(request: pytest.FixtureRequest, folders: Iterator[Path]) -> Path:
    """A path that no other test has. pytest lists those of earlier tests to name it: milliseconds after thousands."""
    number = next(folders)
    return number.with_name(re.sub(r"\W", "_", request.node.name)[:30] + "_" + number.name)


@pytest.fixture
def tmp_path(folder_of_test: Path) -> Path:
    """An empty folder."""
    folder_of_test.mkdir(mode=0o700, exist_ok=True)
    return folder_of_test


@pytest.fixture(autouse=True)
def state_folder(folder_of_test: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a user state folder (jobs, logs) of its own, which it makes, and no configuration."""
    folder = folder_of_test / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder_of_test / "config"))
    return folder


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, bytes], None]:
    """golden(name, content): the content equals tests/golden/<name>; --update-golden writes it there."""

    def check(name: str, content: bytes) -> None:
        path = TESTS / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        assert path.is_file(), (
            f"no golden file {name}; look at what is generated, then run with --update-golden"
        )
        assert content.decode() == path.read_text(encoding="utf-8")

    return check


def _of_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all processes of this run."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that the tests of a run share, each with a database of its own."""
    from tests.mariadb import MISSING, is_installed, shared

    if not is_installed():
        pytest.skip(MISSING)
    with shared(_of_run(tmp_path_factory) / "mariadb") as server:
        yield server


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgreSQL]:
    """A server that the tests of a run share, each with a database of its own."""
    from tests.postgresql import MISSING, is_installed, shared

    if not is_installed():
        pytest.skip(MISSING)
    with shared(_of_run(tmp_path_factory) / "postgresql") as server:
        yield server


@pytest.fixture(scope="session")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the checkout."""
    from tests.distributions import built

    return built(repository, _of_run(tmp_path_factory) / "wheel")


@pytest.fixture(scope="session")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An environment that has the wheel."""
    from tests.distributions import installed

    return installed(wheel, _of_run(tmp_path_factory) / "installation")


@pytest.fixture(scope="session")
def clickhouse_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a ClickHouse of chdb."""
    from tests.clickhouse import engine

    if (python := engine.interpreter()) is None:
        pytest.skip(engine.MISSING)
    with engine.running(python, tmp_path_factory.mktemp("clickhouse")) as url:
        yield url


@pytest.fixture(params=["recorded", pytest.param("chdb", marks=pytest.mark.soak)])
def clickhouse(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """A source over a new database of ClickHouse: as recorded for the test, or of chdb. --update-golden records."""
    from tests.clickhouse import engine
    from tests.clickhouse.conversation import Conversation

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    name = request.function.__name__.removeprefix("test_")[:40]
    is_recording = request.config.getoption("--update-golden") or request.param == "chdb"
    server = request.getfixturevalue("clickhouse_server") if is_recording else ""
    if server:
        engine.make_database(server, name)
    if request.param == "chdb":
        yield f"clickhouse://{server.removeprefix('http://')}/{name}"
        return
    with Conversation(TESTS / "golden" / "clickhouse" / f"{name}.json", server) as conversation:
        yield f"clickhouse://{conversation.host}/{name}"


@pytest.fixture(scope="session")
def hive_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of Spark's Thrift server."""
    from tests.hive import engine

    if (spark := engine.home()) is None:
        pytest.skip(engine.MISSING)
    with engine.running(spark, tmp_path_factory.mktemp("hive")) as port:
        yield port


@pytest.fixture(params=["recorded", pytest.param("spark", marks=pytest.mark.soak)])
def hive(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A source over a new database of Hive: as recorded for the test, or of Spark. --update-golden records."""
    from tests.hive import engine
    from tests.hive.conversation import Conversation

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    name = request.function.__name__.removeprefix("test_")[:40]
    is_recording = request.config.getoption("--update-golden") or request.param == "spark"
    server = request.getfixturevalue("hive_server") if is_recording else 0
    if server:
        engine.make_database(server, name)
    if request.param == "spark":
        yield f"hive://127.0.0.1:{server}/{name}"
        return
    with Conversation(TESTS / "golden" / "hive" / f"{name}.json", server) as conversation:
        yield f"hive://{conversation.host}/{name}"


@pytest.fixture(scope="session")
def maxcompute() -> Iterator[Running]:
    """A double of MaxCompute that the tests of this process share, each with a project of its own."""
    from tests.maxcompute.process import running

    with running() as double:
        yield double


@pytest.fixture(scope="session")
def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A double of a Kubernetes cluster that the tests of this process share, each with a namespace of its own."""
    from tests.kubernetes.process import api_server

    with api_server(tmp_path_factory.mktemp("pods")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def databases(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Databases]:
    """Databases of every kind; a server starts when the first of its databases is asked for."""
    from tests.databases import Databases

    names = {"mysql": "mariadb", "postgres": "postgresql", "maxcompute": "maxcompute"}
    folder = tmp_path_factory.mktemp("databases")
    with Databases(folder, lambda dialect: request.getfixturevalue(names[dialect])) as found:
        yield found


@pytest.fixture(scope="session", params=["duckdb", "sqlite", "mysql", "postgres", "maxcompute"])
def session(request: pytest.FixtureRequest, databases: Databases) -> Session:
    """A session over the tables of `tables.sql`, in a database of each kind in turn; only to be read."""
    return databases.filled(request.param)
