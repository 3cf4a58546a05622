"""Lists of ids, with weights or without, as features: from TRAIN to PREDICT, in both frameworks and all models."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from edl.errors import SQLFlowError
from tests.databases import WITHOUT_LISTS, fill
from tests.workshops import Workshop

TAGS = [[(4 * i + n) * 7919 // 13 % 40 for n in range(i % 4)] for i in range(900)]
WORTH = [sum(1 - 2 * (tag % 2) for tag in tags) for tags in TAGS]
# Even tags are worth one, odd ones minus one; `words` are the same tags as text, and `loads` have them with weights.
ITEMS = pa.table(
    {
        "tags": pa.array(TAGS, pa.list_(pa.int32())),
        "words": ["|".join(map(str, tags)) for tags in TAGS],
        "shelf": [i % 7 for i in range(900)],
        "size": [float(i % 10) for i in range(900)],
        "loads": [" ".join(f"{tag}:{1 + tag % 3}" for tag in tags) for tags in TAGS],
        "heavy": [float(sum((1 - 2 * (tag % 2)) * (1 + tag % 3) for tag in tags)) for tags in TAGS],
        "worth": [float(worth) for worth in WORTH],
        "good": [worth > 0 for worth in WORTH],
    }
)
SETTINGS = "train.epoch = 15, train.batch_size = 32, optimizer.learning_rate = 0.01"
BOTH = "EMBEDDING(CONCAT(CATEGORY_ID(shelf, 7), SEQ_CATEGORY_ID(tags, 40)) AS both, 4)"
WIDE = "EMBEDDING(both, 1) FOR wide"
MODELS = {  # model -> the selected columns, the label last, and what they become
    "DNNRegressor": ("size, loads, heavy", "size, EMBEDDING(SPARSE(loads, 40, SPACE, INT, COLON), 4)"),
    "LinearRegressor": ("shelf, words, worth", 'SEQ_CATEGORY_ID(words, 40, delimiter="|"), shelf'),
    "DeepFMClassifier": ("size, shelf, tags, good", "size, CATEGORY_ID(shelf, 7), SEQ_CATEGORY_ID(tags, 40)"),
    "DNNLinearCombinedClassifier": (
        "size, shelf, tags, good",
        f"COMBINE(size, {BOTH}) FOR deep COLUMN {WIDE}",
    ),
}


def over(workshop: Workshop, text: str) -> str:
    """The text, over the words where the database has no lists."""
    if workshop.dialect not in WITHOUT_LISTS:
        return text
    return text.replace("(tags, 40", '(words, 40, delimiter="|"').replace("tags", "words")


@pytest.fixture(scope="session")
def workshop(workshop: Workshop) -> Workshop:
    """With the items."""
    lists = workshop.dialect not in WITHOUT_LISTS
    fill(workshop.session, "items", ITEMS if lists else ITEMS.drop_columns("tags"))
    return workshop


@pytest.mark.variants(1)
@pytest.mark.parametrize("model", MODELS)
def test_what_lists_of_ids_are_worth_is_learned(workshop: Workshop, model: str) -> None:
    selected, columns = (over(workshop, text) for text in MODELS[model])
    label = selected.rpartition(" ")[2]
    settings = f"{SETTINGS}, model.members = 1" if model == "DNNRegressor" else SETTINGS
    workshop.run(
        f"SELECT {selected} FROM items TO TRAIN {model} "
        f"WITH model.framework = {workshop.framework}, {settings} COLUMN {columns} LABEL {label} INTO m",
    )
    found = workshop.rows("SELECT * FROM items TO PREDICT found.guess USING m; SELECT * FROM found")
    wanted, guess = (found[name].to_numpy(zero_copy_only=False).astype(float) for name in (label, "guess"))
    assert np.mean(abs(wanted - guess) < 0.5) > 0.9


@pytest.mark.soak
def test_lists_are_described_and_go_on_from_a_model(workshop: Workshop) -> None:
    train = over(
        workshop,
        f"SELECT tags, worth FROM items TO TRAIN DNNRegressor WITH model.framework = {workshop.framework}, epochs = 1, "
        "model.members = 1 COLUMN EMBEDDING(SEQ_CATEGORY_ID(tags, 40), 4, mean) LABEL worth {} INTO {}",
    )
    workshop.run(train.format("", "first"))
    workshop.run(train.format("USING first", "second"))
    with pytest.raises(SQLFlowError, match="first@1 has no feature"):
        workshop.run(train.format("USING first", "third").replace("40", "50"))
    [described] = workshop.run("DESCRIBE MODEL second")
    assert "embedding of list of category id, buckets 40" in str(described.to_arrow().to_pylist())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("SEQ_CATEGORY_ID(size, 40)", "SEQ_CATEGORY_ID needs lists of whole numbers"),
        ("SEQ_CATEGORY_ID(words)", "SEQ_CATEGORY_ID lacks its size"),
    ],
)
def test_what_is_no_list_is_named(workshop: Workshop, columns: str, message: str) -> None:
    with pytest.raises(SQLFlowError, match=message):
        workshop.session.compile(
            f"SELECT * FROM items TO TRAIN DNNRegressor COLUMN {columns} LABEL worth INTO bad"
        )
