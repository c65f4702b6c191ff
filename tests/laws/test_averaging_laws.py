"""Averaging over all choices of columns: equal to the sum over every subset, and read off the tally each time."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

import likely
from likely import Bernoulli, Binomial, Gaussian, Multinomial, NormalInverseGamma, Poisson
from likely.errors import LikelyWarning, UsageError
from strategies import examples, quietly

learn = partial(likely.learn, plain=True)

# ------------------------------------------------------------------ the same by brute force
# A marginal likelihood is written as the chain of predictions, row after row, each from the rows before: another road
# than the closed forms of the library.


class Values:
    """Dirichlet: the next value's share, once the imagined rows are added to the seen ones."""

    def __init__(self, alpha, domain):
        self.alpha, self.domain = alpha, domain

    def predict(self, before, x):
        return math.log((before.count(x) + self.alpha) / (len(before) + self.alpha * len(self.domain)))


class Numbers:
    """Normal-inverse-gamma: Student's t, updated by one row at a time."""

    def __init__(self, mean, strength, shape, scale):
        self.start = (mean, strength, shape, scale)

    def predict(self, before, x):
        m, k, a, b = self.start
        for seen in before:
            b += k * (seen - m) ** 2 / (2 * (k + 1))
            m, k, a = (k * m + seen) / (k + 1), k + 1, a + 0.5
        return stats.t.logpdf(x, 2 * a, m, math.sqrt(b * (k + 1) / (a * k)))


class Events:
    """Gamma: the negative binomial."""

    def __init__(self, shape, rows):
        self.shape, self.rows = shape, rows

    def predict(self, before, x):
        a, b = self.shape + sum(before), self.rows + len(before)
        return stats.nbinom.logpmf(x, a, b / (b + 1))


def chain(family, rows):
    return math.fsum(family.predict(rows[:i], x) for i, x in enumerate(rows) if x is not None)


def without_gaps(rows):
    return [x for x in rows if x is not None]


def enumerate_all(columns, families, labels, classes, row, class_prior):
    """The posterior of one row: every subset of columns, weighed by how probable it makes the rows."""
    total = np.zeros(len(classes))
    weights, answers = [], []
    for subset in product([False, True], repeat=len(columns)):
        evidence, joint = 0.0, np.log(class_prior)
        for name, dependent in zip(columns, subset, strict=True):
            rows, family = columns[name], families[name]
            for c, label in enumerate(classes):
                own = without_gaps([x for x, y in zip(rows, labels, strict=True) if y == label or not dependent])
                if dependent or c == 0:
                    evidence += chain(family, own)
                if row[name] is not None:
                    joint[c] += family.predict(own, row[name])
        weights.append(evidence)
        answers.append(joint)
    shares = np.exp(np.array(weights) - special.logsumexp(weights))
    for share, joint in zip(shares, answers, strict=True):
        total += share * np.exp(joint)
    arcs = {
        name: sum(s for s, subset in zip(shares, product([False, True], repeat=len(columns)), strict=True) if subset[i])
        for i, name in enumerate(columns)
    }
    return total / total.sum(), arcs


numbers = st.integers(-30, 30).map(lambda i: i / 4)
gappy = st.sampled_from([0.0, 0.3])


@st.composite
def tables(draw):
    n = draw(st.integers(4, 14))
    labels = draw(st.lists(st.sampled_from("ab"), min_size=n, max_size=n).filter(lambda y: len(set(y)) == 2))
    column = {
        "word": st.sampled_from(["u", "v", "w"]),
        "other": st.sampled_from(["p", "q"]),
        "size": numbers,
        "events": st.integers(0, 6),
    }
    names = draw(st.lists(st.sampled_from(sorted(column)), min_size=1, max_size=4, unique=True))
    cells = {name: draw(st.lists(column[name] | st.none(), min_size=n, max_size=n)) for name in names}
    for name in names:
        cells[name][0], cells[name][1] = draw(column[name]), draw(column[name])  # never a column of nothing
    return labels, cells


