"""Damaged input for all that reads bytes or texts of others: `python -m tests.fuzzing --inputs 1000000` or `make fuzz`.

An input is a valid one with some mutations, from a seeded generator, so that a number finds it again. Whatever is read
ends in a value, or in one of the errors that its reader documents; anything else is a finding, and so is an input that
takes longer than a second of the processor. Inputs are small: sizes that are claimed and not there are among the
mutations.
"""

from __future__ import annotations

import argparse
import gzip
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np
from google.protobuf.message import DecodeError

from edl.data import url as urls
from edl.data.files import csv
from edl.data.server_url import parse_server
from edl.errors import SourceError, SpecError, SQLFlowError
from edl.extensions.imported.onnx_file import read_onnx
from edl.jobs.event_log import decode_event
from edl.models import weights
from edl.models.archive import read_archive, write_archive
from edl.ps import messages, wire
from edl.rpc import codec
from edl.rpc import control_pb2 as pb
from edl.spec import from_json, to_json
from edl.tasks.protocol import Flag, Request, TaskUpdate
from edl.tasks.task import Report, Task
from sqlflow_edl.syntax import parse
from sqlflow_edl.syntax.dialects import DIALECTS
from tests.edl.models.conftest import PARTS, SPEC
from tests.sql_cases import cases

SLOW = 1.0  # seconds of the processor
EDGES = [0, 1, 0x7F, 0x80, 0xFF]
SIZES = [b"\xff" * 4, b"\xff" * 8, b"\x7f" + b"\xff" * 7, (1 << 40).to_bytes(8, "little"), b"\0" * 8]
WORDS = [
    "'",
    '"',
    "`",
    "--",
    "/*",
    "@",
    "://",
    "%",
    "%zz",
    "[",
    "]",
    "\0",
    "\ud7ff",
    "ﬀ",
    "TO TRAIN",
    "WITH",
    ";",
    "=",
]


@dataclass(frozen=True)
class Target:
    """Reader, with valid inputs and the errors that it may raise. `share`: of the inputs, for a slow one."""

    read: Callable[[Any], object]
    seeds: Sequence[Any]
    errors: tuple[type[Exception], ...]
    share: float = 1.0


@dataclass(frozen=True)
class Finding:
    """Input that a reader should not have answered so."""

    target: str
    number: int
    given: Any
    why: str


def mutated(seed: Any, choices: random.Random) -> Any:
    """Return the bytes or the text with one to four mutations."""
    found = list(seed)
    words: list[Any] = (
        [*map(list, SIZES), [choices.choice(EDGES)]] if isinstance(seed, bytes) else [*map(list, WORDS)]
    )
    for _ in range(choices.randint(1, 4)):
        at = choices.randint(0, len(found))
        to = min(len(found), at + choices.choice((0, 1, 2, 8, 64)))
        match choices.randrange(5):
            case 0:
                del found[at:to]
            case 1:
                found[at:at] = found[at:to] * choices.randint(1, 3)
            case 2:
                found[at:to] = choices.choice(words)
            case 3 if found:
                other = choices.randrange(len(found))
                found[at:to] = found[other : other + to - at]
            case _ if at < len(found):
                found[at] = (
                    choices.randrange(256) if isinstance(seed, bytes) else chr(choices.randrange(1, 0xD800))
                )
    return bytes(found) if isinstance(seed, bytes) else "".join(found)


def findings(name: str, first: int, count: int, slow: float = SLOW) -> list[Finding]:
    """Return what inputs of these numbers find, also those that take more than `slow` seconds of this thread."""
    target, found = targets()[name], []
    for number in range(first, first + math.ceil(count * target.share)):
        choices = random.Random(f"{name} {number}")  # noqa: S311 - it is to be found again
        given = mutated(choices.choice(target.seeds), choices)
        began = time.thread_time()
        try:
            target.read(given)
        except target.errors:
            pass
        except BaseException as error:
            found.append(Finding(name, number, given, f"{type(error).__name__}: {error}"))
        if (took := time.thread_time() - began) > slow:
            found.append(Finding(name, number, given, f"{took:.1f} s"))
    return found


