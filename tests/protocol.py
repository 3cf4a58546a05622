"""What builds of the runtime exchange in a job on Kubernetes: its files, its messages, and variables of its pods.

`python -m tests.protocol` records it in tests/fixtures/protocol.txt, beside `edl.build.PROTOCOL`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from edl.build import PROTOCOL, Build
from edl.cluster import Instance
from edl.cluster.kubernetes.deployment import Deployment, Policy, Priorities
from edl.jobs.cluster_folder import RunSpec
from edl.jobs.snapshot import Snapshot
from edl.models.pending import Intent
from edl.spec.runnable import RunnableSpec

REPOSITORY = Path(__file__).parents[1]
RECORD = REPOSITORY / "tests" / "fixtures" / "protocol.txt"
# A JobSpec is not listed: its readers refuse every field and kind that they do not know, by its name.
STRUCTS: tuple[type[msgspec.Struct], ...] = (
    Build, RunSpec, Deployment, Policy, Priorities, Intent, RunnableSpec, Instance, Snapshot,
)  # fmt: skip

_COMMENT = re.compile(r"//.*")


def describe_protocol() -> list[str]:
    """Describe the structs by their fields, and the messages by the lines of `proto`; the first line is the number."""
    return [f"protocol {PROTOCOL}", *_describe_structs(), *_describe_messages(), *_list_variables()]


def _describe_structs() -> Iterator[str]:
    for struct in STRUCTS:
        for name in struct.__struct_fields__:
            yield f"{struct.__name__}.{name}: {struct.__annotations__[name]}"


def _describe_messages() -> Iterator[str]:
    for path in sorted((REPOSITORY / "proto").glob("*.proto")):
        lines = (_COMMENT.sub("", line).strip() for line in path.read_text(encoding="utf-8").splitlines())
        yield from (f"{path.name}: {line}" for line in lines if line and line != "}")


def _list_variables() -> Iterator[str]:
    """Yield the variables that the entry point of a container reads, as its documentation lists them."""
    from edl.entrypoints import pod

    yield from sorted(set(re.findall(r"\bEDL_[A-Z]+\b", pod.__doc__ or "")))


if __name__ == "__main__":
    RECORD.write_text("\n".join(describe_protocol()) + "\n", encoding="utf-8")
