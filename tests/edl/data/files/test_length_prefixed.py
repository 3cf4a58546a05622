"""Records behind their lengths, decoded and encoded by Arrow and NumPy."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.data.files.length_prefixed import decode, encode


def written(records: list[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(record)) + record for record in records)


@given(st.lists(st.binary(max_size=40), max_size=40))
def test_what_is_encoded_is_decoded(records: list[bytes]) -> None:
    body = encode(pa.array(records, pa.binary()))
    assert body == written(records)
    assert decode([body], len(records)).to_pylist() == records


def test_a_part_of_an_array_is_encoded_alone() -> None:
    records = pa.array([b"a", b"", b"ccc", b"dd"], pa.binary()).slice(1, 2)
    assert encode(records) == written([b"", b"ccc"])


def test_records_of_several_bodies_are_decoded_together() -> None:
    assert decode([written([b"a"]), b"", written([b"bb", b""])], 3).to_pylist() == [b"a", b"bb", b""]


@pytest.mark.parametrize(
    ("body", "records"),
    [(b"\x05\0\0\0ab", 1), (written([b"a"]), 2), (written([b"a", b"b"]), 1), (b"\xff" * 9, 1), (b"x", 0)],
)
def test_records_that_are_not_all_of_the_body_are_refused(body: bytes, records: int) -> None:
    with pytest.raises(ValueError, match="its"):
        decode([body], records)
