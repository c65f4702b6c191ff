"""Make the demo's tables of loan applications: invented, mixed, gappy and the same on every machine.

`loans.csv` holds 600 applications with a known outcome, `loans_new.csv` six without one.
No figure in them was measured; the rules below are all there is behind them.
"""

import csv
import io
import math
import random
from pathlib import Path
from statistics import NormalDist

DATA = Path(__file__).resolve().parent.parent / "src" / "likely" / "data"
ROWS = 600
SEED = 20260

EMPLOYMENT = {"employed": 0.58, "self-employed": 0.16, "retired": 0.12, "student": 0.08, "unemployed": 0.06}
HOUSING = {"owner": 0.42, "tenant": 0.43, "with family": 0.15}
PURPOSE = {"car": 0.34, "home": 0.26, "education": 0.14, "business": 0.16, "holiday": 0.10}
TYPICAL_INCOME = {"employed": 2900, "self-employed": 3100, "retired": 1900, "student": 900, "unemployed": 1000}
TYPICAL_AMOUNT = {"car": 9000, "home": 16000, "education": 6000, "business": 14000, "holiday": 3000}
GAPS = {"years_employed": 0.05, "housing": 0.04, "income": 0.09, "late_payments": 0.06, "guarantor": 0.03}
COLUMNS = (
    "application_id", "employment", "years_employed", "housing", "purpose",
    "income", "amount", "late_payments", "guarantor",
)  # fmt: skip

NEW = [
    "A-0601,employed,6.5,owner,car,3150,7400,0,no",
    "A-0602,student,0.5,tenant,holiday,,4100,3,no",
    "A-0603,self-employed,11.0,tenant,business,4200,21500,1,yes",
    "A-0604,retired,,owner,home,2050,12800,0,no",
    "A-0605,unemployed,0.0,with family,education,950,5200,4,yes",
    "A-0606,employed,2.0,houseboat,car,2600,8800,1,no",
]


def pick(rng: random.Random, shares: dict[str, float]) -> str:
    """One value, drawn in proportion to its share; only `random()` is promised to stay the same across versions."""
    draw = rng.random() * sum(shares.values())
    for value, share in shares.items():
        draw -= share
        if draw < 0:
            return value
    return value


def around(rng: random.Random, centre: float, spread: float) -> float:
    """A positive amount around `centre`, log-normal with the given spread."""
    return centre * math.exp(spread * NormalDist().inv_cdf(rng.random()))


def count(rng: random.Random, rate: float) -> int:
    """A Poisson count, by multiplying uniform draws until they fall below exp(-rate)."""
    product, seen, floor = rng.random(), 0, math.exp(-rate)
    while product > floor:
        product, seen = product * rng.random(), seen + 1
    return seen


def application(rng: random.Random, number: int) -> dict[str, str]:
    """One application and its outcome, before any cell is lost."""
    employment, purpose = pick(rng, EMPLOYMENT), pick(rng, PURPOSE)
    housing = pick(rng, HOUSING | ({"with family": 0.8} if employment == "student" else {}))
    income = around(rng, TYPICAL_INCOME[employment], 0.3)
    # Those who earn more ask for more: the columns are not quite independent, as in life.
    amount = around(rng, TYPICAL_AMOUNT[purpose] * math.sqrt(income / 2500), 0.35)
    years = 0.0 if employment == "unemployed" else min(around(rng, 5, 0.8), 40)
    late = count(rng, {"employed": 0.5, "self-employed": 0.9, "retired": 0.3}.get(employment, 1.4))
    guarantor = pick(rng, {"yes": 0.25, "no": 0.75})
    strain = amount / (12 * income)
    risk = 2.2 * (strain - 0.45) + 0.75 * (late - 0.8) - 0.06 * (years - 5)
    risk += {"owner": -0.5, "tenant": 0.3, "with family": 0.1}[housing] - (0.6 if guarantor == "yes" else 0)
    risk += {"unemployed": 0.9, "student": 0.3, "self-employed": 0.3}.get(employment, -0.2)
    outcome = pick(rng, {"repaid": 1.0, "default": math.exp(1.8 * risk - 0.6)})
    return {
        "application_id": f"A-{number:04d}", "employment": employment, "years_employed": f"{round(2 * years) / 2:.1f}",
        "housing": housing, "purpose": purpose, "income": f"{round(income, -1):.0f}",
        "amount": f"{round(amount, -2):.0f}", "late_payments": str(late), "guarantor": guarantor, "outcome": outcome,
    }  # fmt: skip


def lose_cells(rng: random.Random, row: dict[str, str]) -> dict[str, str]:
    """The same row with some cells left blank, each column at its own rate."""
    return {name: "" if rng.random() < GAPS.get(name, 0.0) else cell for name, cell in row.items()}


def loans() -> str:
    """The text of `loans.csv`."""
    rng = random.Random(SEED)
    out = io.StringIO()
    writer = csv.DictWriter(out, [*COLUMNS, "outcome"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lose_cells(rng, application(rng, number)) for number in range(1, ROWS + 1))
    return out.getvalue()


def loans_new() -> str:
    """The text of `loans_new.csv`: one row with a gap, one with a value never seen before."""
    return "\n".join([",".join(COLUMNS), *NEW]) + "\n"


def main() -> None:
    """Write both tables into the package."""
    for name, text in {"loans.csv": loans(), "loans_new.csv": loans_new()}.items():
        (DATA / name).write_text(text, encoding="utf-8", newline="\n")
        print(f"{DATA / name}: {text.count(chr(10)) - 1} rows")


if __name__ == "__main__":
    main()
