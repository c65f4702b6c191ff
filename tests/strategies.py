"""Random tables for the laws: mixed, gappy, weighted, with every family, every tying and every kind of label."""

import random
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from hypothesis import assume, settings
from hypothesis import strategies as st

import likely
from likely.errors import LikelyWarning

TIES = (None, "class", "column", "both")
LABELS = (("no", "yes", "perhaps", "ü"), (0, 1, 2, 7), (False, True), (0.5, 1.5, -2.0, 3.25))
TEXTS = ("a", "b", "c", "Ünï", "with space", "'\";--")
# Weights that are sums of powers of two add up without rounding in any order, so that counts can be compared exactly.
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 1.0, 1.0, 2.0, 3.0)

# Ten rows in which there is little to be found, or that lie at the edge of what numbers can hold.
ODD_TABLES = (
    {"a": [1.0] * 10},
    {"a": [None] * 9 + [1.0]},
    {"a": [1.0, 2.0] * 5},
    {"a": ["x", "y"] * 5, "b": [3.0] * 10},
    {"a": [1.0] * 9 + [1e9]},
    {"a": [1e-200, 2e-200] * 5},
    {"a": [1.7e9, 1.7e9 + 1] * 5, "b": ["u"] * 10},
    {"a": [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0], "b": [2.0] * 10},
)


@dataclass(frozen=True)
class Case:
    """A table with all that is needed to learn from it, and to learn from parts of it alike."""

    columns: dict[str, list[Any]]
    families: dict[Any, Any]
    smoothing: Any = 1.0
    class_prior: Any = None
    weights: str | None = None
    classes: tuple[Any, ...] = ()
    target: str = "y"
    rows: int = field(default=0)

    @property
    def features(self):
        """The columns that are learned from."""
        return [name for name in self.columns if name not in (self.target, self.weights)]

    def learn(self, **changes):
        """The model of the whole table; every class is declared, so that parts and the whole have the same schema."""
        settings = {
            "families": self.families,
            "smoothing": self.smoothing,
            "class_prior": self.class_prior,
            "weights": self.weights,
            "classes": self.classes,
        }
        return quietly(likely.learn, changes.pop("data", self.columns), self.target, **(settings | changes))

    def take(self, places):
        """The table of some of the rows, in the given order."""
        columns = {name: [column[i] for i in places] for name, column in self.columns.items()}
        return replace(self, columns=columns, rows=len(places))

    @property
    def clear(self):
        """Whether each column of a joint block shows its kind: with every cell missing it is not known."""
        together = [name for key, f in self.families.items() if isinstance(f, likely.Joint) for name in key]
        return self.rows > 0 and all(any(v is not None for v in self.columns[name]) for name in together)

    def as_rows(self):
        """The same table as a list of dicts."""
        return [{name: column[i] for name, column in self.columns.items()} for i in range(self.rows)]


def examples(factor):
    """So many times the examples of the profile: thirty, or what `--hypothesis-profile` chooses."""
    return settings(max_examples=factor * settings.default.max_examples)


