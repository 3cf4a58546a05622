"""Unseen values of categories in training: some known ids of a minibatch become the id of an unseen value.

No training row has a value that training does not have, so that a network would never learn the vector or weight of
such a value. Which ids are replaced is a function of the job's seed, the epoch and the row's place in the pinned order
alone: it is the same for any number of workers, and after a training is resumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edl.features import Entry, Inputs
from edl.features import Features as FeatureColumns
from edl.features.arrays import Ints
from edl.features.hashing import Hashes, mix
from edl.program import Program
from edl.ragged import Ragged
from edl.spec import Category, num_ids, parts_of


@dataclass(frozen=True)
class _Ids:
    """Ids [first, first + size) of a category among those of an array, and the id of its unseen values."""

    first: int
    size: int
    unseen: int


class UnseenIds:
    """Replacement of known ids of the features of a program, by the share `rate` of each category's."""

    def __init__(self, program: Program) -> None:
        training = program.spec.training
        self._seed = training.seed
        self._most = np.uint64(int((training.unseen_rate or 0.0) * 2.0**64))
        features = getattr(program.module, "FEATURES", None)
        entries = features.entries if isinstance(features, FeatureColumns | Inputs) else ()
        categories: dict[Category, int] = {}  # a category of two inputs is replaced in the same rows
        self._entries: list[tuple[Entry, list[_Ids], int]] = []
        for entry in entries if training.unseen_rate else ():
            ids = list(_list_ids(entry.category, 0)) if entry.kind in ("category", "list", "sequence") else []
            if ids:
                salt = categories.setdefault(entry.category, len(categories) + 1)
                self._entries.append((entry, ids, salt))

    def replace(self, features: Any, epoch: int, rows: Ints) -> Any:
        """Return the features of training rows, by name, with ids replaced. rows: their places in the pinned order."""
        if not self._entries or not isinstance(features, dict):
            return features
        seeds = mix(np.array([self._seed, epoch], np.int64).view(np.uint64))
        hashes = mix(mix(rows.astype(np.uint64) + seeds[0]) + seeds[1])
        replaced = dict(features)
        for entry, ids, salt in self._entries:
            if entry.name in features:
                replaced[entry.name] = self._replace(
                    features[entry.name], entry, ids, mix(hashes + np.uint64(salt))
                )
        return replaced

    def _replace(self, values: Any, entry: Entry, ids: list[_Ids], hashes: Hashes) -> Any:
        if isinstance(values, Ragged):
            places = np.arange(len(values.values)) - values.offsets[values.rows]
            drawn = self._draw(mix(hashes[values.rows] + places.astype(np.uint64)))
            return Ragged(_replace_drawn(values.values, drawn, ids), values.offsets, values.weights)
        if entry.kind != "sequence":
            return _replace_drawn(values, self._draw(hashes), ids)
        drawn = self._draw(mix(hashes[:, None] + np.arange(values.shape[1]).astype(np.uint64)))
        return _replace_drawn(values - 1, drawn, ids) + 1  # 0 is no item

    def _draw(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        drawn: npt.NDArray[np.bool_] = hashes < self._most
        return drawn


def _replace_drawn(values: Ints, drawn: npt.NDArray[np.bool_], ids: list[_Ids]) -> Ints:
    replaced = values
    for of_category in ids:
        is_known = (values >= of_category.first) & (values < of_category.first + of_category.size)
        replaced = np.where(drawn & is_known, of_category.unseen, replaced)
    return replaced


def _list_ids(category: Category, first: int) -> Iterator[_Ids]:
    """Yield the ids of the categories that learn what an unseen value is. first: of the category in its array."""
    if category.made_of == "categories":
        for part in parts_of(category):
            yield from _list_ids(part, first)  # type: ignore[arg-type]  # parts of several are categories
            first += num_ids(part)  # type: ignore[arg-type]
    elif category.learns_unseen:
        yield _Ids(first, category.size, first + category.unseen_id)
