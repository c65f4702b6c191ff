"""One more parent for each column: naive Bayes, TAN and AODE as networks."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import likely
from likely.plots.network_drawing import stacked
from likely.teaching.examples._counts import DATA
from likely.teaching.examples._sheet import Sheet, decimal

TARGET = "PlayTennis"
DAY = {"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "High", "Wind": "Strong"}
PSEUDOCOUNT = 1
Rows = Sequence[Mapping[str, str]]


def _rows() -> list[dict[str, str]]:
    with (DATA / "tennis.csv").open(encoding="utf-8", newline="") as file:
        return [{name: row[name] for name in (*DAY, TARGET)} for row in csv.DictReader(file)]


def _arcs(parent: str | None) -> list[tuple[str, str]]:
    """The class is a parent of every column, and so is `parent` of every other column."""
    second = [(parent, name) for name in DAY if name != parent] if parent else []
    return [*((TARGET, name) for name in DAY), *second]


def _networks(rows: Rows) -> dict[str, likely.Network]:
    """Naive Bayes, TAN, and the networks of AODE, fitted."""
    tan = likely.Network.learn_structure(rows, method="tan", target=TARGET, smoothing=PSEUDOCOUNT)
    found = {"naive Bayes": likely.Network(_arcs(None)).fit(rows, smoothing=PSEUDOCOUNT), "TAN": tan}
    return found | {f"AODE: {name}": likely.Network(_arcs(name)).fit(rows, smoothing=PSEUDOCOUNT) for name in DAY}


def _theta(rows: Rows, cells: Mapping[str, str], given: Mapping[str, str]) -> Fraction:
    """θ of one cell given others: (rows that have both + 1) / (rows that have the others + number of values)."""
    ((name, value),) = cells.items()
    alike = [row for row in rows if given.items() <= row.items()]
    values = len({row[name] for row in rows})
    return Fraction(sum(row[name] == value for row in alike) + PSEUDOCOUNT, len(alike) + PSEUDOCOUNT * values)


def _joint(rows: Rows, label: str, arcs: Sequence[tuple[str, str]]) -> list[Fraction]:
    """The factors of P(class, day): one for each node, given its parents."""
    world = {TARGET: label} | DAY
    parents = {name: [a for a, b in arcs if b == name] for name in world}
    return [_theta(rows, {name: world[name]}, {p: world[p] for p in parents[name]}) for name in world]


def aode(sheet: Sheet) -> None:
    """P(v) Π P(aᵢ | v, parent): one more parent for each column, and the average over all choices of it."""
    rows = _rows()
    networks = _networks(rows)
    labels = sorted({row[TARGET] for row in rows})
    sheet.head(f"14 days, and a new one: {', '.join(DAY.values())}. Each θ is (count + 1) / (count of the parents + values).")
    sheet.write("  Each network is a product of one θ for each node given its parents; the class is a parent of all columns.")
    found: dict[str, dict[str, Fraction]] = {}
    for name, network in networks.items():
        more = [f"{a} → {b}" for a, b in network.arcs if a != TARGET]
        sheet.head(f"{name}: {', '.join(more) if more else 'no other arc'}")
        found[name] = {}
        for label in labels:
            factors = _joint(rows, label, list(network.arcs))
            found[name][label] = math.prod(factors, start=Fraction(1))
            sheet.write(f"  {label:<3} {' · '.join(map(str, factors))} = {decimal(found[name][label])}")
            library = math.exp(network.log_evidence({TARGET: label} | DAY))
            sheet.check(f"P({label}, day)", found[name][label], library)
    _averaged(sheet, networks, found)


def _averaged(sheet: Sheet, networks: Mapping[str, likely.Network], found: Mapping[str, Mapping[str, Fraction]]) -> None:
    """The mean of the networks in which one column in turn is the other parent."""
    several = [name for name in found if name.startswith("AODE")]
    labels = list(found["TAN"])
    mean = {label: sum((found[name][label] for name in several), Fraction(0)) / len(several) for label in labels}
    sheet.head("AODE is the mean of its four joint probabilities, so no column must be chosen:")
    shown = {"naive Bayes": found["naive Bayes"], "TAN": found["TAN"], "AODE": mean}
    table = [["", *(f"P({label}, day)" for label in labels), "P(No | day)"]]
    for name, joint in shown.items():
        posterior = joint["No"] / sum(joint.values())
        table.append([name, *(decimal(joint[label]) for label in labels), decimal(posterior)])
        sheet.keep(f"P(No | day), {name}", posterior)
    sheet.table(table)
    whole = {label: sum(math.exp(networks[name].log_evidence({TARGET: label} | DAY)) for name in several) for label in labels}
    sheet.check("P(No | day), AODE", mean["No"] / sum(mean.values()), whole["No"] / sum(whole.values()))


def aode_picture() -> str:
    """The six networks, one below the other."""
    names = {"naive Bayes": "Naive Bayes", "TAN": "TAN: a tree of the columns"}
    networks = _networks(_rows())
    pictures = [network.svg(names.get(name, name), TARGET) for name, network in networks.items()]
    return stacked(pictures, "Naive Bayes, TAN and the four networks of AODE")
