"""Quantities of processors and of memory."""

from decimal import Decimal

import pytest

from edl.cluster.kubernetes import quantities


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("2", 2),
        ("0.5", Decimal("0.5")),
        ("1500m", Decimal("1.5")),
        ("4Gi", 4 << 30),
        ("1k", 1000),
        ("1e3", 1000),
    ],
)
def test_a_quantity_is_read_as_the_api_server_reads_it(written, value):
    assert quantities.value(written) == value


@pytest.mark.parametrize("written", ["", "-1", "4GB", "4 Gi", "Gi", "1e", "٣", "4gi", "\n1", "1\n"])
def test_what_is_none_is_refused(written):
    with pytest.raises(ValueError, match="no quantity"):
        quantities.value(written)


def test_bytes_are_told_in_mebibytes_rounded_up_and_in_whole_gibibytes():
    assert quantities.memory((1 << 30) + 1) == "1025Mi"
    assert quantities.memory((3 << 30) - 1) == "3Gi"