@given(tables(), st.sampled_from([0.5, 1.0, 2.0]), st.integers(0, 3))
@examples(1)
def test_the_average_is_the_sum_over_every_subset_of_columns(table, alpha, place):
    labels, columns = table
    prior = NormalInverseGamma(0.5, 1.5, 2.0, 3.0)
    smoothing = {"*": alpha} | ({"size": prior} if "size" in columns else {})
    families = {name: {"size": Gaussian(), "events": Poisson()}.get(name, "categorical") for name in columns}
    model = quietly(learn, columns | {"y": labels}, "y", families=families, smoothing=smoothing, average=True)
    chances = {}
    for name, cells in columns.items():
        seen = without_gaps(cells)
        if name == "size":
            chances[name] = Numbers(0.5, 1.5, 2.0, 3.0)
        elif name == "events":
            rate = (sum(seen) or min(alpha, 1.0)) / len(seen)
            chances[name] = Events(alpha * rate, alpha)
        else:
            chances[name] = Values(alpha, sorted(set(seen)))
    row = {name: cells[place] for name, cells in columns.items()}
    shares = [labels.count(label) / len(labels) for label in model.classes]
    expected, arcs = enumerate_all(columns, chances, labels, model.classes, row, shares)
    found = model.posterior([row])
    assert found.probabilities[0] == pytest.approx(expected, abs=1e-9)
    assert found.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    for name, chance in arcs.items():
        assert model.arc_probability[name] == pytest.approx(chance, abs=1e-9)
    ledger = model.explain(row)
    added = np.array(ledger.log_prior)
    for entry in ledger.entries:
        added += entry.evidence
    assert added.tolist() == pytest.approx(list(ledger.log_joint), abs=1e-12)
    assert found.log_joint[0] == pytest.approx(list(ledger.log_joint), abs=1e-12)


def mixed_table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["no", "yes"], n)
    return {
        "y": y.tolist(),
        "shift": (rng.normal(size=n) + (y == "yes")).tolist(),
        "noise": rng.normal(size=n).tolist(),
        "letter": rng.choice(list("uvwxyz"), n).tolist(),
        "hint": np.where(y == "yes", rng.choice(list("pq"), n), "p").tolist(),
        "flag": rng.integers(0, 2, n).tolist(),
        "hits": rng.binomial(5, np.where(y == "yes", 0.7, 0.3)).tolist(),
        "one": rng.poisson(3, n).tolist(),
        "two": rng.poisson(3, n).tolist(),
    }


FAMILIES = {"flag": Bernoulli(), "hits": Binomial(5), ("one", "two"): Multinomial()}


def test_columns_of_noise_have_a_low_arc_probability_and_informative_columns_a_high_one():
    model = learn(mixed_table(3000), "y", families=FAMILIES, average=True)
    chance = model.arc_probability
    assert min(chance["shift"], chance["hint"], chance["hits"]) > 0.999
    assert max(chance["noise"], chance["letter"], chance["flag"], chance["one with two"]) < 0.3


@pytest.mark.parametrize("tie", [None, "class"])
def test_the_variance_may_be_shared_by_the_classes(tie):
    """Beside the closed form: the mean integrated by hand over a fine grid of variances."""
    data = {"y": list("aaabb"), "x": [1.0, 2.0, 2.5, 4.0, 3.0]}
    prior = NormalInverseGamma(2.0, 1.0, 2.0, 1.5)
    model = learn(data, "y", families={"x": Gaussian(tie=tie)}, smoothing={"x": prior}, average=True)
    variance = np.exp(np.linspace(-12, 12, 40_001))
    density = stats.invgamma.pdf(variance, 2.0, scale=1.5) * variance
    step = 24 / 40_000

    def given_variance(rows):
        found = np.ones_like(variance)
        mean, k = 2.0, 1.0
        for x in rows:
            found = found * stats.norm.pdf(x, mean, np.sqrt(variance * (k + 1) / k))
            mean, k = (k * mean + x) / (k + 1), k + 1
        return found

    groups = [data["x"][:3], data["x"][3:]]
    if tie:
        on = (density * given_variance(groups[0]) * given_variance(groups[1])).sum() * step
    else:
        on = np.prod([(density * given_variance(rows)).sum() * step for rows in groups])
    off = (density * given_variance(data["x"])).sum() * step
    assert model.arc_probability["x"] == pytest.approx(on / (on + off), abs=1e-6)


