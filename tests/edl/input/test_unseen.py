"""Known ids of training rows that a network sees as unseen values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from edl import features as fc
from edl.input.unseen import UnseenIds
from edl.ragged import Ragged
from edl.spec import Training

CITY = fc.vocabulary("city", ["oslo", "rome"], "other")  # ids 0 and 1, NULL is 2, unseen is 3
ROWS = np.arange(20_000)


def make_unseen_ids(*features: Any, rate: float = 0.25, seed: int = 7, inputs: Any = None) -> UnseenIds:
    module = SimpleNamespace(FEATURES=inputs or fc.Features(*features))
    program: Any = SimpleNamespace(
        module=module, spec=SimpleNamespace(training=Training(seed=seed, unseen_rate=rate))
    )
    return UnseenIds(program)


def test_a_share_of_the_known_ids_becomes_the_id_of_unseen_values() -> None:
    ids = ROWS % 3
    found = make_unseen_ids(fc.one_hot(CITY)).replace({"f0": ids}, 1, ROWS)["f0"]
    assert ((found == ids) | (found == 3)).all()
    assert (found == 3)[ids < 2].mean() == pytest.approx(0.25, abs=0.01)
    assert (found[ids == 2] == 2).all(), "NULL is known to be NULL"
    assert (ids == ROWS % 3).all(), "cached arrays stay"


def test_the_ids_are_a_function_of_seed_epoch_and_row_alone() -> None:
    whole = make_unseen_ids(fc.one_hot(CITY)).replace({"f0": ROWS % 3}, 4, ROWS)["f0"]
    order = np.random.default_rng(1).permutation(ROWS)
    parts = [
        make_unseen_ids(fc.one_hot(CITY)).replace({"f0": part % 3}, 4, part)["f0"]
        for part in np.array_split(order, 7)
    ]
    np.testing.assert_array_equal(np.concatenate(parts), whole[order])
    for other in ({"seed": 8}, {}):
        epoch = 4 if other else 5
        changed = make_unseen_ids(fc.one_hot(CITY), **other).replace({"f0": ROWS % 3}, epoch, ROWS)["f0"]
        assert (changed != whole).mean() > 0.2


def test_a_value_without_an_id_of_its_own_stays() -> None:
    categories = [
        fc.vocabulary("city", ["oslo", "rome"], "frequent"),
        fc.hash_bucket("city", 9),
        fc.bucket("age", [1, 2]),
        fc.weekday("day"),
    ]
    features = {f"f{place}": ROWS % 3 for place in range(4)}
    assert make_unseen_ids(*map(fc.one_hot, categories)).replace(features, 1, ROWS) is features
    assert make_unseen_ids(fc.one_hot(CITY), rate=0.0).replace(features, 1, ROWS) is features


def test_null_without_rows_in_training_is_learned_with_unseen_values() -> None:
    plain = fc.vocabulary("city", ["oslo", "rome"])
    found = make_unseen_ids(fc.one_hot(plain)).replace({"f0": ROWS % 2}, 1, ROWS)["f0"]
    assert (found == 2).mean() == pytest.approx(0.25, abs=0.01)


def test_items_of_lists_and_ids_in_sequences_are_replaced_one_by_one() -> None:
    tags = fc.list_of(fc.vocabulary("tags", ["a", "b"]))
    lists = Ragged(np.tile([0, 1], len(ROWS)), np.arange(len(ROWS) + 1) * 2)
    found = make_unseen_ids(fc.embedding(tags, 2)).replace({"f0": lists}, 1, ROWS)["f0"]
    assert (found.values == 2).mean() == pytest.approx(0.25, abs=0.01)
    pairs = (found.values.reshape(-1, 2) == 2).sum(axis=1)
    assert set(pairs.tolist()) == {0, 1, 2}
    ordered = np.column_stack([np.full(len(ROWS), 1), np.zeros(len(ROWS), np.int64)])
    shown = make_unseen_ids(fc.sequence(tags, 2)).replace({"f0": ordered}, 1, ROWS)["f0"]
    assert set(shown[:, 0].tolist()) == {1, 3}
    assert not shown[:, 1].any(), "no item is none"


def test_categories_of_one_id_space_have_unseen_ids_of_their_own() -> None:
    both = fc.concat(CITY, fc.hash_bucket("shop", 5), fc.vocabulary("team", ["x"]))  # 4 + 6 + 2 ids
    lists = Ragged(np.tile([0, 7, 10], len(ROWS)), np.arange(len(ROWS) + 1) * 3)
    found = make_unseen_ids(fc.embedding(both, 2)).replace({"f0": lists}, 1, ROWS)["f0"].values.reshape(-1, 3)
    assert [set(column.tolist()) for column in found.T] == [{0, 3}, {7}, {10, 11}]


def test_a_category_of_two_inputs_is_unseen_in_the_same_rows() -> None:
    inputs = fc.Inputs(
        wide=fc.Features(fc.one_hot(CITY)),
        deep=fc.Features(fc.embedding(CITY, 2), fc.one_hot(fc.vocabulary("team", ["x"]))),
    )
    ids = {"wide_f0": ROWS % 2, "deep_f0": ROWS % 2, "deep_f1": ROWS * 0}
    found = make_unseen_ids(inputs=inputs).replace(ids, 1, ROWS)
    np.testing.assert_array_equal(found["wide_f0"], found["deep_f0"])
    both = ((found["wide_f0"] == 3) & (found["deep_f1"] == 1)).mean()
    assert both == pytest.approx(0.25**2, abs=0.01), "another category is drawn by itself"


def test_a_program_of_other_features_is_trained_on_what_it_gives() -> None:
    program: Any = SimpleNamespace(
        module=SimpleNamespace(), spec=SimpleNamespace(training=Training(unseen_rate=0.5))
    )
    features = {"x": ROWS}
    assert UnseenIds(program).replace(features, 1, ROWS) is features
