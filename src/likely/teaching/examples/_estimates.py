"""Parameters by maximum likelihood: insurance and wrappers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import likely
from likely.errors import LikelyError
from likely.teaching.examples._counts import DATA, cells, class_counts, count
from likely.teaching.examples._sheet import CLOSE, Sheet, decimal


def insurance(sheet: Sheet) -> None:
    """A Gaussian density for the age and a categorical distribution for the car, multiplied."""
    model = likely.learn(DATA / "insurance.csv", target="Risk", smoothing=0)
    seen = class_counts(model)
    ages = cells("insurance.csv", "Age", "Risk")
    sheet.head("Six drivers; who is a driver of 30 with a family car?")
    density = {}
    for label in model.classes:
        own = [Fraction(age) for age in ages[label]]
        mean = sum(own) / len(own)
        variance = sum((age - mean) ** 2 for age in own) / len(own)
        sigma = math.sqrt(variance)
        density[label] = math.exp(-float((30 - mean) ** 2 / (2 * variance))) / (sigma * math.sqrt(2 * math.pi))
        sheet.head(f"{label}: ages {', '.join(ages[label])}")
        sheet.write(f"  μ = ({'+'.join(ages[label])})/{len(own)} = {decimal(mean)}")
        sheet.write(f"  σ² = mean of (age − μ)² = {decimal(variance)}   (the divisor is {len(own)}, not {len(own) - 1})")
        sheet.write(f"  σ = {sigma:.6f}")
        sheet.write(f"  p(30 | {label}) = exp(−(30 − μ)²/2σ²) / (σ·√(2π)) = {density[label]:.7f}")
        sheet.keep(label, {"mean": float(mean), "deviation": sigma, "p(30)": density[label]})
        row = next(row for row in model.parameters["Age"] if row["class"] == label)
        sheet.check(f"μ of {label}", mean, row["mean"])
        sheet.check(f"σ of {label}", sigma, row["deviation"])
    sheet.write(
        "", "  (A slide adds up the ages of High to 87, so that μ = 21.75, and gets odds of 4.5 for a family car.)"
    )
    for car, pseudocount in (("Family", Fraction(0)), ("Truck", Fraction(0)), ("Truck", Fraction(1))):
        _odds(sheet, model, seen, density, car=car, pseudocount=pseudocount)


def insurance_picture() -> str:
    """The density of the age in each class."""
    model = likely.learn(DATA / "insurance.csv", target="Risk", smoothing=0)
    return likely.pictures.class_densities(model, "Age", title="Insurance: density of the age in each class")


def _odds(
    sheet: Sheet,
    model: likely.Model,
    seen: Mapping[str, int],
    density: Mapping[str, float],
    *,
    car: str,
    pseudocount: Fraction,
) -> None:
    """High against Low for a driver of 30 with some car."""
    values = len(model.schema.by_name["CarType"].values)
    cars = {c: (count(model, "CarType", c, car) + pseudocount) / (seen[c] + pseudocount * values) for c in seen}
    rows = sum(seen.values())
    paper = seen["High"] * density["High"] * cars["High"] / (seen["Low"] * density["Low"] * cars["Low"])
    high, low = (f"{seen[c]}/{rows} · {density[c]:.7f} · {cars[c]}" for c in ("High", "Low"))
    added = f", pseudocount {pseudocount} for each kind of car" if pseudocount else ""
    sheet.head(
        f"(30, {car}){added}: the class prior, times the density of the age, times the probability of the car"
    )
    sheet.write(f"  odds High : Low = ({high}) / ({low}) = {paper:.6f}")
    library = model.relearn(smoothing=pseudocount).explain({"Age": 30, "CarType": car}).posterior
    sheet.check("the odds", paper, library["High"] / library["Low"])
    if not paper:
        sheet.write("  No high-risk driver has a truck: one zero overrules the evidence of the age.")
    sheet.keep(f"odds (30, {car}), pseudocount {pseudocount}", float(paper))


def wrappers(sheet: Sheet) -> None:
    """Several parameters separate into several small problems, each solved by counting."""
    candies = {("cherry", "red"): 45, ("cherry", "green"): 15, ("lime", "red"): 10, ("lime", "green"): 30}
    table = {
        "flavour": [flavour for flavour, _ in candies],
        "wrapper": [wrapper for _, wrapper in candies],
        "candies": list(candies.values()),
    }
    model = likely.learn(table, target="flavour", weights="candies", smoothing=0)
    sheet.head(
        "Candies have a flavour, and a wrapper whose colour depends on it. 100 were unwrapped (counts made up here):"
    )
    sheet.table(
        [["", "red", "green"], *([f, *(str(candies[f, w]) for w in ("red", "green"))] for f in ("cherry", "lime"))]
    )
    rc, gc, rl, gl = candies.values()
    c, m = rc + gc, rl + gl
    sheet.head("log likelihood = c log θ + m log(1−θ)  +  rc log θ₁ + gc log(1−θ₁)  +  rm log θ₂ + gm log(1−θ₂)")
    sheet.write("  Each parameter has its own terms, so each is a small problem of its own, solved by counting:")
    found = {
        "θ": (Fraction(c, c + m), "P(cherry)", f"{c}/({c}+{m})"),
        "θ₁": (Fraction(rc, c), "P(red | cherry)", f"{rc}/({rc}+{gc})"),
        "θ₂": (Fraction(rl, m), "P(red | lime)", f"{rl}/({rl}+{gl})"),
    }
    library = {"θ": model.parameters["flavour"][0]["probability"]}
    library |= {name: _share(model, flavour) for name, flavour in (("θ₁", "cherry"), ("θ₂", "lime"))}
    for name, (value, meaning, counts) in found.items():
        sheet.write(f"  {name:<2} = {meaning:<15} = {counts} = {value}")
        sheet.check(name, value, library[name])
        sheet.keep(meaning, value)
    _maximum(sheet, "θ", [c, m], found["θ"][0])
    red = found["θ"][0] * found["θ₁"][0] / (found["θ"][0] * found["θ₁"][0] + (1 - found["θ"][0]) * found["θ₂"][0])
    sheet.head("And what flavour is a candy in red? By Bayes' rule:")
    sheet.write(f"  P(cherry | red) = θ·θ₁ / (θ·θ₁ + (1−θ)·θ₂) = {red} = {decimal(red)}")
    sheet.check("P(cherry | red)", red, model.explain({"wrapper": "red"}).posterior["cherry"])
    sheet.keep("P(cherry | red)", red)


def wrappers_picture() -> str:
    """The likelihood of θ, the share of cherries."""
    found = likely.estimate([1, 0], family="bernoulli", weights=[60, 40])
    return likely.pictures.likelihood(found, symbol="θ", title="Wrappers: likelihood of θ = P(cherry)")


def _maximum(sheet: Sheet, name: str, counts: Sequence[int], best: Fraction) -> None:
    """The log likelihood at the maximum and beside it."""
    alone = likely.estimate([1, 0], family="bernoulli", weights=counts)
    sheet.head(f"Is that the maximum? {counts[0]} log {name} + {counts[1]} log(1−{name}) at {name} and beside it:")
    for at in (best - Fraction(1, 20), best, best + Fraction(1, 20)):
        paper = counts[0] * math.log(at) + counts[1] * math.log(1 - at)
        sheet.write(f"  {name} = {decimal(at):<8}  {paper:.6f}")
        if not math.isclose(paper, alone.log_likelihood_of(p=float(at)), rel_tol=CLOSE):
            raise LikelyError("the log likelihood differs between paper and library: please report it")
    sheet.write("  checked with the library in every line")
    sheet.check(name, best, alone.ml["p"])


def _share(model: likely.Model, flavour: str) -> float:
    rows = model.parameters["wrapper"]
    return next(float(row["probability"]) for row in rows if row["class"] == flavour and row["value"] == "red")
