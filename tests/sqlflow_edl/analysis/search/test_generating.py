"""Generated features: what is found in made tables, and what is left alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sqlflow_edl.analysis.search.generating import (
    BUCKETS,
    CROSS,
    GROUP_DIFFERENCE,
    MOST,
    MOST_CHARACTERS,
    NGRAMS,
    VOCABULARIZE,
    WORDS,
    Generated,
    GeneratedFeature,
    generate_features,
)

rng = np.random.default_rng(3)
COUNT = 2000
PRICE, AREA, NOISE = (rng.uniform(1, 10, COUNT) for _ in range(3))
CITY, KIND = rng.choice(list("abcd"), COUNT), rng.choice(list("xyz"), COUNT)


def generate(
    label: object, names: str = "price area noise city kind id", **more: object
) -> tuple[GeneratedFeature, ...]:
    """Return the features of pairs."""
    return generate_all(label, names, **more).pairs


def generate_all(
    label: object, names: str = "price area noise city kind id", count: int = 0, **more: object
) -> Generated:
    columns = {
        "price": PRICE,
        "area": AREA,
        "noise": NOISE,
        "city": CITY,
        "kind": KIND,
        "id": np.arange(COUNT),
    }
    rows = pa.table({**columns, **more, "label": label})
    return generate_features(rows, "label", names.split(), count)


@pytest.mark.parametrize(
    ("operator", "label"),
    [
        ("/", PRICE / AREA),
        ("-", np.sin(PRICE - AREA)),
        ("*", np.cos(PRICE * AREA / 10)),
        ("/", PRICE / AREA > 1.2),
    ],
)
def test_the_operator_behind_a_label_is_found(operator: str, label: np.ndarray) -> None:
    found = generate(label if label.dtype == bool else label + 0.05 * rng.normal(size=COUNT))
    assert found[0].operator == operator
    assert {found[0].first, found[0].second} == {"price", "area"}


def test_a_pair_of_categories_is_found_with_room_for_its_values() -> None:
    same = (CITY == "a") == (KIND == "x")
    first, *_ = generate(same + 0.3 * rng.normal(size=COUNT))
    assert (first.operator, {first.first, first.second}) == (CROSS, {"city", "kind"})
    assert first.size == 128  # of 12 pairs


@pytest.mark.parametrize(
    "label",
    [
        rng.normal(size=COUNT),  # of chance
        PRICE - np.log(AREA) + (CITY == "b") + 2 * rng.normal(size=COUNT),  # of each column alone
        np.ones(COUNT),
    ],
)
def test_nothing_is_generated_where_pairs_tell_no_more_than_columns(label: np.ndarray) -> None:
    assert generate_all(label) == Generated()


def test_few_rows_are_left_alone() -> None:
    rows = pa.table({"price": PRICE, "area": AREA, "label": PRICE / AREA}).slice(0, 400)
    assert generate_features(rows, "label", ["price", "area"]) == Generated()


def test_cells_without_a_number_and_labels_without_a_value_do_no_harm() -> None:
    gaps = pa.array([None if number % 7 == 0 else value for number, value in enumerate(PRICE)])
    label = pa.array([None if number % 5 == 0 else value for number, value in enumerate(PRICE / AREA)])
    assert generate(label, price=gaps)[0].operator == "/"


def test_columns_of_many_values_and_ids_are_in_no_pair() -> None:
    names = [str(number) for number in range(COUNT)]
    label = np.where(np.arange(COUNT) < 1000, PRICE, -PRICE)
    assert all("id" not in feature for feature in generate(label, "price id", id=np.arange(COUNT)))
    assert generate(label, "price name", name=names) == ()


def test_there_are_at_most_a_few_and_no_column_is_in_many() -> None:
    label = sum(np.sin(3 * a * b) for a, b in ((PRICE, AREA), (PRICE, NOISE), (AREA, NOISE)))
    found = generate(label)
    assert len(found) <= MOST
    assert len({frozenset((feature.first, feature.second)) for feature in found}) == len(found)


def test_a_number_that_is_large_for_its_category_is_found() -> None:
    usual = np.select([CITY == "a", CITY == "b", CITY == "c"], [0.0, 40.0, 80.0], 120.0)
    price = usual + PRICE
    found = generate(np.sin(PRICE) + 0.1 * NOISE, price=price)
    assert found[0] == GeneratedFeature(GROUP_DIFFERENCE, "price", "city")


def test_the_time_between_two_times_is_found_but_none_between_times_of_which_one_has_a_zone() -> None:
    ordered = (rng.uniform(0, 1e7, COUNT) + 1.7e9).astype("datetime64[s]")
    delivered = ordered + rng.integers(1, 90, COUNT).astype("timedelta64[h]")
    label = (delivered - ordered).astype(float) / 3600 + rng.normal(size=COUNT)
    assert generate(label, "ordered delivered price", ordered=ordered, delivered=delivered)[0] in (
        GeneratedFeature("-", "ordered", "delivered"),
        GeneratedFeature("-", "delivered", "ordered"),
    )
    in_zone = pa.array(delivered).cast(pa.timestamp("s", "Europe/Berlin"))
    assert generate(label, "ordered delivered", ordered=ordered, delivered=in_zone) == ()


VERBS = rng.choice(["struck", "missed", "saw", "hit"], COUNT)
REMARKS = [
    f"{verb} a bird {number} {' '.join(rng.choice(['near', 'the', 'runway', 'engine'], 3))}"
    for number, verb in enumerate(VERBS)
]


def test_the_words_of_a_text_are_found_where_they_tell_of_the_label() -> None:
    told = (VERBS == "struck") + 0.3 * rng.normal(size=COUNT)
    found = generate_all(told, "price remarks", remarks=REMARKS)
    assert found.of_texts == (GeneratedFeature(VOCABULARIZE, "remarks", size=WORDS),)
    assert generate_all(NOISE, "price remarks", remarks=REMARKS).of_texts == ()


def test_a_text_that_repeats_stays_a_category_beside_its_words() -> None:
    titles = [f"{verb} bird {number % 150}" for number, verb in enumerate(VERBS)]
    told = (VERBS == "struck") + 0.3 * rng.normal(size=COUNT)
    found = generate_all(told, "price titles", titles=titles)
    assert found.of_texts == (GeneratedFeature(VOCABULARIZE, "titles", "titles", WORDS),)


def test_fewer_words_are_told_apart_of_many_rows() -> None:
    told = VERBS == "struck"
    [words] = generate_all(told, "price remarks", count=4_000_000, remarks=REMARKS).of_texts
    assert words.size == 10
    assert generate_all(told, "price remarks", count=10**9, remarks=REMARKS).of_texts == ()


def test_texts_of_few_values_are_left_alone() -> None:
    few = [f"the {city} of all" for city in CITY]
    gaps = [None if number % 2 else text for number, text in enumerate(few)]
    assert generate_all(CITY == "a", "price few gaps", few=few, gaps=gaps).of_texts == ()


def test_the_characters_of_a_code_are_found_where_they_tell_of_the_label() -> None:
    codes = [f"{city}-{number * 7919 % 10_000:04}" for number, city in enumerate(CITY)]
    told = (CITY == "a") + 0.3 * rng.normal(size=COUNT)
    found = generate_all(told, "price code", code=codes)
    assert found.of_texts == (GeneratedFeature(NGRAMS, "code", size=BUCKETS),)
    assert generate_all(NOISE, "price code", code=codes).of_texts == ()
    long = [f"{code}{'x' * MOST_CHARACTERS}" for code in codes]
    assert generate_all(told, "price code", code=long).of_texts == ()


def test_a_pair_that_decides_the_label_is_strong() -> None:
    assert generate_all(np.sin(PRICE - AREA)).is_strong
    assert not generate_all(PRICE + 0.2 * PRICE / AREA + rng.normal(size=COUNT)).is_strong