def test_it_survives_saving_updating_merging_and_forgetting(tmp_path):
    data, more = mixed_table(120, 1), mixed_table(80, 2)
    model = learn(data, "y", families=FAMILIES, average=True)
    model.save(tmp_path / "m.likely")
    again = likely.load(tmp_path / "m.likely")
    assert again == model
    assert again.average
    assert again.arc_probability == model.arc_probability
    both = {name: data[name] + more[name] for name in data}
    whole = learn(both, "y", families=FAMILIES, average=True)
    for grown in (again.update(more), again + learn(more, "y", families=FAMILIES, average=True)):
        assert grown.average
        assert grown.arc_probability == pytest.approx(whole.arc_probability, abs=1e-9)
        np.testing.assert_allclose(grown.posterior(data).probabilities, whole.posterior(data).probabilities, atol=1e-9)
    left = whole.forget(more)
    np.testing.assert_allclose(left.posterior(data).probabilities, model.posterior(data).probabilities, atol=1e-9)


def test_relearning_turns_it_on_and_off_without_the_data():
    data = mixed_table(150)
    plain, averaged = (learn(data, "y", families=FAMILIES, average=a) for a in (False, True))
    assert plain.relearn(average=True) == averaged
    assert averaged.relearn(average=False) == plain
    assert averaged.relearn(smoothing=0.5).average
    assert plain.arc_probability == averaged.arc_probability


def test_missing_and_unseen_cells_behave():
    model = learn(mixed_table(), "y", families=FAMILIES, average=True)
    nothing = dict.fromkeys(c.name for c in model.schema.columns)
    assert model.posterior([nothing]).probabilities[0] == pytest.approx(model.class_prior, abs=1e-15)
    row = nothing | {"letter": "never", "shift": 1e9}
    ledger = model.explain(row)
    assert sum(ledger.probabilities) == pytest.approx(1.0)
    assert all(math.isfinite(v) for v in ledger.log_joint)
    assert ledger.to_dict()["evidence"][0]["arc_probability"] is not None


def test_cross_validation_averages_too():
    data = mixed_table()
    found = [likely.evaluate(data, target="y", plain=True, average=a).log_loss for a in (True, False)]
    model = learn(data, "y", average=True)
    assert found[0] != found[1]
    assert likely.evaluate(data, model=model, folds=5).log_loss == found[0]


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ({"smoothing": 0}, "smoothing above 0"),
        ({"families": {"noise": Gaussian(tie="column")}}, "tie=None"),
        ({"smoothing": {"noise": NormalInverseGamma(0.0, 0.0, 1.0, 1.0)}}, "above 0"),
    ],
)
def test_what_has_no_marginal_likelihood_is_refused_with_a_remedy(settings, reported):
    data = mixed_table(50)
    with pytest.raises(UsageError, match=reported):
        learn(data, "y", average=True, **settings).posterior(data)
    assert None in learn(data, "y", **settings).arc_probability.values()


def test_texts_keep_their_arc():
    mails = ["buy cheap pills now at once", "lunch at noon with all of us"] * 10
    data = {"text": mails, "n": [1.0, 2.0, 3.0, 4.0] * 5, "y": ["spam", "good"] * 10}
    with pytest.warns(LikelyWarning, match=r"averaging changes nothing of column 'text' \(text\): a family without a marginal"):
        model = likely.learn(data, "y", families={"text": "text"}, average=True)
    assert model.arc_probability["text"] is None
    plain = learn(data, "y", families={"text": "text"}, plain=True)
    with pytest.warns(LikelyWarning, match="column 'text' \\(text\\)"):
        plain.relearn(average=True)
    assert model.predict([{"text": "cheap pills", "n": 2.0}])[0] == "spam"
