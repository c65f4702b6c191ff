"""Naive Bayes on tables of categories: tennis and ball."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import likely
from likely.errors import LikelyError
from likely.teaching.examples._counts import DATA, class_counts, count
from likely.teaching.examples._sheet import CLOSE, Sheet, decimal


def tennis(sheet: Sheet) -> None:
    """P(class | day) ∝ P(class) · Π P(value | class), by maximum likelihood and with pseudocounts."""
    model = likely.learn(DATA / "tennis.csv", target="PlayTennis", smoothing=0)
    day = {"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "High", "Wind": "Strong"}
    _new_day(sheet, model, day)
    sheet.head("With a pseudocount for every value of a column, the class prior as counted")
    rows = [["pseudocount", *map(str, model.classes), "P(No | day)"]]
    for pseudocount in (Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)):
        joint = _joint(model, day, pseudocount)
        probability = joint["No"] / sum(joint.values())
        _agree(model.relearn(smoothing=pseudocount), day, joint)
        rows.append([str(pseudocount), *(str(joint[label]) for label in model.classes), decimal(probability)])
        sheet.keep(f"pseudocount {pseudocount}", {**{k: str(p) for k, p in joint.items()}, "P(No | day)": float(probability)})
    sheet.table(rows)
    sheet.write("  checked with the library in every line")
    _overcast(sheet, model, day | {"Outlook": "Overcast"})
    _parameter_count(sheet, model)


def tennis_picture() -> str:
    """Naive Bayes as a network: the class is the parent of every column."""
    model = likely.learn(DATA / "tennis.csv", target="PlayTennis", smoothing=0)
    return likely.pictures.naive_bayes(model, title="PlayTennis: naive Bayes as a network")


def ball_picture() -> str:
    """The same for six days."""
    model = likely.learn(DATA / "ball.csv", target="PlayBall", smoothing=0)
    return likely.pictures.naive_bayes(model, title="PlayBall: naive Bayes as a network")


def _overcast(sheet: Sheet, model: likely.Model, day: Mapping[str, str]) -> None:
    """One zero overrules all other evidence, unless there is a pseudocount."""
    sheet.head(f"A day that is {', '.join(day.values())}")
    joint = _joint(model, day, Fraction(0))
    sheet.write(f"  Without pseudocounts: No {_product(model, 'No', day)} = {joint['No']}")
    sheet.write("  No overcast day was ever a No: one zero overrules all other evidence.")
    laplace = _joint(model, day, Fraction(1))
    probability = laplace["Yes"] / sum(laplace.values())
    sheet.write(f"  With a pseudocount of 1 for each value: P(Yes | day) = {probability} = {decimal(probability)}")
    sheet.check("P(Yes | day)", probability, model.relearn(smoothing=1).explain(dict(day)).posterior["Yes"])
    _agree(model, day, joint)
    sheet.keep("overcast", {"No without pseudocounts": str(joint["No"]), "P(Yes | day) with one": float(probability)})


def _parameter_count(sheet: Sheet, model: likely.Model) -> None:
    k, q = len(model.classes), [len(column.values) for column in model.schema.columns]
    added = "+".join(map(str, q))
    less = "+".join(str(n - 1) for n in q)
    entries, free, joint = k * sum(q) + k, k * (sum(q) - len(q)) + k - 1, k * (math.prod(q) - 1) + k - 1
    sheet.head("How many numbers does the model hold?")
    sheet.write(
        f"  table entries                        ({added})·{k} + {k} = {entries}",
        f"  free parameters                      {k}·({less}) + {k - 1} = {free}",
        f"  free without the naive assumption    {k}·({'·'.join(map(str, q))} − 1) + {k - 1} = {joint}",
        "  (A slide counts 6+6+6+6+2 = 26 entries, as if every column had three values.)",
    )
    count = model.parameter_count
    for what, paper, library in (
        ("table entries", entries, count.table_entries),
        ("free parameters", free, count.free),
        ("free without independence", joint, count.free_without_independence or 0),
    ):
        sheet.check(what, paper, library)
        sheet.keep(what, paper)


def ball(sheet: Sheet) -> None:
    """The same calculation with small numbers."""
    model = likely.learn(DATA / "ball.csv", target="PlayBall", smoothing=0)
    day = {"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "Normal", "Wind": "Strong"}
    joint = _new_day(sheet, model, day)
    common = math.lcm(*(p.denominator for p in joint.values()))
    parts = [int(joint[label] * common) for label in ("Yes", "No")]
    odds = joint["Yes"] / joint["No"]
    sheet.write(f"  Over one denominator: Yes {parts[0]}/{common}, No {parts[1]}/{common}")
    sheet.write(f"  odds Yes : No = {odds.numerator} : {odds.denominator}")
    sheet.keep("odds Yes : No", f"{odds.numerator} : {odds.denominator}")


def _new_day(sheet: Sheet, model: likely.Model, day: Mapping[str, str]) -> dict[Any, Fraction]:
    """The complete calculation for one row of categories, by maximum likelihood."""
    classes, seen = model.classes, class_counts(model)
    counted = ", ".join(f"{seen[label]} {label}" for label in reversed(classes))
    sheet.head(f"{sum(seen.values())} days were counted: {counted}. The new day is {', '.join(day.values())}.")
    sheet.head("How often was each of its values seen, among the days of each class? θ_ijk = P(value j of column i | class k)")
    rows = [["", *map(str, classes)]]
    for column, value in day.items():
        rows.append([f"{column} = {value}", *(f"{count(model, column, c, value)}/{seen[c]}" for c in classes)])
    sheet.table(rows)
    sheet.head("The class prior, times the relative frequency of every value in the class:")
    joint = _joint(model, day, Fraction(0))
    for label in classes:
        product = _product(model, label, day)
        sheet.write(f"  {label:<3}  {product} = {joint[label]} = {decimal(joint[label])}")
        sheet.keep(f"joint {label}", joint[label])
    sheet.write(f"  v_NB = argmax P(v) · Π P(aᵢ | v) = {max(joint, key=lambda label: joint[label])}")
    evidence = sum(joint.values(), Fraction(0))
    sheet.head("Divided by their sum, so that the classes add up to one:")
    for label in classes:
        probability = joint[label] / evidence
        divided = f"({joint[label]}) / ({' + '.join(map(str, joint.values()))})"
        sheet.write(f"  P({label} | day) = {divided} = {probability} = {decimal(probability)}")
        sheet.check(f"P({label} | day)", probability, model.explain(dict(day)).posterior[label])
        sheet.keep(f"P({label} | day)", probability)
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
    factors = [f"{count(model, column, label, value)}/{seen[label]}" for column, value in row.items()]
    return " · ".join([f"{seen[label]}/{sum(seen.values())}", *factors])


def _agree(model: likely.Model, row: Mapping[str, str], joint: Mapping[Any, Fraction]) -> None:
    library = model.explain(dict(row))
    for label, log_joint in zip(library.classes, library.log_joint, strict=True):
        if not math.isclose(math.exp(log_joint), joint[label], rel_tol=CLOSE):
            raise LikelyError(f"P({label}, row) differs between paper and library: please report it")
