"""The file system that DuckDB reads remote files from."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fsspec.implementations.local import LocalFileSystem

from edl.sources.remote_file_system import SharedFileSystem


def test_threads_that_share_a_file_have_positions_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "digits").write_bytes(b"0123456789")
    file = SharedFileSystem(LocalFileSystem()).open(str(tmp_path / "digits"), "rb")
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        one.submit(file.seek, 2).result()
        other.submit(file.seek, 7).result()
        assert one.submit(file.read, 3).result() == b"234"
        assert other.submit(file.read, 3).result() == b"789"
        assert one.submit(file.tell).result() == 5
    file.close()
