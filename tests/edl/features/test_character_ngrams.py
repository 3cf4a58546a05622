"""Runs of characters in texts, against a loop over them by hand."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from edl import features as fc
from edl.features.character_ngrams import ngrams
from edl.ragged import Ragged

TEXTS = ["Ab  c", None, "", " \t", "x", "Größe 😀", "a\nb"]
MASK = (1 << 64) - 1


def mix(state: int) -> int:
    """SplitMix64."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
    return state ^ (state >> 31)


def by_hand(text: str | None, n: int) -> list[int]:
    words = (text or "").lower().split()
    if not words:
        return []
    padded = f" {' '.join(words)} "
    runs = [padded[first : first + n] for first in range(max(len(padded) - n + 1, 1))]
    found = []
    for run in runs:
        state = 0
        for character in run:
            state = mix((state + ord(character) + 1) & MASK)
        found.append(state)
    return found


@pytest.mark.parametrize("n", [1, 3, 5, 20])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_each_run_of_characters_is_hashed(n: int, kind: pa.DataType) -> None:
    hashes, offsets = ngrams(pa.array(["left out", *TEXTS], kind)[1:], n)
    found = [hashes[a:b].tolist() for a, b in itertools.pairwise(offsets)]
    assert found == [by_hand(text, n) for text in TEXTS]


def test_the_hashes_never_change() -> None:
    hashes, _ = ngrams(pa.array(["Ab  c", "x"]), 3)
    assert hashes.tolist() == [
        14381958575065418054,
        10630220356710393954,
        8928089310096753993,
        2722846563764657870,
        1257247333410777393,
    ]


@pytest.mark.parametrize("texts", [pa.array([], pa.string()), pa.nulls(3), pa.array([None, ""])])
def test_texts_without_characters_have_no_runs(texts: pa.Array) -> None:
    batch = pa.record_batch({"t": texts})
    found = fc.Features(fc.one_hot(fc.ngrams("t", 3, 4))).transform(batch)["dense"]
    assert found.shape == (len(texts), 5)
    assert not found.any()


def test_an_embedding_takes_lists_of_buckets_and_a_dense_row_their_counts() -> None:
    batch = pa.record_batch({"t": ["aaaa", "b"]})
    category = fc.ngrams("t", 2, 7)
    arrays = fc.Features(fc.one_hot(category), fc.embedding(category, 4, "mean")).transform(batch)
    lists = arrays["f1"]
    assert isinstance(lists, Ragged)
    ids = [each % 7 for each in by_hand("aaaa", 2)]
    assert lists.values.tolist() == ids + [each % 7 for each in by_hand("b", 2)]
    assert lists.offsets.tolist() == [0, 5, 7]
    assert arrays["dense"][0].tolist() == [ids.count(bucket) for bucket in range(8)]