def quietly(work, *args, **settings):
    """The work done; warnings about borrowed variances are not what a law is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        return work(*args, **settings)


# Numbers with few digits: what is compared to 1e-9 must not be rounding alone.
DECIMALS = tuple(i / 100 for i in range(-20_000, 20_000, 7))
LUMPS = (-1.5, 0.0, 2.0, 2.0, 100.0)
COUNTS = tuple(range(13))
CATEGORIES = (TEXTS, (1, 2, 30, -4), (True, False), ("x", 1, 2.5, "1x"))
GAPS = (0.0, 0.2, 0.7)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def cells(draw, pool, rows, gaps=GAPS):
    """A column of values with missing cells among them: drawn from a seed, for a cell at a time would be slow."""
    rng = random.Random(draw(seeds))
    gap = draw(st.sampled_from(gaps))
    pool = rng.sample(pool, rng.randint(1, min(len(pool), 5))) if len(pool) < 100 else pool
    return [None if rng.random() < gap else rng.choice(pool) for _ in range(rows)]


@st.composite
def blocks(draw, kind, rows, number):
    """One block of columns: its family and its cells."""
    name = f"{kind[0]}{number}"
    names = tuple(f"{name}{i}" for i in range(draw(st.integers(2, 3))))
    tie = draw(st.sampled_from(TIES))
    pool = draw(st.sampled_from(CATEGORIES if kind == "category" else CATEGORIES[::2]))  # in a block: of one type
    category = cells(pool, rows)
    if kind == "category":
        return {name: likely.Categorical()}, {name: draw(category)}
    if kind == "number":
        return {name: likely.Gaussian(tie=tie)}, {name: draw(cells(draw(st.sampled_from([DECIMALS, LUMPS])), rows))}
    if kind == "yes":
        return {name: likely.Bernoulli()}, {name: draw(cells((0, 1, 1, 4), rows))}
    if kind == "poisson":
        return {name: likely.Poisson()}, {name: draw(cells(COUNTS, rows))}
    if kind == "of":
        trials, share = draw(cells(COUNTS, rows)), draw(cells((0.0, 0.3, 0.5, 1.0), rows))
        hits = [None if None in (n, p) else int(n * p) for n, p in zip(trials, share, strict=True)]
        return {name: likely.Binomial(f"{name}n")}, {name: hits, f"{name}n": trials}
    if kind == "multinomial":
        return {names: likely.Multinomial()}, {n: draw(cells(COUNTS, rows)) for n in names}
    if kind == "table":
        return {names: likely.Joint()}, {n: draw(category) for n in names}
    numbers = {n: draw(cells(DECIMALS, rows)) for n in names}
    first = {names[0]: draw(category)} if kind == "values" else {}
    return {names: likely.Joint(tie=draw(st.sampled_from([None, "class"])))}, numbers | first


KINDS = ("category", "number", "yes", "poisson", "of", "multinomial", "table", "joint", "values")
COUNTED = ("category", "yes", "poisson", "of", "multinomial", "table")

smoothings = st.sampled_from(
    [
        0,
        1 / 3,
        0.5,
        1.0,
        7,
        likely.MEstimate(2.5),
        likely.Dirichlet(1.25),
        likely.NormalInverseGamma(mean=1.0, strength=0.5, shape=1.0, scale=2.0),
        {"*": 0.5},
    ]
)


@st.composite
def cases(
    draw, kinds=KINDS, weighted=None, min_rows=2, max_rows=14, max_blocks=4, smoothing=smoothings, whole_blocks=False
):
    """A table of several blocks, two to four classes, missing cells and, if wanted, weights.

    With `whole_blocks` a row has all cells of a joint block or none: others are counted by EM, which does not add up.
    """
    labels = draw(st.sampled_from(LABELS))
    classes = labels[: draw(st.integers(2, len(labels)))]
    rows = draw(st.integers(min_rows, max_rows))
    families, columns = {}, {}
    for number, kind in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=max_blocks))):
        family, drawn = draw(blocks(kind, rows, number))
        families |= family
        columns |= drawn
    for key in [key for key, family in families.items() if whole_blocks and isinstance(family, likely.Joint)]:
        gaps = [any(columns[name][i] is None for name in key) for i in range(rows)]
        columns |= {name: [None if gap else v for v, gap in zip(columns[name], gaps, strict=True)] for name in key}
    columns["y"] = draw(cells(classes, rows, gaps=(0.0,)))
    weights = None
    if weighted or (weighted is None and draw(st.booleans())):
        weights = "w"
        columns["w"] = draw(cells(WEIGHTS, rows, gaps=(0.0,)))
    prior = draw(st.one_of(st.sampled_from([None, 1.0, 0.5]), st.just("given")))
    if prior == "given":
        shares = draw(st.lists(st.integers(1, 8), min_size=len(classes), max_size=len(classes)))
        prior = {label: n / sum(shares) for label, n in zip(classes, shares, strict=True)}
    case = Case(columns, families, draw(smoothing), prior, weights, tuple(classes), rows=rows)
    assume(case.clear)
    return case


whole_cases = partial(cases, whole_blocks=True)


@st.composite
def splits(draw, case, parts=2):
    """The table dealt out into parts, none of them empty."""
    piles = draw(cells(range(parts), case.rows, gaps=(0.0,)))
    dealt = [case.take([i for i, pile in enumerate(piles) if pile == p]) for p in range(parts)]
    assume(all(part.rows for part in dealt))
    return dealt


@st.composite
def strange_rows(draw, case):
    """One row to predict, with anything in it that is not refused: missing, unseen, huge and tiny values."""
    row = {}
    for name in case.features:
        seen = case.columns[name]
        odd = [None, *seen]
        if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in seen if v is not None):
            odd += [0, 3] if name[0] in "pomy" else [0.0, 1e-300, -1e5, 1e15, 1e155, -1e300, 1.7e308]
        if is_category(name):
            odd += ["never seen", 99, False, -0.5]
        row[name] = draw(st.sampled_from(odd))
    return possible(row)


def possible(row):
    """The row with never more successes than trials."""
    trials = {name: row.get(f"{name}n") for name in row}
    return {n: v if None in (v, trials[n]) else min(v, trials[n]) for n, v in row.items()}


def is_category(name):
    """Whether a column holds categories: its first letter is that of its kind."""
    return name[0] in "ct" or (name[0] == "v" and name.endswith("0"))


def same(a, b, tolerance=1e-9):
    """Whether two tallies are the same: counts exactly, moments as far as digits allow."""
    assert a.schema == b.schema
    assert a.rows == b.rows
    assert a.blocks == b.blocks
    np.testing.assert_array_equal(a.classes, b.classes)
    for block, x, y in zip(a.blocks, a.statistics, b.statistics, strict=True):
        assert type(x) is type(y)
        left, right = x.arrays(), y.arrays()
        for part, array in left.items():
            if part in ("seen", "n"):
                np.testing.assert_array_equal(array, right[part], err_msg=f"{block.name} {part}")
            else:
                scale = max(1.0, float(np.abs(array).max(initial=0.0)))
                note = f"{block.name} {part}"
                np.testing.assert_allclose(array, right[part], rtol=tolerance, atol=tolerance * scale, err_msg=note)


def agree(a, b, rows, tolerance=1e-9):
    """Whether two models give some rows the same posterior."""
    left, right = a.posterior(rows), b.posterior(rows)
    assert list(left.classes) == list(right.classes)
    np.testing.assert_allclose(left.log_joint, right.log_joint, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(left.probabilities, right.probabilities, atol=max(tolerance, 1e-9) * 100)
