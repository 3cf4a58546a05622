"""The constructors of feature columns, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edl import features as fc
from edl import spec
from edl.errors import SemanticError, SpecError

COLUMNS: list[Any] = [
    fc.numeric("x"),
    fc.numeric("x", mean=3),
    fc.standardize("x", mean=1.5, std=0),
    fc.normalize("x", min=0, max=0, mean=0),
    fc.log("x", mean=2.0),
    fc.piecewise_linear("x", [1, 2.5]),
    fc.piecewise_linear("x", [1, 2.5, 4], nulls=True),
    fc.periodic("x", mean=1.5, std=0, frequencies=4),
    fc.target_mean(fc.hash_bucket("x", 1), 0),
    fc.target_mean(
        fc.hash_bucket("x", 1), 5, 2, [1, 2, 0, 1], [0.5] * 8, folds=2, rows=4, blocks=2, scaled=False
    ),
    fc.log_count(fc.cross(["a", "b"], 1), [1, 0]),
    fc.embedding(fc.ngrams("x", 3, 10), 4, "mean"),
    fc.one_hot(fc.concat(fc.ngrams("x", 3, 10), fc.category_id("y", 3))),
    fc.vector("x", mean=[1.5, 2]),
    fc.vector("x", mean=[1.5, 2], std=[0, 1], delimiter=";"),
    fc.one_hot(fc.bucket("x", [1, 2.5])),
    fc.one_hot(fc.bucket("x", [])),
    fc.one_hot(fc.category_id("x", 10)),
    fc.embedding(fc.list_of(fc.category_id("x", 10), "|"), 4, "mean"),
    fc.one_hot(fc.list_of(fc.vocabulary("x", ["a"]), delimiter=" ", weights=":")),
    fc.one_hot(fc.hash_bucket("x", 1)),
    fc.one_hot(fc.vocabulary("x", ["a", ""])),
    fc.one_hot(fc.vocabulary("x", [3, -1])),
    fc.embedding(fc.concat(fc.category_id("x", 3), fc.list_of(fc.category_id("y", 3))), dim=8),
    fc.embedding(fc.cross(["a", "b"], 100), dim=8, combiner="mean"),
    fc.embedding(fc.hash_bucket("x", 3), 2, initial="zeros"),
    fc.embedding(fc.hash_bucket("x", 3), 2, table=1),
]


def shared(column: str, size: int) -> spec.Embedding:
    return fc.embedding(fc.hash_bucket(column, size), dim=2, table=1)


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_a_constructor_gives_the_spec_of_that_column(column: spec.Feature) -> None:
    assert msgspec.json.decode(msgspec.json.encode(column), type=spec.Feature) == column
    assert fc.Features(column).columns == (column,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fc.numeric(""), "numeric needs the name of a column, not ''"),
        (lambda: fc.numeric(3), "numeric needs the name of a column, not 3"),
        (lambda: fc.numeric("x", mean=math.nan), "mean of column x must be a finite number, not nan"),
        (lambda: fc.numeric("x", mean="1"), "mean of column x must be a finite number, not '1'"),
        (lambda: fc.standardize("x", mean=0, std=-1), "std of column x must not be negative"),
        (lambda: fc.standardize("x", mean=0, std=math.inf), "std of column x must be a finite number"),
        (lambda: fc.normalize("x", min=2, max=1, mean=1), "min of column x is 2, above its max 1"),
        (lambda: fc.log("x", mean=-1), "mean of column x is -1, which has no log"),
        (lambda: fc.vector("x", []), "column x has 0 means and 0 deviations"),
        (lambda: fc.vector("x", [1, 2], [1]), "column x has 2 means and 1 deviations"),
        (lambda: fc.vector("x", [1, math.nan]), "mean of column x must be a finite number, not nan"),
        (lambda: fc.vector("x", [1], [-1]), "std of column x must not be negative, it is -1"),
        (lambda: fc.vector("x", [1], delimiter=""), "the delimiter of column x must be a text, not ''"),
        (lambda: fc.piecewise_linear("x", [1]), "column x has 1 boundaries"),
        (lambda: fc.piecewise_linear("x", [2, 1]), "boundaries of column x must ascend, 1 follows 2"),
        (lambda: fc.piecewise_linear("x", [1, 2], 3), "nulls of column x must be True or False, not 3"),
        (lambda: fc.periodic("x", 0, 1, 0), "frequencies of column x must be a positive integer, not 0"),
        (lambda: fc.periodic("x", 0, -1, 4), "std of column x must not be negative, it is -1"),
        (lambda: fc.ngrams("x", 0, 9), "n of column x must be a positive integer, not 0"),
        (lambda: fc.ngrams("x", 3, 0), "size of column x must be a positive integer, not 0"),
        (lambda: fc.target_mean(fc.ngrams("x", 3, 9), 1), "target_mean takes a category with one id per row"),
        (lambda: fc.target_mean(fc.hash_bucket("x", 1), -1), "smoothing of target_mean must not be negative"),
        (
            lambda: fc.target_mean(fc.hash_bucket("x", 1), 1, 1, [1, 2], [1], 1, 3),
            "sums has 1 numbers; the category has 2 in its folds",
        ),
        (
            lambda: fc.target_mean(fc.hash_bucket("x", 1), 1, 1, [1] * 6, [1] * 6, 3, 6, 2),
            "target_mean has 3 folds, and 2 blocks of them are not equal",
        ),
        (lambda: fc.log_count(fc.hash_bucket("x", 1), [0, 0]), "counts must not be negative, and not all 0"),
        (lambda: fc.bucket("x", [1, 1]), "boundaries of column x must ascend, 1 follows 1"),
        (lambda: fc.bucket("x", [2, 1]), "boundaries of column x must ascend, 1 follows 2"),
        (lambda: fc.bucket("x", [math.nan]), "a boundary of column x must be a finite number"),
        (lambda: fc.bucket("x", ["a"]), "a boundary of column x must be a finite number, not 'a'"),
        (lambda: fc.category_id("x", 0), "size of column x must be a positive integer, not 0"),
        (lambda: fc.category_id("x", True), "size of column x must be a positive integer, not True"),
        (lambda: fc.hash_bucket("x", 1.5), "size of column x must be a positive integer, not 1.5"),
        (lambda: fc.hash_bucket("x", 2**70), "size of column x must be a positive integer"),
        (lambda: fc.vocabulary("x", []), "the vocabulary of column x is empty"),
        (lambda: fc.vocabulary("x", ["a", 1]), "must be all text or all integers, not int, str"),
        (lambda: fc.vocabulary("x", [True, False]), "must be all text or all integers, not bool"),
        (lambda: fc.vocabulary("x", [1.5]), "must be all text or all integers, not float"),
        (lambda: fc.vocabulary("x", ["a", "b", "a"]), "the vocabulary of column x holds 'a' 2 times"),
        (lambda: fc.cross(["a"], 10), "cross needs at least two columns"),
        (lambda: fc.cross("ab", 10), "cross takes a list of columns, not 'ab' alone"),
        (lambda: fc.cross(["a", "a"], 10), "cross holds 'a' 2 times"),
        (lambda: fc.cross(["a", "b"], 0), "size of the cross of a, b must be a positive integer"),
        (lambda: fc.concat(fc.category_id("x", 3)), "concat needs at least two categories"),
        (lambda: fc.concat(fc.category_id("x", 3), fc.numeric("x")), "concat takes categories, not Numeric"),
        (lambda: fc.one_hot(fc.numeric("x")), "one_hot takes a category, not Numeric"),
        (lambda: fc.list_of(fc.bucket("x", [1])), "list_of takes the category of an item, not Bucket"),
        (lambda: fc.list_of(fc.category_id("x", 3), ""), "the delimiter of column x must be a text"),
        (lambda: fc.list_of(fc.category_id("x", 3), ":", ":"), "must be a text other than its delimiter"),
        (lambda: fc.embedding("x", 3), "embedding takes a category, not 'x'"),
        (lambda: fc.embedding(fc.hash_bucket("x", 3), 0), "dim of an embedding must be a positive integer"),
        (
            lambda: fc.embedding(fc.hash_bucket("x", 3), 2, combiner="avg"),
            "an embedding has no combiner 'avg'",
        ),
        (lambda: fc.embedding(fc.hash_bucket("x", 3), 2, initial="ones"), "no initial values 'ones'"),
        (
            lambda: fc.embedding(fc.hash_bucket("x", 3), 2, table=-1),
            "table of an embedding must be 0 or a positive",
        ),
        (lambda: fc.Features(shared("x", 3), shared("y", 4)), "embeddings of x, y share a table, and differ"),
        (
            lambda: fc.Features(shared("x", 3), fc.numeric("z"), shared("y", 3)),
            "the embedding of y is apart from others of table 1",
        ),
        (lambda: fc.one_hot(spec.HashBucket("x", -1)), "size of column x must be a positive integer"),
    ],
)
def test_a_wrong_argument_is_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SemanticError, match=message):
        make()


def test_a_stored_list_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "f0.json"
    file.write_text('["a", "b"]')
    assert fc.vocabulary("x", fc.stored(file)).values == ("a", "b")
    file.write_text("[1, 2.5]")
    assert fc.bucket("x", fc.stored(str(file))).boundaries == (1, 2.5)


@pytest.mark.parametrize("text", ["", "{}", '["a', "[null]", "[[1]]", "[true]"])
def test_a_damaged_stored_list_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "f0.json").write_text(text)
    with pytest.raises(SpecError, match=r"f0\.json is not a list of texts or numbers"):
        fc.stored(tmp_path / "f0.json")


def test_a_missing_stored_list_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"cannot read .*f0\.json: No such file"):
        fc.stored(tmp_path / "f0.json")
