"""Check of columns that name an entity with several rows, such as a patient or a machine.

If the label depends on the entity, rows drawn at random tell a model of each entity in the validation rows, and its
metrics hold for new rows of known entities only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from edl import spec
from sqlflow_edl.analysis.checks.predictors import Score
from sqlflow_edl.analysis.checks.warning import ID_NAMES, DataWarning

FEWEST = 20  # different entities; of fewer, each is a category that new rows have, too
FEWEST_ROWS = 2.0  # of an entity, in the mean
LEAST_SCORE = 0.2  # of the column alone; below, metrics hardly change
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
# Words of a column's name; a plural counts too.
_ENTITIES = frozenset(
    (
        *("account", "client", "customer", "household", "member", "participant", "patient", "person", "user"),
        *(
            "donor",
            "driver",
            "employee",
            "player",
            "pupil",
            "student",
            "subject",
            "teacher",
            "voter",
            "worker",
        ),
        *("branch", "clinic", "farm", "hospital", "property", "school", "shop", "site", "station", "store"),
        *("company", "firm", "merchant", "seller", "supplier", "vendor"),
        *("animal", "device", "engine", "machine", "sensor", "truck", "vehicle"),
    )
)


def names_entity(column: str) -> bool:
    """Return True if the first or last word of a column's name is an entity's, or the last one an id's."""
    words = [word.casefold() for word in _WORDS.findall(column)]
    ends = {word for end in (*words[:1], *words[-1:]) for word in (end, end.removesuffix("s"))}
    return not ends.isdisjoint(_ENTITIES) or (len(words) > 1 and words[-1] in ID_NAMES)


def similar_groups(column: str, values: Iterable[object]) -> Iterator[DataWarning]:
    """Yield a warning about texts of a split into groups that differ by case and spaces only.

    They may name one entity, which then has rows on both sides of the split.
    """
    spellings: dict[str, list[str]] = {}
    for value in values:
        if isinstance(value, str):
            spellings.setdefault(" ".join(value.casefold().split()), []).append(value)
    several = [texts for texts in spellings.values() if len(texts) > 1]
    if several:
        first = " and ".join(repr(text) for text in several[0][:2])
        yield DataWarning(
            column,
            f"{sum(map(len, several)):,} values of {column} differ from others by case and spaces only, such as "
            f"{first}, and are groups of their own, whose rows train and validate the model",
            f"select one spelling: lower(trim({column})) AS {column}",
        )


def repeated_entities(
    label: str, rows: int, scores: Iterable[Score], split: spec.Split | None
) -> Iterator[DataWarning]:
    """Yield a warning about the entity that tells the label best, if rows are drawn at random.

    rows: number of training rows. scores: of columns that are not left out of the rows.
    """
    if split is None or split.by not in ("random", "stratified"):
        return
    found = [
        score
        for score in scores
        if score.kind == "predictor"
        and score.score >= LEAST_SCORE
        and 0 < score.repeats <= 1 / FEWEST
        and rows * score.repeats >= FEWEST_ROWS
        and names_entity(score.column)
    ]
    if not found:
        return
    best = max(found, key=lambda score: score.score)
    name = best.column
    yield DataWarning(
        name,
        f"{name} has about {max(2, round(rows * best.repeats)):,} rows for each of its values, of which some train and "
        f"some validate the model, and it alone tells {label} (score {best.score:.2f} of 1)",
        f"if the rows to predict have other values of it, write validation.split = group, validation.column = {name}",
    )