@cache
def targets() -> dict[str, Target]:
    """Return all targets by name."""
    programs = sorted({case.program for case in cases("syntax/statements.sql")})
    urls_ = [
        "mysql://reader:pa55@db.example:3306/shop?ssl_ca=/etc/ca.pem",
        "postgresql://u@[fd00::7]:5432/shop",
        "maxcompute://id:key@host/api?curr_project=shop&scheme=https",
        "duckdb:///data/iris.duckdb",
        "csv:///iris.csv?delim=%3B",
        "s3://lake/flights",
        "delta:///lake/sales?version=3",
        "iris.sqlite",
    ]
    return {
        "statements": Target(_statements, programs, (SQLFlowError,)),
        "urls": Target(_url, urls_, (SourceError,)),
        "requests": Target(_request, [_a_request()], (SpecError, KeyError, DecodeError)),
        "calls of servers": Target(_server_call, _server_calls(), (SpecError,)),
        "archives": Target(_archive, [_an_archive()], (SpecError,)),
        "ONNX files": Target(read_onnx, _onnx_files(), (ValueError,)),
        "weights": Target(weights.loads, [_some_weights()], (SpecError,)),
        "CSV files": Target(_csv_file, _csv_files(), (SourceError,), share=0.05),
        "specs": Target(from_json, [to_json(SPEC)], (SpecError,)),
        "events": Target(decode_event, [b'{"type":"failed","code":"job","message":"no"}'], ()),
    }


def _statements(text: str) -> None:
    for dialect in DIALECTS:
        parse(text, dialect)


def _url(text: str) -> None:
    assert ":pa55@" not in urls.redacted(text)
    for parse_url in (parse_server, urls.parse):
        try:
            parse_url(text)
        except SourceError as error:
            assert ":pa55@" not in error.message


def _csv_file(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        path = Path(folder) / "t.csv"
        path.write_bytes(data)
        connection.sql("SET threads = 1")
        files = csv.open_files(connection, [str(path)], urls.SourceURL("csv", str(path)), Path(folder))
        assert isinstance(files.notes(), list)
        connection.sql(files.select()).fetchall()


def _csv_files() -> list[bytes]:
    text = '# of May\r\nname;price;since\r\nMüller;1,5;26.12.2024\r\n"a;""b\n";-,5;01.02.2024 10:11\r\n'
    plain = "id,x,at\n1,.5,2024-01-02\n,-1e5,2024-01-02T10:11:12Z\n"
    packed = gzip.compress(plain.encode(), mtime=0)
    return [text.encode(), text.encode("utf-16"), text.encode("cp1252"), plain.encode(), packed]


def _request(data: bytes) -> None:
    codec.request_from(pb.ExchangeRequest.FromString(data))


def _a_request() -> bytes:
    task = Task(1, "train", 8192, 16384, 2, 512, (7 << 40) + 6)
    states = {"auc": (np.array([0.0, 1.0]), np.ones((3, 4)))}
    updates = (TaskUpdate(1, "done", Report(task, 7680, 15, 1.5, 7680.0, states)),)
    request = Request("worker-0", 3, 1, updates, (Report(task, 3),), {"train": 2}, group=1)
    return bytes(codec.request_to(request, 1.0, Flag.NONE).SerializeToString())


def _server_call(data: bytes) -> None:
    for kind in (messages.Revoke, messages.Push, messages.Define, messages.Keep, messages.Status):
        try:
            wire.decode(data, kind)
        except SpecError:
            continue


def _server_calls() -> list[bytes]:
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([5, 7], np.int64)]
    heads: list[msgspec.Struct] = [messages.Status(), messages.Revoke(1, (7, 8))]
    return [wire.encode(head, arrays) for head in heads]


def _onnx_files() -> list[bytes]:
    folder = Path(__file__).parent / "fixtures" / "imported"
    return [(folder / name).read_bytes() for name in ("iris_zipmap.onnx", "net.onnx")]


def _archive(data: bytes) -> None:
    found = read_archive(data)
    found.parameters()
    found.weights()
    found.background()
    with tempfile.TemporaryDirectory() as folder:
        found.write_program(Path(folder) / "in")
        assert not [path for path in Path(folder).iterdir() if path.name != "in"]


def _an_archive() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_archive(Path(folder) / "m.zip", **PARTS)
        return (Path(folder) / "m.zip").read_bytes()


def _some_weights() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        weights.save(PARTS["weights"], Path(folder) / "w")
        return (Path(folder) / "w").read_bytes()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzzing", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--inputs", type=int, default=1_000_000, help="for all targets together")
    parser.add_argument("--first", type=int, default=0, help="number of the first input of each")
    parser.add_argument("targets", nargs="*", help="by default all")
    options = parser.parse_args()
    names, failed = options.targets or list(targets()), False
    for name in names:
        began, count = time.monotonic(), options.inputs // len(names)
        found = findings(name, options.first, count)
        print(
            f"{name}: {count:,} inputs in {time.monotonic() - began:.0f} s, {len(found)} findings", flush=True
        )
        for each in found[:10]:
            print(f"  input {each.number}: {each.why}: {each.given!r}"[:500])
        failed = failed or bool(found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
