"""Commands with a standard output or standard error that is closed, or on a full disk."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from edl.cli.streams import open_missing, outlasting_readers
from edl.errors import JobError


@contextmanager
def closed_pipe() -> Iterator[TextIO]:
    """A stream without its reader, which has exited."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        yield stream


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_command_outlasts_the_reader_of_its_output(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = False
    with closed_pipe() as stream:
        monkeypatch.setattr(sys, name, stream)
        with outlasting_readers():
            for _ in range(3):
                print("epoch", file=getattr(sys, name), flush=True)
            done = True
        assert getattr(sys, name) is stream
    assert done


def test_figures_that_were_lost_to_a_full_disk_are_an_error_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        done = False
        with (
            pytest.raises(JobError, match="cannot write to standard output: No space left"),
            outlasting_readers(),
        ):
            print("loss 1", flush=True)
            done = True
        assert done


def test_messages_may_be_lost_to_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with outlasting_readers():
            print("epoch 1", file=sys.stderr, flush=True)


def test_streams_that_were_closed_before_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    open_missing()
    print("nowhere", file=sys.stderr, flush=True)
    assert sys.stdin.read() == ""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.close()
