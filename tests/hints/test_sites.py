"""Each hint of the product is in the register: as advice that a case executes, or as prose with a reason."""

from __future__ import annotations

from tests.hints import register
from tests.hints.cases import read_cases
from tests.hints.sites import sites

ADD = "run `python -m tests.hints`, and write case for ? in sites.txt, with a case in tests/hints/statements"


def test_every_hint_is_in_the_register() -> None:
    registered, known = register.read(), set(sites())
    new = [site for site in sites() if site not in registered]
    assert not new, f"{ADD}, or by the reason why it is prose ({', '.join(register.REASONS)}): {new[:5]}"
    gone = [site for site in registered if site not in known]
    assert not gone, f"these hints are gone, run `python -m tests.hints`: {gone[:5]}"


def test_every_verdict_is_one_of_the_register() -> None:
    unknown = [site for site, verdict in register.read().items() if verdict not in register.VERDICTS]
    assert not unknown, f"{ADD}, or by one of {', '.join(register.REASONS)}: {unknown[:5]}"


def test_advice_that_can_be_executed_is_no_mere_explanation() -> None:
    wrong = [
        site
        for site, verdict in register.read().items()
        if verdict in register.PASSIVE and register.ACTIONABLE.search(site.pattern)
    ]
    assert not wrong, f"these hints have SQL, an option or a command, and need a case: {wrong[:5]}"


def test_the_sites_with_a_case_are_those_of_the_cases() -> None:
    with_case = {case.site for case in read_cases()}
    registered = {site for site, verdict in register.read().items() if verdict == register.CASE}
    assert with_case - registered == set(), "write case for them in tests/hints/sites.txt"
    assert registered - with_case == set(), "write a case in tests/hints/statements"
