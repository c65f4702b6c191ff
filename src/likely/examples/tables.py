"""Naive Bayes on tables of categories: tennis and ball."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import likely
from likely.errors import LikelyError
from likely.examples.counts import DATA, class_counts, count
from likely.examples.sheet import CLOSE, Sheet, decimal


def tennis(sheet: Sheet) -> None:
    """P(class | day) ∝ P(class) · Π P(value | class), by maximum likelihood and with imagined rows."""
    model = likely.learn(DATA / "tennis.csv", target="PlayTennis", smoothing=0)
    day = {"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "High", "Wind": "Strong"}
    _new_day(sheet, model, day)
    sheet.head("With imagined rows: a pseudocount for every value of a column, the class prior as counted")
    rows = [["pseudocount", *map(str, model.classes), "P(No | day)"]]
    for pseudocount in (Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)):
        joint = _joint(model, day, pseudocount)
        share = joint["No"] / sum(joint.values())
        _agree(model.relearn(smoothing=pseudocount), day, joint)
        rows.append([str(pseudocount), *(str(joint[label]) for label in model.classes), decimal(share)])
        sheet.keep(f"pseudocount {pseudocount}", {**{k: str(p) for k, p in joint.items()}, "P(No | day)": float(share)})
    sheet.table(rows)
    sheet.say("  likely says the same in every line")
    _overcast(sheet, model, day | {"Outlook": "Overcast"})
    _parameter_count(sheet, model)


def _overcast(sheet: Sheet, model: likely.Model, day: Mapping[str, str]) -> None:
    """One zero wipes out all other evidence, unless a row is imagined."""
    sheet.head(f"A day that is {', '.join(day.values())}")
    joint = _joint(model, day, Fraction(0))
    sheet.say(f"  Without imagined rows: No {_product(model, 'No', day)} = {joint['No']}")
    sheet.say("  No overcast day was ever a No: one zero wipes out all other evidence.")
    laplace = _joint(model, day, Fraction(1))
    share = laplace["Yes"] / sum(laplace.values())
    sheet.say(f"  With one imagined row for each value: P(Yes | day) = {share} = {decimal(share)}")
    sheet.library_says("P(Yes | day)", share, model.relearn(smoothing=1).explain(dict(day)).posterior["Yes"])
    _agree(model, day, joint)
    sheet.keep("overcast", {"No without imagined rows": str(joint["No"]), "P(Yes | day) with one": float(share)})


def _parameter_count(sheet: Sheet, model: likely.Model) -> None:
    k, q = len(model.classes), [len(column.values) for column in model.schema.columns]
    added = "+".join(map(str, q))
    less = "+".join(str(n - 1) for n in q)
    entries, free, joint = k * sum(q) + k, k * (sum(q) - len(q)) + k - 1, k * (math.prod(q) - 1) + k - 1
    sheet.head("How many numbers does the model hold?")
    sheet.say(
        f"  table entries                        ({added})·{k} + {k} = {entries}",
        f"  free parameters                      {k}·({less}) + {k - 1} = {free}",
        f"  free without the naive assumption    {k}·({'·'.join(map(str, q))} − 1) + {k - 1} = {joint}",
        "  (A slide counts 6+6+6+6+2 = 26 entries, as if every column had three values.)",
    )
    count = model.parameter_count
    for what, paper, said in (
        ("table entries", entries, count.table_entries),
        ("free parameters", free, count.free),
        ("free without independence", joint, count.free_without_independence or 0),
    ):
        sheet.library_says(what, paper, said)
        sheet.keep(what, paper)


def ball(sheet: Sheet) -> None:
    """The same sum with numbers that fit in the head."""
    model = likely.learn(DATA / "ball.csv", target="PlayBall", smoothing=0)
    day = {"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "Normal", "Wind": "Strong"}
    joint = _new_day(sheet, model, day)
    common = math.lcm(*(p.denominator for p in joint.values()))
    parts = [int(joint[label] * common) for label in ("Yes", "No")]
    odds = joint["Yes"] / joint["No"]
    sheet.say(f"  Over one denominator: Yes {parts[0]}/{common}, No {parts[1]}/{common}")
    sheet.say(f"  odds Yes : No = {odds.numerator} : {odds.denominator}")
    sheet.keep("odds Yes : No", f"{odds.numerator} : {odds.denominator}")


def _new_day(sheet: Sheet, model: likely.Model, day: Mapping[str, str]) -> dict[Any, Fraction]:
    """The whole sum for one row of categories, by maximum likelihood."""
    classes, seen = model.classes, class_counts(model)
    counted = ", ".join(f"{seen[label]} {label}" for label in reversed(classes))
    sheet.head(f"{sum(seen.values())} days were counted: {counted}. The new day is {', '.join(day.values())}.")
    sheet.head("How often was each of its values seen, among the days of each class?")
    rows = [["", *map(str, classes)]]
    for column, value in day.items():
        rows.append([f"{column} = {value}", *(f"{count(model, column, c, value)}/{seen[c]}" for c in classes)])
    sheet.table(rows)
    sheet.head("The share of the class, times the share of every value in it:")
    joint = _joint(model, day, Fraction(0))
    for label in classes:
        product = _product(model, label, day)
        sheet.say(f"  {label:<3}  {product} = {joint[label]} = {decimal(joint[label])}")
        sheet.keep(f"joint {label}", joint[label])
    whole = sum(joint.values(), Fraction(0))
    sheet.head("Divided by their sum, so that the classes add up to one:")
    for label in classes:
        share = joint[label] / whole
        divided = f"({joint[label]}) / ({' + '.join(map(str, joint.values()))})"
        sheet.say(f"  P({label} | day) = {divided} = {share} = {decimal(share)}")
        sheet.library_says(f"P({label} | day)", share, model.explain(dict(day)).posterior[label])
        sheet.keep(f"P({label} | day)", share)
    return joint


def _joint(model: likely.Model, row: Mapping[str, str], pseudocount: Fraction) -> dict[Any, Fraction]:
    """P(class) · Π P(value | class) in exact fractions, from the model's counts."""
    seen = class_counts(model)
    joint = {}
    for label, n in seen.items():
        product = Fraction(n, sum(seen.values()))
        for column, value in row.items():
            values = len(model.schema.by_name[column].values)
            product *= (count(model, column, label, value) + pseudocount) / (n + pseudocount * values)
        joint[label] = product
    return joint


def _product(model: likely.Model, label: Any, row: Mapping[str, str]) -> str:
    seen = class_counts(model)
    shares = [f"{count(model, column, label, value)}/{seen[label]}" for column, value in row.items()]
    return " · ".join([f"{seen[label]}/{sum(seen.values())}", *shares])


def _agree(model: likely.Model, row: Mapping[str, str], joint: Mapping[Any, Fraction]) -> None:
    said = model.explain(dict(row))
    for label, log_joint in zip(said.classes, said.log_joint, strict=True):
        if not math.isclose(math.exp(log_joint), joint[label], rel_tol=CLOSE):
            raise LikelyError(f"P({label}, row) differs between paper and library: please report it")
