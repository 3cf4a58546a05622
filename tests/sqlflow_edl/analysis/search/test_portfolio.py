"""Candidates of a search: which are tried, and in which order."""

from __future__ import annotations

import pytest

from sqlflow_edl.analysis.catalog import MODELS
from sqlflow_edl.analysis.search import portfolio
from sqlflow_edl.analysis.search.portfolio import PORTFOLIO, variants
from sqlflow_edl.analysis.settings.search import KINDS


@pytest.fixture(autouse=True)
def all_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "is_installed", lambda framework: True)


def test_all_are_tried_in_their_order_unless_the_statement_says_otherwise() -> None:
    assert variants((), 0) == (list(PORTFOLIO), [])
    assert variants((), 3) == (list(PORTFOLIO[:3]), [])
    assert variants((), 1000) == (list(PORTFOLIO), [])


def test_no_two_of_the_portfolio_are_the_same() -> None:
    shown = [(each.family, each.framework, *sorted(each.attributes.items())) for each in PORTFOLIO]
    assert len(set(shown)) == len(shown)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_models_has_candidates(kind: str) -> None:
    found, _ = variants([kind], 0)
    assert found
    assert all(kind in each.kinds for each in found)


def test_kinds_add_up_and_a_library_narrows_them_not() -> None:
    trees, networks, both = (
        variants(kinds, 0)[0] for kinds in (["trees"], ["networks"], ["trees", "networks"])
    )
    assert [each for each in both if each in trees] == trees
    assert len(both) == len(trees) + len(networks)
    assert variants(["trees", "lightgbm"], 0)[0] == trees


def test_libraries_that_are_not_installed_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "is_installed", lambda framework: framework == "lightgbm")
    found, missing = variants((), 0)
    assert {each.framework for each in found} == {"lightgbm"}
    assert sorted(missing) == ["torch", "xgboost"]
    assert variants(["xgboost"], 0) == ([], ["xgboost"])


def test_every_candidate_is_a_model_for_numbers_and_for_classes() -> None:
    for each in PORTFOLIO:
        for suffix in ("Regressor", "Classifier"):
            assert MODELS.find(f"{each.family}{suffix}") is not None


def test_a_short_search_tries_slow_networks_last_and_a_linear_model_early() -> None:
    tried, _ = portfolio.variants((), 0)
    arranged = portfolio.sort_by_cost(tried, 20.0)
    families = [each.family for each in arranged]
    trees = families.count("BoostedTrees")
    first = [*["BoostedTrees"] * 3, "Linear", "DNN", *["BoostedTrees"] * (trees - 3)]
    assert families[: trees + 2] == first
    assert arranged[4].is_single_network
    assert portfolio.sort_by_cost(tried, portfolio.SHORT) == tried


def test_only_a_network_has_members_to_leave_out() -> None:
    network = next(each for each in PORTFOLIO if each.family == "DNN")
    assert network.with_one_member().is_single_network
    assert not any(each.with_one_member().is_single_network for each in PORTFOLIO if each.family != "DNN")


def test_with_few_rows_small_trees_are_tried_first() -> None:
    tried = portfolio.sort_by_cost(portfolio.variants((), 0)[0], 20.0)
    places = portfolio.places_by_leaves([*tried, None], 2_000)
    arranged = [tried[place] for place in places[:-1]]
    assert sorted(places) == list(range(len(tried) + 1))
    assert [each.family for each in arranged] == [each.family for each in tried]
    assert arranged[0] is tried[0]
    assert all(8 <= each.leaves <= 16 for each in arranged[1:3])
    assert [each.generates for each in arranged] == [each.generates for each in tried]
    assert portfolio.places_by_leaves(tried, portfolio.FEW_ROWS) == list(range(len(tried)))
