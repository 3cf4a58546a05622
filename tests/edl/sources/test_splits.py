"""Validation rows of a split: last in the pinned order, in whole units, the same ones in every database."""

from __future__ import annotations

import datetime as dt
import gc
import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from edl.data import Source, connect, open_reader, pinned
from edl.errors import SourceError
from edl.spec import Split, SplitFolds, ValidationBlocks
from tests.edl.sources.test_source import fill
from tests.mariadb import Server
from tests.postgresql import Server as PostgreSQL

ROWS = 1000


def rows() -> pa.Table:
    """500 days with two rows each, 40 patients, classes of 900, 98 and 2 rows."""
    n = np.arange(ROWS)
    days = [dt.date(2023, 1, 1) + dt.timedelta(days=int(i) // 2) for i in n]
    return pa.table(
        {
            "n": n,
            "day": days,
            "patient": [f"p{i * 7 % 40}" for i in n],
            "y": np.select([n < 900, n < 998], [0, 1], 2),
        }
    )


def split(
    source: Source, folder: Path, how: Split, query: str = "SELECT * FROM t", seed: int = 1
) -> tuple[pa.Table, pa.Table]:
    """Training rows and validation rows."""
    pinned = source.pin(query, folder, seed=seed, shuffle=True, split=how)
    assert pinned.validation is not None
    reader = open_reader(pinned, folder)
    table = pa.Table.from_batches(reader.read(0, pinned.rows), reader.schema)
    training = pinned.rows - pinned.validation
    return table.slice(0, training), table.slice(training)


@pytest.mark.soak
def test_validation_rows_by_time_are_the_latest(any_source: Source, tmp_path: Path) -> None:
    fill(any_source, "t", rows())
    training, validation = split(any_source, tmp_path, Split("time", "day"))
    assert sorted(validation["n"].to_pylist()) == list(range(900, 1000))
    assert training["n"].to_pylist() != sorted(training["n"].to_pylist())


@pytest.mark.soak
def test_rows_of_one_time_are_on_one_side_and_rows_without_a_time_are_training_rows(
    any_source: Source, tmp_path: Path
) -> None:
    table = pa.table({"n": range(100), "hour": [None] * 40 + [1] * 40 + [2] * 15 + [3] * 5})
    fill(any_source, "t", table)
    for fraction, least in ((0.05, 95), (0.09, 95), (0.14, 80), (0.5, 40), (0.9, 40)):
        _, validation = split(any_source, tmp_path, Split("time", "hour", fraction))
        assert sorted(validation["n"].to_pylist()) == list(range(least, 100)), fraction


def test_rows_of_a_group_are_on_one_side(any_source: Source, tmp_path: Path) -> None:
    fill(any_source, "t", rows())
    training, validation = split(any_source, tmp_path, Split("group", "patient"))
    patients = set(validation["patient"].to_pylist())
    assert len(patients) == 4
    assert not patients & set(training["patient"].to_pylist())
    _, others = split(any_source, tmp_path, Split("group", "patient"), seed=2)
    assert set(others["patient"].to_pylist()) != patients


@pytest.mark.soak
def test_a_group_larger_than_the_fraction_is_taken_only_if_all_are(
    any_source: Source, tmp_path: Path
) -> None:
    fill(any_source, "t", pa.table({"n": range(100), "g": [0] * 60 + [1 + i // 2 for i in range(40)]}))
    for seed in range(3):
        _, validation = split(any_source, tmp_path, Split("group", "g"), seed=seed)
        assert validation.num_rows == 10
    _, validation = split(any_source, tmp_path, Split("group", "k"), "SELECT n, n % 2 AS k FROM t")
    assert validation.num_rows == 50
    _, validation = split(any_source, tmp_path, Split("group", "k"), "SELECT n, 1 AS k FROM t")
    assert validation.num_rows == 0


def test_marked_rows_are_the_validation_rows(any_source: Source, tmp_path: Path) -> None:
    """A mark is a boolean or a number, and a row without one is validated on, as in BigQuery ML."""
    table = pa.table({"n": range(9), "mark": [True, False, None] * 3, "few": [1, 0, 0, 0, None, 0, 0, 0, 0]})
    fill(any_source, "t", table)
    for column, wanted in (("mark", [0, 2, 3, 5, 6, 8]), ("few", [0, 4])):
        training, validation = split(any_source, tmp_path, Split("column", column))
        assert sorted(validation["n"].to_pylist()) == wanted
        assert sorted(training["n"].to_pylist()) == sorted({*range(9)} - {*wanted})


@pytest.mark.soak
def test_each_class_has_its_share_of_stratified_rows_and_one_of_two(
    any_source: Source, tmp_path: Path
) -> None:
    fill(any_source, "t", rows())
    _, validation = split(any_source, tmp_path, Split("stratified", "y"))
    found = {
        each["values"]: each["counts"] for each in validation["y"].combine_chunks().value_counts().to_pylist()
    }
    assert found == {0: 90, 1: 10, 2: 1}


@pytest.mark.soak
def test_equal_rows_are_on_one_side(any_source: Source, tmp_path: Path) -> None:
    fill(any_source, "t", pa.table({"n": [i % 100 for i in range(500)], "y": [i % 2 for i in range(500)]}))
    for how in (Split("random"), Split("stratified", "y")):
        training, validation = split(any_source, tmp_path, how)
        assert validation.num_rows == 50
        assert not set(validation["n"].to_pylist()) & set(training["n"].to_pylist())


@pytest.mark.soak
def test_equal_rows_of_few_values_are_observations_of_their_own(any_source: Source, tmp_path: Path) -> None:
    fill(any_source, "t", pa.table({"n": [i % 5 for i in range(200)], "y": [i % 2 for i in range(200)]}))
    for label in ("", "y"):
        training, validation = split(any_source, tmp_path, Split("random", label))
        assert validation.num_rows == 20
        assert set(training["n"].to_pylist()) == set(range(5))


@pytest.mark.soak
def test_equal_rows_are_observations_of_their_own_where_labels_differ(
    any_source: Source, tmp_path: Path
) -> None:
    """A category of 60 values says nothing of the label: each value has rows of both classes on both sides."""
    drawn = np.random.default_rng(1)
    fill(any_source, "t", pa.table({"n": drawn.integers(60, size=600), "y": drawn.integers(2, size=600)}))
    for how in (Split("stratified", "y"), Split("random", "y")):
        training, validation = split(any_source, tmp_path, how)
        assert validation.num_rows == 60
        pairs = [{tuple(row.values()) for row in part.to_pylist()} for part in (training, validation)]
        assert len(pairs[0] & pairs[1]) > 30


@pytest.mark.soak
def test_a_class_of_equal_rows_is_validated_too(any_source: Source, tmp_path: Path) -> None:
    """A third of the rows are NULL and of one class; all others differ."""
    n = [i if i % 3 else None for i in range(900)]
    fill(
        any_source, "t", pa.table({"n": pa.array(n, pa.int64()), "y": [int(i % 3 == 0) for i in range(900)]})
    )
    _, validation = split(any_source, tmp_path, Split("stratified", "y"))
    assert np.bincount(validation["y"].to_numpy()).tolist() == [60, 30]


@pytest.mark.soak
def test_copies_stay_on_one_side_though_some_labels_differ(any_source: Source, tmp_path: Path) -> None:
    """500 rows, each five times, of which 20 were given both labels."""
    n = np.repeat(np.arange(500), 5)
    y = np.where(np.arange(2500) < 100, np.arange(2500) % 2, n % 2)
    fill(any_source, "t", pa.table({"n": n, "y": y}))
    for how in (Split("random", "y"), Split("stratified", "y")):
        training, validation = split(any_source, tmp_path, how)
        once = [set(part["n"].to_pylist()) - set(range(20)) for part in (training, validation)]
        assert once[0].isdisjoint(once[1])


@pytest.mark.soak
def test_few_rows_are_not_split(any_source: Source, tmp_path: Path) -> None:
    fill(any_source, "t", pa.table({"n": range(20)}))
    for count, wanted in ((0, 0), (1, 0), (19, 0), (20, 2)):
        how = Split("random", fewest=20)
        _, validation = split(any_source, tmp_path, how, f"SELECT n FROM t WHERE n < {count}")
        assert validation.num_rows == wanted


@pytest.mark.soak
def test_training_rows_keep_the_order_that_they_have_without_a_split(
    any_source: Source, tmp_path: Path
) -> None:
    fill(any_source, "t", rows())
    pinned = any_source.pin("SELECT * FROM t", tmp_path / "whole", seed=1, shuffle=True)
    whole = [
        n
        for batch in open_reader(pinned, tmp_path / "whole").read(0, ROWS, ["n"])
        for n in batch["n"].to_pylist()
    ]
    training, validation = split(any_source, tmp_path, Split("time", "day"))
    assert pinned.validation is None
    assert training["n"].to_pylist() == [n for n in whole if n < 900]
    assert validation["n"].to_pylist() == [n for n in whole if n >= 900]


def find_blocks(
    source: Source, folder: Path, how: Split
) -> tuple[pa.Table, ValidationBlocks, list[pa.Table]]:
    """All rows in their order, the blocks, and the rows of each block."""
    pinned = source.pin("SELECT * FROM t", folder, seed=1, shuffle=True, split=how)
    reader = open_reader(pinned, folder)
    table = pa.Table.from_batches(reader.read(0, pinned.rows), reader.schema)
    assert pinned.blocks
    found = [
        table.slice(start, end - start)
        for start, end in map(pinned.blocks.find_block, range(len(pinned.blocks.sizes)))
    ]
    return table, pinned.blocks, found


@pytest.mark.soak
def test_folds_of_groups_have_whole_groups(any_source: Source, tmp_path: Path) -> None:
    fill(any_source, "t", rows())
    table, blocks, found = find_blocks(any_source, tmp_path, Split("group", "patient", folds=SplitFolds(5)))
    patients = [set(part["patient"].to_pylist()) for part in found]
    assert sum(map(len, patients)) == len(set().union(*patients)) == 40
    assert blocks == ValidationBlocks(ROWS, (200,) * 5)
    assert sorted(table["n"].to_pylist()) == list(range(ROWS))


@pytest.mark.soak
def test_folds_of_classes_have_the_same_share_of_each(any_source: Source, tmp_path: Path) -> None:
    fill(any_source, "t", rows())
    how = Split("stratified", "y", folds=SplitFolds(5, test=0.1))
    table, blocks, found = find_blocks(any_source, tmp_path, how)
    assert blocks.rows == 899
    assert np.bincount(table.slice(899)["y"].to_numpy()).tolist() == [90, 10, 1]
    for part in found:
        counts = np.bincount(part["y"].to_numpy(), minlength=3)
        assert counts[0] in (161, 162, 163)
        assert counts[1] in (17, 18)


@pytest.mark.soak
def test_folds_by_time_are_one_after_another(any_source: Source, tmp_path: Path) -> None:
    fill(any_source, "t", rows())
    table, blocks, found = find_blocks(any_source, tmp_path, Split("time", "day", folds=SplitFolds(4)))
    assert blocks == ValidationBlocks(ROWS, (200,) * 4, is_forward=True)
    for number, part in enumerate(found):
        assert sorted(part["n"].to_pylist()) == list(range(800 - 200 * number, 1000 - 200 * number))
    assert sorted(table.slice(0, 200)["n"].to_pylist()) == list(range(200))


@pytest.mark.soak
def test_equal_rows_are_in_one_fold(any_source: Source, tmp_path: Path) -> None:
    fill(any_source, "t", pa.table({"n": [i % 100 for i in range(500)], "y": [i % 2 for i in range(500)]}))
    for number, how in enumerate((Split("random"), Split("stratified", "y"))):
        folded = Split(how.by, how.column, folds=SplitFolds(5))
        _, blocks, found = find_blocks(any_source, tmp_path / str(number), folded)
        assert blocks.sizes == (100,) * 5
        values = [set(part["n"].to_pylist()) for part in found]
        assert sum(map(len, values)) == 100


HOW = (
    Split("random"),
    Split("time", "day"),
    Split("group", "patient"),
    Split("group", "y"),
    Split("stratified", "y"),
    Split("random", folds=SplitFolds(3)),
    Split("group", "patient", folds=SplitFolds(4, test=0.2, label="y")),
    Split("time", "day", folds=SplitFolds(5, gap=3.5)),
)


@pytest.mark.soak
def test_a_split_is_the_same_whatever_the_source(
    tmp_path: Path, mariadb: Server, postgresql: PostgreSQL
) -> None:
    found = []
    for number, url in enumerate(("duckdb:", "sqlite:", mariadb.url(), postgresql.url())):
        with connect(url) as source:
            fill(source, "t", rows().take(np.random.default_rng(number).permutation(ROWS)))
            found.append([split(source, tmp_path / f"{number}-{i}", how) for i, how in enumerate(HOW)])
    for others in found[1:]:
        for how, parts, first in zip(HOW, others, found[0], strict=True):
            for part, wanted in zip(parts, first, strict=True):
                assert part.equals(wanted.cast(part.schema)), how


def test_a_source_is_freed_when_its_rows_find_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned, "RESERVE", 1 << 60)
    source = connect("duckdb:")
    source.execute("CREATE TABLE t AS SELECT 1 AS y")
    freed = weakref.ref(source)
    with pytest.raises(SourceError, match="is full"):
        source.pin("SELECT * FROM t", tmp_path, seed=1, shuffle=True, split=Split("stratified", "y"))
    source.close()
    del source
    gc.collect()
    assert freed() is None
