"""`sqlflow doctor`: a report of this installation: versions, the machine, libraries, and what can run with them."""

from __future__ import annotations

import argparse
import importlib.metadata as metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from edl.errors import SQLFlowError
from edl.installation import DISTRIBUTION, install_extras, install_packages, requirements
from sqlflow_edl.cli import exit_codes

COLUMNS = ("about", "name", "found", "advice")
MISSING = "no"
LEFT_OUT = ("all", "start", "bench", "docs", "test")  # extras of other extras, and extras for developers
_TREES, _NETWORKS = ("lightgbm", "xgboost"), ("torch", "tensorflow")
Row = tuple[str, str, str, str]
Extra = tuple[str, tuple[str, ...]]  # versions that were found, and requirements that are not met


def doctor(options: argparse.Namespace) -> int:
    """Run the command. Return an exit code that is not 0 if the data source cannot be used."""
    from sqlflow_edl.display.output import WRITERS, write_rows
    from sqlflow_edl.reports.table import texts

    extras = dict(_extras())
    rows = [*_machine(), *_libraries(extras), *_list_possible(extras)]
    source, advice = _source(options.source)
    rows.append(("data", "source", source, advice))
    if options.format == "table":
        write_rows([(name, False) for name in COLUMNS], rows, sys.stdout)
    else:
        WRITERS[options.format](texts(COLUMNS, rows), sys.stdout)
    return exit_codes.FAILED if options.source and advice else exit_codes.OK


def _machine() -> Iterator[Row]:
    from edl.build import present_build
    from edl.jobs.cores import available_cores
    from edl.jobs.job_folder import state_folder

    build = present_build()
    yield "product", DISTRIBUTION, f"{build.version}, build {build.digest}", ""
    yield "product", "Python", platform.python_version(), ""
    yield "machine", "system", f"{platform.system()} {platform.machine()}", ""
    yield "machine", "cores", str(available_cores()), ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        yield "machine", "memory", _size(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")), ""
    folder = state_folder()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    advice = "" if os.access(existing, os.W_OK) else "not writable; set XDG_STATE_HOME to another folder"
    yield "machine", "job folders", f"{folder}, {_size(shutil.disk_usage(existing).free)} free", advice


def _extras() -> Iterator[tuple[str, Extra]]:
    """Yield each extra with the versions that it found, and what is missing of it."""
    for extra in metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or ():
        if checked := [_find_package(text) for text in requirements(extra)]:
            versions = ", ".join(text for text, _ in checked if text)
            yield extra, (versions, tuple(text for _, text in checked if text))


def _find_package(requirement: str) -> tuple[str, str]:
    """Return a package with its version, and the requirement if it is not met; either may be empty."""
    from packaging.requirements import Requirement

    needed = Requirement(requirement)
    try:
        version = metadata.version(needed.name)
    except metadata.PackageNotFoundError:
        return "", requirement
    fits = needed.specifier.contains(version, prereleases=True)
    return f"{needed.name} {version}", "" if fits else requirement


def _libraries(extras: Mapping[str, Extra]) -> Iterator[Row]:
    for extra, (versions, missing) in extras.items():
        if extra in LEFT_OUT:
            continue
        advice = install_packages(*missing) if missing else ""
        yield "libraries", extra, versions or "not installed", advice


def _list_possible(extras: Mapping[str, Extra]) -> Iterator[Row]:
    """Yield the kinds of models and of jobs, and whether they can run here."""

    def complete(*names: str) -> list[str]:
        return [name for name in names if name in extras and not extras[name][1]]

    def row(name: str, parts: list[str], advice: str) -> Row:
        return "possible", name, ", ".join(parts) if parts else MISSING, "" if parts else advice

    yield row("networks", complete(*_NETWORKS), install_extras("torch"))
    yield row("boosted trees", complete(*_TREES), install_extras("lightgbm"))
    yield row("imported ONNX models", complete("imported"), install_extras("imported"))
    yield row("all-reduce", complete("torch"), f"its groups use gloo of PyTorch: {install_extras('torch')}")
    yield row("parameter servers", complete(*_NETWORKS), install_extras("torch"))
    yield row("serving", complete("serve"), install_extras("serve"))
    client = complete("kubernetes")
    kubeconfig = Path(os.environ.get("KUBECONFIG", "~/.kube/config").split(os.pathsep)[0]).expanduser()
    ready = client if client and kubeconfig.exists() else []
    advice = f"there is no {kubeconfig}" if client else install_extras("kubernetes")
    yield row("Kubernetes", ready, advice)


def _source(url: str | None) -> tuple[str, str]:
    """Return what the data source answers, and what is wrong with it."""
    if not url:
        return "none given", "add --source URL, or set SQLFLOW_SOURCE, to try one"
    from sqlflow_edl.session.session import Session

    try:
        with Session(url) as session:
            session.maintain()
            [models] = session.run("SHOW MODELS")
            count = sum(batch.num_rows for batch in models.reader) if models.reader is not None else 0
            return f"{session.source.url}: reachable, {count:,} models", ""
    except SQLFlowError as error:
        return "not reachable", ": ".join(filter(None, (error.message, error.hint)))


def _size(count: float) -> str:
    return f"{count / (1 << 30):,.1f} GiB"
