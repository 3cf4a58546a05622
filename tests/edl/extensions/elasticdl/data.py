"""Files for the modules of tests/fixtures/elasticdl_zoo."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from edl.data.recordio import RecordWriter

ZOO = Path(__file__).parents[3] / "fixtures" / "elasticdl_zoo"


def write_examples(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write RecordIO of `tf.train.Example`s: lists of whole numbers and of fractions."""
    with RecordWriter(path) as writer:
        for row in rows:
            features = {name: _feature(np.ravel(values)) for name, values in row.items()}
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def _feature(values: Any) -> Any:
    if values.dtype.kind == "i":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def write_stripes(path: Path, rows: int) -> None:
    """Write images 8 × 8 with a bright stripe of two lines at one of four places."""
    numbers = np.random.default_rng(rows)
    labels = numbers.integers(4, size=rows)
    images = numbers.uniform(0, 40, size=(rows, 8, 8))
    for image, label in zip(images, labels, strict=True):
        image[2 * label : 2 * label + 2] += 200
    write_examples(
        path, ({"image": image, "label": label} for image, label in zip(images, labels, strict=True))
    )


def write_clicks(path: Path, rows: int) -> None:
    """Write rows of three ids; the label is told by the first."""
    numbers = np.random.default_rng(rows)
    ids = numbers.integers(1, 40, size=(rows, 3)) * 1_000_003
    write_examples(path, ({"ids": row, "label": np.int64(row[0] > 20 * 1_000_003)} for row in ids))


def write_people(path: Path, rows: int) -> None:
    """Write CSV of people: the old are rich."""
    numbers = np.random.default_rng(rows)
    lines = ["age,job,rich"]
    for _ in range(rows):
        age = int(numbers.integers(20, 70))
        lines.append(f"{age},job {numbers.integers(9)},{int(age > 45)}")
    path.write_text("\n".join(lines) + "\n")
