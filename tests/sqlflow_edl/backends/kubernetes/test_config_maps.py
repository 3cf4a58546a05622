"""The files of a job in ConfigMaps."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edl.errors import ClusterError
from sqlflow_edl.backends.kubernetes.manifests import config_maps
from sqlflow_edl.backends.kubernetes.manifests.config_maps import Map, pack
from tests.texts import texts


def unpacked(maps: list[Map]) -> dict[str, bytes]:
    """The files as the entry of a container finds and joins them."""
    mounted: dict[str, bytes] = {}
    for each in maps:
        content = {key: text.encode() for key, text in each.data.items()}
        content |= {key: base64.b64decode(text) for key, text in each.binary_data.items()}
        assert set(content) == {item["key"] for item in each.items}
        mounted |= {item["path"]: content[item["key"]] for item in each.items}
    found: dict[str, bytes] = {}
    for path in sorted(mounted):
        whole = re.sub(r"\.part-\d\d$", "", path)
        found[whole] = found.get(whole, b"") + mounted[path]
    return found


PATHS = st.text(st.sampled_from("abé/_. -"), min_size=1, max_size=12)


@settings(max_examples=100)
@given(st.dictionaries(PATHS, st.binary(max_size=40) | texts(max_size=30).map(str.encode), min_size=1))
def test_what_is_packed_is_found_again_in_maps_that_are_small_enough(content: Mapping[str, bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config_maps, "LARGEST", 16)
        maps = pack(content)
    assert unpacked(maps) == content
    keys = [part.key for each in maps for part in each.parts]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch(r"[-._a-zA-Z0-9]+", key) for key in keys)
    assert all(each.size <= 16 for each in maps)


def test_a_program_is_text_and_other_bytes_are_not() -> None:
    [found] = pack({"program/model.py": "# ü\n".encode(), "rows/x": b"\xff\x00"})
    assert found.data == {"program.model.py": "# ü\n"}
    assert found.binary_data == {"rows.x": "/wA="}


def test_a_text_is_cut_between_its_characters() -> None:
    text = "ü" * config_maps.LARGEST
    maps = pack({"a.json": text.encode()})
    assert [len(each.parts) for each in maps] == [1] * len(maps)
    assert "".join(part for each in maps for part in each.data.values()) == text


def test_more_than_a_job_may_take_with_it_is_refused_and_the_largest_is_named() -> None:
    with pytest.raises(ClusterError, match="are 32 MB") as refused:
        pack({"program/model.py": b"x", "program/vocabulary/f1.json": b"x" * config_maps.MOST})
    assert "program/vocabulary/f1.json" in (refused.value.hint or "")
