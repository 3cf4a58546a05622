"""WITH attributes of MAXIMIZE and MINIMIZE, and the sets of numbers that a variable may be taken from."""

from __future__ import annotations

from collections.abc import Mapping

from edl.extensions.optimization.spec import Domain
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow

VARIABLES, DOMAIN, TIME_LIMIT = "variables", "var_type", "solver.time_limit"

DOMAINS: Mapping[str, Domain] = {
    each.name: each
    for each in (
        Domain("Binary", 0, 1, whole=True),
        Domain("Integers", None, None, whole=True),
        Domain("PositiveIntegers", 1, None, whole=True),
        Domain("NegativeIntegers", None, -1, whole=True),
        Domain("NonNegativeIntegers", 0, None, whole=True),
        Domain("NonPositiveIntegers", None, 0, whole=True),
        Domain("Reals", None, None, whole=False),
        Domain("PositiveReals", 0, None, whole=False),
        Domain("NegativeReals", None, 0, whole=False),
        Domain("NonNegativeReals", 0, None, whole=False),
        Domain("NonPositiveReals", None, 0, whole=False),
    )
}
SOLVERS = ("highs", "glpk", "cbc", "baron")

OPTIMIZATION = (
    AttributeRow(
        VARIABLES,
        "text",
        "Name of the variable and, in parentheses, columns that identify a row: amount(product). A "
        "column alone is both.",
    ),
    AttributeRow(DOMAIN, "text", "Permitted values of the variable.", choices=tuple(DOMAINS)),
    AttributeRow(
        TIME_LIMIT,
        "number",
        "Seconds after which the best solution so far is the result; by default there is no limit.",
        low=0.001,
    ),
)
# Attributes of SQLFlow.
WITHOUT_EFFECT = dict.fromkeys(
    ("data.enable_slice", "data.batch_size", "worker.num", "worker.core", "worker.memory"),
    "the problem is solved in this process",
)
