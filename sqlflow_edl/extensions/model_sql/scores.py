"""Outputs of a model as the columns of PREDICT: the number, or the class with its probabilities."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from edl.frameworks.trees.objectives import Link
from edl.spec import JobSpec, Label, label_offset
from sqlflow_edl.extensions.model_sql.dialects import Target
from sqlflow_edl.extensions.model_sql.expressions import (
    Expression,
    add,
    case,
    clamp_exponent,
    divide,
    function,
    logarithm,
    number,
    own_column,
    parenthesize,
    power_of_e,
    subtract,
    sum_terms,
    whole,
)
from sqlflow_edl.extensions.model_sql.networks import Outputs, sigmoid
from sqlflow_edl.extensions.model_sql.stages import Stages

_SMALLEST = 2.2250738585072014e-308  # probability in place of 0, before its logarithm


class Scores:
    """Columns that PREDICT adds, in stages behind the outputs."""

    def __init__(self, target: Target, spec: JobSpec, link: Link, stages: Stages) -> None:
        self._target = target
        self._spec = spec
        self._link = link
        self._stages = stages

    def columns(self, outputs: Outputs) -> list[Expression]:
        """Return the predicted value, and of classes the probability of the predicted one and of each."""
        label = self._spec.label
        if not label.has_classes:
            return [self._number(outputs)]
        means = self._probabilities(outputs)
        chosen = self._stages.stage("chosen")
        largest = chosen.add("top", self._greatest(means))
        value, probability = self._decide_class(label, means, largest)
        return [value, probability, *means]

    def _number(self, outputs: Outputs) -> Expression:
        parts = [row[0] for row in outputs]
        if self._link == "log":
            return power_of_e(clamp_exponent(lambda: own_column(parts[0].name)))
        offset = label_offset(self._spec.label)
        return add(self._mean(parts), number(offset)) if offset else self._mean(parts)

    def _mean(self, parts: Sequence[exp.Column]) -> Expression:
        if len(parts) == 1:
            return parts[0].copy()
        return divide(parenthesize(sum_terms([part.copy() for part in parts])), number(len(parts)))

    # Probabilities -------------------------------------------------------------------------------------------

    def _probabilities(self, outputs: Outputs) -> list[exp.Column]:
        """Return the probabilities of the classes: the mean over the members, at the temperature of the model."""
        temperature = self._spec.temperature
        if len(outputs) == 1 and temperature != 1:
            cooled = self._stages.stage("cooled")
            outputs = [
                [
                    cooled.add(f"z{n}", divide(logit.copy(), number(temperature)))
                    for n, logit in enumerate(outputs[0])
                ]
            ]
        by_member = self._members(outputs)
        if len(by_member) == 1:
            return by_member[0]
        means = self._stages.stage("means")
        columns = [
            means.add(f"a{place}", self._mean([row[place] for row in by_member]))
            for place in range(len(by_member[0]))
        ]
        if temperature == 1:
            return columns
        cooled = self._stages.stage("cooled")
        logits = [cooled.add(f"z{n}", self._logit(column, temperature)) for n, column in enumerate(columns)]
        return self._softmax([logits], "cooled_")[0]

    def _logit(self, probability: exp.Column, temperature: float) -> Expression:
        return divide(
            logarithm(function(self._target.greatest, probability.copy(), number(_SMALLEST))),
            number(temperature),
        )

    def _members(self, outputs: Outputs) -> list[list[exp.Column]]:
        if len(outputs[0]) > 1:
            return self._softmax(outputs)
        second, both = self._stages.stage("sigmoids"), self._stages.stage("probabilities")
        members = []
        for member, (logit,) in enumerate(outputs):
            suffix = f"_m{member}" if len(outputs) > 1 else ""
            yes = second.add(f"q1{suffix}", sigmoid(logit.name))
            no = both.add(f"p0{suffix}", subtract(number(1), yes.copy()))
            members.append([no, both.add(f"p1{suffix}", yes.copy())])
        return members

    def _softmax(self, outputs: Outputs, prefix: str = "") -> list[list[exp.Column]]:
        tops, powers = self._stages.stage(f"{prefix}tops"), self._stages.stage(f"{prefix}powers")
        sums, shares = self._stages.stage(f"{prefix}totals"), self._stages.stage(f"{prefix}probabilities")
        letter = prefix[:1]
        rows_of_shares = []
        for member, row in enumerate(outputs):
            suffix = f"_m{member}" if len(outputs) > 1 else ""
            top = tops.add(f"{letter}top{suffix}", self._greatest(row))
            terms = [
                powers.add(f"{letter}e{place}{suffix}", self._power(logit, top))
                for place, logit in enumerate(row)
            ]
            added = sums.add(f"{letter}total{suffix}", sum_terms([term.copy() for term in terms]))
            rows_of_shares.append(
                [
                    shares.add(f"{letter}p{place}{suffix}", divide(term.copy(), added.copy()))
                    for place, term in enumerate(terms)
                ]
            )
        return rows_of_shares

    def _power(self, logit: exp.Column, top: exp.Column) -> Expression:
        return power_of_e(function(self._target.greatest, subtract(logit.copy(), top.copy()), number(-700)))

    def _greatest(self, columns: Sequence[exp.Column]) -> Expression:
        return function(self._target.greatest, *(column.copy() for column in columns))

    # Classes -------------------------------------------------------------------------------------------------

    def _decide_class(
        self, label: Label, means: Sequence[exp.Column], top: exp.Column
    ) -> tuple[Expression, Expression]:
        """Return the predicted class, the first of equals, and its probability."""
        values = [self._value(class_) for class_ in label.classes]
        threshold = self._spec.threshold
        if label.is_binary and threshold is not None:
            is_second = exp.GTE(this=means[1].copy(), expression=number(threshold))
            return (
                case([(is_second, values[1])], values[0]),
                case([(is_second.copy(), means[1].copy())], means[0].copy()),
            )
        branches = [(mean.copy(), value) for mean, value in zip(means, values, strict=True)]
        return case(branches[:-1], values[-1], top), top.copy()

    def _value(self, value: str | bool | int) -> Expression:
        if isinstance(value, bool):
            return exp.Boolean(this=value) if self._target.truths else whole(int(value))
        return exp.Literal.string(value) if isinstance(value, str) else whole(value)
