"""Features of networks as columns of the query: the dense values, encodings and vectors of `edl.features.transform`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sqlglot import exp

from edl.features import Entry
from edl.features.encodings import Encoder, is_difference
from edl.frameworks.networks.network import FeatureBlock, Floats
from edl.spec import (
    Category,
    Feature,
    IsNull,
    Log,
    Normalize,
    Numeric,
    PiecewiseLinear,
    Source,
    Standardize,
    Year,
    category_of,
    is_encoding,
    source_columns,
)
from sqlflow_edl.extensions.model_sql.columns import Columns, unsupported_column_error
from sqlflow_edl.extensions.model_sql.dialects import Target
from sqlflow_edl.extensions.model_sql.expressions import (
    Expression,
    add,
    case,
    divide,
    is_null,
    logarithm,
    number,
    numbered_name,
    own_column,
    parenthesize,
    subtract,
    times,
    whole,
)
from sqlflow_edl.extensions.model_sql.stages import Stages

_LARGEST = 1e30  # of a feature, as in edl.features.transform
# x times it, less the difference to x, is x rounded to float32's 24 bits (Veltkamp, 1968)
_SPLITTER = 2.0**29 + 1


@dataclass(frozen=True)
class Value:
    """Column that is a number of the features."""

    column: exp.Column


@dataclass(frozen=True)
class Id:
    """Column of ids, which stands for as many numbers as there are ids: 1 at the id, 0 elsewhere."""

    column: exp.Column
    count: int


Item = Value | Id


class FeatureColumns:
    """Values and ids of the blocks of a network, in stages behind the columns' stages."""

    def __init__(self, target: Target, columns: Columns, stages: Stages) -> None:
        self._target = target
        self.columns = columns
        self._scaled = stages.stage("scaled")
        self._rounded = stages.stage("rounded")
        self._features = stages.stage("features")
        self._made: dict[Feature, list[Item]] = {}
        self._positions: dict[PiecewiseLinear, str] = {}

    def items(self, block: FeatureBlock) -> list[Item]:
        """Return the values and ids of a block, as many numbers together as its width."""
        result: list[Item] = []
        for feature in block.entry.features:
            if feature.is_one_hot or (block.table is None and feature.dim):
                result += self._ids(block.entry, feature)
            elif feature.dim:
                result += self._of(feature, lambda _: self._looked_up(block.entry.category, block.table))
            else:
                result += self._of(feature, self._values)
        return result

    def _of(self, feature: Feature, make: Callable[[Any], Iterator[Expression]]) -> list[Item]:
        if feature not in self._made:
            name = next(source_columns(feature))
            first = sum(map(len, self._made.values()))
            self._made[feature] = [
                Value(self._features.add(numbered_name("x", first + place, name), value))
                for place, value in enumerate(make(feature))
            ]
        return self._made[feature]

    def _ids(self, entry: Entry, feature: Feature) -> list[Item]:
        if entry.kind != "category":
            raise unsupported_column_error(category_of(feature), tuple(source_columns(feature)))
        return [Id(self.columns.id(entry.category), entry.num_ids)]

    def _looked_up(self, category: Category, table: Floats | None) -> Iterator[Expression]:
        """Yield the columns of a table by id, (ids, width)."""
        if table is None:
            raise TypeError("an embedding without its vectors")
        of = self.columns.id(category)
        for values in table.T.tolist():
            yield self._target.real(looked_up(of, values))

    def _values(self, feature: Feature) -> Iterator[Expression]:
        if is_encoding(feature):
            if is_difference(feature):
                raise unsupported_column_error(feature, tuple(source_columns(feature)))
            table = Encoder(feature).table()
            yield from self._looked_up(feature.category, table.astype(np.float32).astype(np.float64))
        elif type(feature) in VALUES:
            yield from VALUES[type(feature)](self, feature)
        else:
            raise unsupported_column_error(feature, tuple(source_columns(feature)))

    # Numbers -------------------------------------------------------------------------------------------------

    def _numeric(self, feature: Numeric) -> Expression:
        return self._shift_number(feature.column, feature.mean, 0.0, 1.0)

    def _standardize(self, feature: Standardize) -> Expression:
        if not feature.std:
            return number(0)
        if not feature.limit:
            return self._shift_number(feature.column, feature.mean, feature.mean, feature.std)
        # A number becomes 0 in PREDICT if its square overflows.
        most = min(feature.limit * np.sqrt(sys.float_info.max), sys.float_info.max)
        shifted = self._shift_number(feature.column, feature.mean, feature.mean, feature.std, 0.0, most)
        scaled = self._scaled.add(numbered_name("z", len(self._scaled.columns), str(feature.column)), shifted)
        part = divide(scaled, number(feature.limit))
        root = exp.Sqrt(this=add(number(1), times(parenthesize(part), parenthesize(part.copy()))))
        limited = divide(scaled.copy(), root)
        if np.isfinite(self.columns.reach(feature.column)):
            return limited
        is_tiny = exp.LT(this=exp.Abs(this=scaled.copy()), expression=number(1e-100))  # its square underflows
        return case([(is_tiny, scaled.copy())], limited)

    def _normalize(self, feature: Normalize) -> Expression:
        if feature.max == feature.min:
            return number(0)
        return self._shift_number(feature.column, feature.mean, feature.min, feature.max - feature.min)

    def _year(self, feature: Year) -> Expression:
        if not feature.std:
            return number(0)
        year = exp.cast(self.columns.part(feature.column, "year"), exp.DataType.Type.DOUBLE)
        shifted = divide(parenthesize(subtract(year, number(feature.mean))), number(feature.std))
        return exp.Coalesce(this=shifted, expressions=[number(0)])

    def _is_null(self, feature: IsNull) -> Expression:
        return case([(is_null(self.columns.number(feature.column)), number(1))], number(0))

    def _log(self, feature: Log) -> Expression:
        value = self.columns.number(feature.column)
        has_one = exp.GT(this=value, expression=number(-1))
        return case([(has_one, logarithm(add(number(1), value.copy())))], number(np.log1p(feature.mean)))

    def _shift_number(
        self,
        column: Source,
        mean: float,
        by: float,
        scale: float,
        beyond: float = _LARGEST,
        most: float = _LARGEST,
    ) -> Expression:
        """Return (x - by) / scale of the column's number x, of `mean` for NULL.

        It is ±`beyond` where it would exceed ±`most`.
        """
        value, reach = self.columns.number(column), self.columns.reach(column)
        low, high = by - scale * most, by + scale * most
        branches = [(is_null(value), number((mean - by) / scale))]
        if -reach < low:
            branches.append((exp.LT(this=value.copy(), expression=number(low)), number(-beyond)))
        if high < reach:
            branches.append((exp.GT(this=value.copy(), expression=number(high)), number(beyond)))
        shifted: Expression = value.copy()
        if by:
            shifted = (
                parenthesize(subtract(shifted, number(by))) if scale != 1 else subtract(shifted, number(by))
            )
        return case(branches, divide(shifted, number(scale)) if scale != 1 else shifted)

    def _bins(self, feature: PiecewiseLinear) -> Iterator[Expression]:
        """Yield the encodings of a position among the boundaries, which is rounded to float32 as in PREDICT."""
        position = self._position(feature)
        for first in range(-int(feature.nulls), feature.bins):
            shifted = subtract(position.copy(), number(first)) if first else position.copy()
            yield case(
                [
                    (exp.GTE(this=position.copy(), expression=number(first + 1)), number(1)),
                    (exp.GT(this=position.copy(), expression=number(first)), shifted),
                ],
                number(0),
            )

    def _position(self, feature: PiecewiseLinear) -> exp.Column:
        if feature not in self._positions:
            value, bounds = self.columns.number(feature.column), feature.boundaries
            missing = number(-1.0 if feature.nulls else feature.bins / 2)
            branches = [
                (is_null(value), missing),
                (exp.LTE(this=value.copy(), expression=number(bounds[0])), number(0)),
            ]
            for place, (low, high) in enumerate(pairwise(bounds)):
                part = times(parenthesize(subtract(value.copy(), number(low))), number(1 / (high - low)))
                inside = add(part, number(place)) if place else part
                branches.append((exp.LT(this=value.copy(), expression=number(high)), inside))
            name = numbered_name("p", len(self._positions), str(feature.column))
            exact = self._scaled.add(name, case(branches, number(feature.bins)))
            split = times(exact, number(_SPLITTER))
            rest = parenthesize(subtract(split.copy(), exact.copy()))
            self._rounded.add(f"r{name[1:]}", subtract(split, rest))
            self._positions[feature] = f"r{name[1:]}"
        return own_column(self._positions[feature])


def _alone(
    make: Callable[[FeatureColumns, Any], Expression],
) -> Callable[[FeatureColumns, Any], Iterable[Expression]]:
    return lambda columns, feature: (make(columns, feature),)


VALUES: Mapping[type, Callable[[FeatureColumns, Any], Iterable[Expression]]] = {
    Numeric: _alone(FeatureColumns._numeric),
    Standardize: _alone(FeatureColumns._standardize),
    Normalize: _alone(FeatureColumns._normalize),
    Year: _alone(FeatureColumns._year),
    Log: _alone(FeatureColumns._log),
    IsNull: _alone(FeatureColumns._is_null),
    PiecewiseLinear: FeatureColumns._bins,
}


def looked_up(ids: exp.Column, values: Sequence[float]) -> Expression:
    """Return the value of each id; the last is also the value of NULL."""
    branches = [(whole(place), number(value)) for place, value in enumerate(values[:-1])]
    return case(branches, number(values[-1]), ids.copy()) if branches else number(values[-1])


def widths(items: list[Item]) -> int:
    """Return how many numbers the items are."""
    return sum(item.count if isinstance(item, Id) else 1 for item in items)
