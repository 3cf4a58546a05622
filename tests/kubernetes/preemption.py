"""Who has to go for a pod of a higher priority."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from tests.kubernetes.kinds import Object
from tests.kubernetes.nodes import Amounts, requests, short_of

NO_VICTIMS = "No preemption victims found for incoming pod"


def victims(node: Object, used: Amounts, pods: Iterable[Object], pod: Object) -> list[Object] | list[str]:
    """The least important pods of the node without which this one fits; or what it would be short of even then."""
    lower = sorted((one for one in pods if priority(one) < priority(pod)), key=priority, reverse=True)
    if not lower:
        return [NO_VICTIMS]
    wanted, left = requests(pod), dict(used)
    for one in lower:
        left = _less(left, requests(one))
    if short := short_of(node, left, wanted):
        return [f"Insufficient {name}" for name in short]
    found = []
    for one in lower:  # the most important may stay first
        back = _less(left, {name: -amount for name, amount in requests(one).items()})
        if short_of(node, back, wanted):
            found.append(one)
        else:
            left = back
    return found


def priority(pod: Object) -> int:
    return int(pod["spec"]["priority"])


def _less(amounts: Amounts, taken: Amounts) -> Amounts:
    return {name: amounts.get(name, Decimal(0)) - taken.get(name, Decimal(0)) for name in {*amounts, *taken}}
