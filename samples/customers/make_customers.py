"""Write customers.csv: 20,000 customers of a made-up phone company, as a spreadsheet of Central Europe exports them.

python samples/customers/make_customers.py   # into the working directory; always the same rows

One of eight has left within the month that follows. Three columns were written after that, or because of it:
cancellation_date, cancel_reason and last_login.
"""

import csv
import datetime as dt
import math
import random
from pathlib import Path

NAMES = (
    "customer_id;customer since;plan;country;annual_spend;discount;support_calls;newsletter;last_login;last_note;"
    "cancellation_date;cancel_reason;churned"
)
TODAY = dt.date(2024, 12, 31)
NOTES = ("asked about the bill", "wants a faster line", "moved house", "changed the number", "lost the phone")
REASONS = ("too expensive", "slow at night", "moves abroad", "bad service", "has a new phone")


def euros(amount: float) -> str:
    """Return an amount as €1.234,50."""
    return "€" + f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))


def day(date: dt.date) -> str:
    """Return a date as 26.12.2024."""
    return f"{date:%d.%m.%Y}"


def make_customer(number: int, draw: random.Random) -> list[str]:
    months, calls = 1 + int(draw.expovariate(1 / 26)), min(9, int(draw.expovariate(1 / 2)))
    plan, spend = draw.choices(("basic", "plus", "pro"), (5, 3, 2))[0], draw.lognormvariate(6.2, 0.6)
    leaning = -2.6 - 0.04 * months + 0.35 * calls + {"basic": 0.8, "plus": 0.0, "pro": -0.5}[plan]
    has_left = draw.random() < 1 / (1 + math.exp(-leaning))
    last_login = TODAY - dt.timedelta(days=draw.randint(15, 120) if has_left else draw.randint(0, 40))
    note = draw.choice(NOTES) if draw.random() < 0.4 else ""
    return [
        f"C-{100_000 + number}",
        day(TODAY - dt.timedelta(days=30 * months + draw.randint(0, 29))),
        plan,
        draw.choice(("DE", "AT", "CH")),
        euros(spend),
        f"{draw.choice((0, 5, 10, 15))}%",
        f"{calls}",
        draw.choice(("yes", "no")),
        day(last_login),
        f"{note} on {draw.randint(1, 28)}.{draw.randint(1, 12)}., case {number}" if note else "",
        day(TODAY + dt.timedelta(days=draw.randint(1, 28))) if has_left else "",
        f"{draw.choice(REASONS)}, case {number}" if has_left else "",
        "yes" if has_left else "no",
    ]


if __name__ == "__main__":
    draw = random.Random(46)  # noqa: S311 - made-up rows, no secrets
    with Path("customers.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, delimiter=";")
        rows.writerow(NAMES.split(";"))
        rows.writerows(make_customer(number, draw) for number in range(20_000))
    print("customers.csv: 20,000 customers")
