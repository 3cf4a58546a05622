"""Names that programs, samples and scripts of users import: they stay where they are when modules move."""

from __future__ import annotations

import pytest

from tests.public_names import collect_names, find_name, imported_names, read_list


@pytest.mark.parametrize("name", sorted(read_list()))
def test_a_public_name_is_where_users_import_it(name: str) -> None:
    assert find_name(name) == name


def test_the_list_has_every_name_that_programs_samples_and_pages_use() -> None:
    missing = collect_names() - read_list()
    assert not missing, "python -m tests.public_names adds them"


def test_names_are_collected_from_imports_and_from_the_modules_that_they_import() -> None:
    program = (
        "import edl\nimport numpy as np\nfrom edl import metrics as m\nedl.elastic.step()\nm.MAE\nnp.abs(1)\n"
    )
    assert set(imported_names(program)) == {
        "edl.metrics",
        "edl.elastic",
        "edl.elastic.step",
        "edl.metrics.MAE",
    }
