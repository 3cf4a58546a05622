"""Add new sites to the register, and remove those that are gone: `python -m tests.hints`."""

from __future__ import annotations

from collections import Counter

from tests.hints import register
from tests.hints.sites import sites


def main() -> None:
    old = register.read()
    verdicts = {site: old.get(site, register.NEW) for site in sites()}
    register.write(verdicts, verdicts)
    for verdict, count in Counter(verdicts.values()).most_common():
        print(f"{verdict:7} {count:5}  {register.REASONS.get(verdict, '')}".rstrip())


if __name__ == "__main__":
    main()
