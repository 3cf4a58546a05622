"""Solution of a problem by HiGHS, and the reasons why there is none, in words."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from edl.arrays import Array
from edl.errors import JobError
from edl.extensions.optimization.problem import LinearProblem, name_row
from edl.installation import install_extras

_MOST_NAMED = 3  # constraints or variables in a message
_LARGE = 1e7  # bound of variables without one, to find those that grow
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Solution:
    """Values of the variables, (rows,), and of the objective. optimal: none is better; else the time was over."""

    values: Array
    objective: float
    optimal: bool


def solve(problem: LinearProblem) -> Solution:
    """Solve the problem. Raises JobError if it is infeasible or unbounded, KeyboardInterrupt at Ctrl-C."""
    highs = _run_highs(problem, problem.cost, whole=problem.spec.domain.whole, limit=problem.spec.time_limit)
    status = highs.modelStatusToString(highs.getModelStatus())
    if status == "Interrupted by user":
        raise KeyboardInterrupt
    if status in ("Infeasible", "Unbounded", "Primal infeasible or unbounded"):
        raise _infeasible(problem) or _unbounded_error(problem)
    is_feasible = highs.getInfo().primal_solution_status == 2  # a feasible point
    if status != "Optimal" and not (status == "Time limit reached" and is_feasible):
        raise JobError(f"HiGHS found no solution: {status.lower()}", hint="raise solver.time_limit")
    values = np.asarray(highs.getSolution().col_value)
    if problem.spec.domain.whole:
        values = np.rint(values)
    return Solution(values, float(problem.cost @ values) + problem.offset, status == "Optimal")


def answer(problem: LinearProblem, solution: Solution) -> pa.Table:
    """Return the key columns with the values of the variables."""
    domain = pa.int64() if problem.spec.domain.whole else pa.float64()
    values = pa.array(solution.values).cast(domain)
    return problem.rows.select(list(problem.spec.keys)).append_column(problem.spec.value, values)


def _run_highs(
    problem: LinearProblem,
    cost: Array,
    *,
    whole: bool,
    limit: float | None = None,
    largest: float = np.inf,
    elastic: bool = False,
) -> Any:
    """Run HiGHS. largest: bound of all variables. elastic: minimize by how much constraints are missed instead."""
    highspy = _library()
    size, spec = len(cost), problem.spec
    highs = _make_quiet_solver(highspy)
    if limit is not None:
        highs.setOptionValue("time_limit", limit)
    lp = highspy.HighsLp()
    count = problem.constraints
    slack = 2 * count if elastic else 0
    lower = -largest if spec.domain.lower is None else spec.domain.lower
    upper = largest if spec.domain.upper is None else spec.domain.upper
    lp.num_col_, lp.num_row_ = size + slack, count
    lp.col_cost_ = np.concatenate((np.zeros(size), np.ones(slack))) if elastic else cost
    lp.col_lower_ = np.concatenate((np.full(size, lower), np.zeros(slack)))
    lp.col_upper_ = np.concatenate((np.full(size, upper), np.full(slack, np.inf)))
    lp.row_lower_ = _join_parts([block.lower for block in problem.blocks])
    lp.row_upper_ = _join_parts([block.upper for block in problem.blocks])
    starts, indices, values = _matrix(problem)
    if elastic:  # two slack variables at the end of each constraint
        starts = starts + 2 * np.arange(count + 1)
        ends = np.repeat(starts[1:] - 2 * np.arange(1, count + 1), 2)
        indices = np.insert(indices, ends, size + np.arange(slack))
        values = np.insert(values, ends, np.tile((1.0, -1.0), count))
    matrix = lp.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.num_col_, matrix.num_row_ = size + slack, count
    matrix.start_, matrix.index_, matrix.value_ = starts.astype(np.int32), indices.astype(np.int32), values
    if whole and not elastic:
        lp.integrality_ = [highspy.HighsVarType.kInteger] * size
    is_largest = spec.direction == "maximize" and not elastic
    lp.sense_ = highspy.ObjSense.kMaximize if is_largest else highspy.ObjSense.kMinimize
    highs.passModel(lp)
    highs.HandleKeyboardInterrupt = threading.current_thread() is threading.main_thread()
    highs.solve()
    return highs


def _matrix(problem: LinearProblem) -> tuple[Array, Array, Array]:
    """Return starts, indices and values of all blocks, one below the other."""
    blocks = problem.blocks
    before = np.cumsum([0, *(len(block.indices) for block in blocks)])
    starts = [block.starts[:-1] + start for block, start in zip(blocks, before[:-1], strict=True)]
    return (
        _join_parts([*starts, before[-1:]]),
        _join_parts([block.indices for block in blocks]),
        _join_parts([block.values for block in blocks]),
    )


def _join_parts(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0)


def _infeasible(problem: LinearProblem) -> JobError | None:
    """Return the error of a problem without a solution, or None if it has one.

    The elastic problem adds slack to each constraint and minimizes its sum; what has slack cannot be kept.
    """
    size = len(problem.cost)
    highs = _run_highs(problem, problem.cost, whole=False, elastic=True)
    solution = np.asarray(highs.getSolution().col_value)
    if solution.size <= size:
        return None if _is_feasible(problem) else JobError("no values satisfy all constraints")
    missed = solution[size:].reshape(-1, 2).max(axis=1)
    worst = [int(row) for row in np.argsort(-missed, kind="stable")[:_MOST_NAMED] if missed[row] > _TOLERANCE]
    if not worst:
        if _is_feasible(problem):
            return None
        return JobError(
            "no whole numbers satisfy all constraints, though fractions would",
            hint='loosen a constraint, or take var_type = "Reals"',
        )
    names = [f"{_name(problem, row)} (missed by {missed[row]:g})" for row in worst]
    more = int((missed > _TOLERANCE).sum()) - len(worst)
    shown = "; ".join(names) + (f"; and {more} more" if more else "")
    return JobError(
        f"no values satisfy all constraints; the nearest ones miss {shown}",
        hint="loosen these constraints or those that they contradict; the variable is of "
        f"{problem.spec.domain.name}",
    )


def _is_feasible(problem: LinearProblem) -> bool:
    highs = _run_highs(problem, np.zeros(len(problem.cost)), whole=problem.spec.domain.whole)
    return bool(highs.modelStatusToString(highs.getModelStatus()) == "Optimal")


def _unbounded_error(problem: LinearProblem) -> JobError:
    highs = _run_highs(problem, problem.cost, whole=False, largest=_LARGE)
    values = np.asarray(highs.getSolution().col_value)
    growing = np.flatnonzero(np.abs(values) >= 0.99 * _LARGE)
    spec = problem.spec
    which = "; ".join(name_row(problem.rows, int(row), spec.keys) for row in growing[:_MOST_NAMED])
    more = f"; and {growing.size - _MOST_NAMED} more" if growing.size > _MOST_NAMED else ""
    above = "above" if spec.direction == "maximize" else "below"
    return JobError(
        f"the objective has no limit {above}"
        + (f": no constraint limits {spec.variable} for {which}{more}" if which else ""),
        hint="add a constraint for them, or check its direction",
    )


def _name(problem: LinearProblem, constraint: int) -> str:
    for block in problem.blocks:
        if constraint < block.count:
            return block.name(problem.rows, constraint, problem.spec.keys)
        constraint -= block.count
    raise IndexError("there is no such constraint")


def _make_quiet_solver(highspy: Any) -> Any:
    """Return a solver that prints nothing. The library prints a banner when callbacks are enabled, while it is made."""

    class Quiet(highspy.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> None:  # noqa: N802
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()

    return Quiet()


def _library() -> Any:
    try:
        import highspy
    except ImportError:
        raise JobError("highspy is not installed", hint=install_extras("optimize")) from None
    return highspy
