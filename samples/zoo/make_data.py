"""Writes scikit-learn's digits as RecordIO and its iris as CSV: `python samples/zoo/make_data.py FOLDER`.

A record of digits is 65 bytes: the 64 pixels of an image of 8 x 8, each from 0 to 16, and the digit. The rows are in a
random order, because files are trained on as they lie: iris sorted by species would be learnt a species at a time.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_iris

from edl.data.recordio import RecordWriter

SHARDS = 3  # files of the training rows
TEST = 297  # images


def main(folder: Path) -> None:
    random = np.random.default_rng(0)
    (folder / "digits").mkdir(parents=True, exist_ok=True)
    write_digits(folder / "digits", random)
    write_iris(folder / "iris.csv", random)


def write_digits(folder: Path, random: np.random.Generator) -> None:
    pixels, digits = load_digits(return_X_y=True)
    rows = np.column_stack([pixels, digits]).astype(np.uint8)[random.permutation(len(digits))]
    parts = {"test": rows[:TEST]}
    for number, part in enumerate(np.array_split(rows[TEST:], SHARDS)):
        parts[f"train-{number}"] = part
    for name, part in parts.items():
        with RecordWriter(folder / f"{name}.recordio", compressor="gzip") as writer:
            writer.write_many(row.tobytes() for row in part)


def write_iris(file: Path, random: np.random.Generator) -> None:
    found = load_iris()
    names = ["sepal_length", "sepal_width", "petal_length", "petal_width", "species"]
    with file.open("w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target)
        writer.writerow(names)
        for row in random.permutation(len(found.target)):
            writer.writerow([*found.data[row], found.target_names[found.target[row]]])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "data"))
