"""Write docs/gallery.md and docs/gallery/*.svg: the figures of the worked examples, each with its command and its call.

python scripts/make_gallery.py
"""

from __future__ import annotations

from pathlib import Path

from likely.teaching import examples

DOCS = Path(__file__).resolve().parent.parent / "docs"

# For each example: heading, what the picture shows, the call for one's own data.
SHOWN = {
    "candies": (
        "Posterior and prediction against draws",
        ("Five kinds of candy bags, one lime after another. Above, P(hᵢ | d): the posterior of every bag; h₅ wins by "
            "degrees, none is eliminated but h₁. Below, the probability that the next candy is a lime: the Bayes-optimal "
            "prediction Σ P(lime | h) P(h | d), and that of h_MAP alone, which is certain from the third lime on."),
        'likely.pictures.hypotheses(bags, ["lime"] * 10, "lime")',
    ),
    "concepts": (
        "Learning from labelled examples with noise",
        ("Six hypotheses x ≥ t on pairs (x, y), one label in ten wrong. The fifth label is wrong: the posterior of the true "
            "hypothesis falls, and recovers."),
        "likely.pictures.hypotheses(likely.Hypotheses.supervised(...), pairs)",
    ),
    "theta": (
        "A continuous hypothesis space",
        ("θ = P(heads) of a coin under a uniform prior, after 7 heads in 10 throws: p(θ | d) = Beta(8, 4), θ_MAP = 0.7, and "
            "the probability of heads 2/3."),
        "likely.pictures.theta(grid)",
    ),
    "die": (
        "Outcomes never seen",
        ("A die with prior Dirichlet(2, …, 2) after the rolls 1 2 6 6 3: posterior density of θ₆ (seen twice), θ₁ (once) and "
            "θ₄ (never)."),
        "likely.pictures.parameters(likely.estimate(rolls, prior=likely.Dirichlet({...})))",
    ),
    "wrappers": (
        "Likelihood curve",
        ("The likelihood of θ = P(cherry) after 60 cherries and 40 limes, and its logarithm: both have their maximum at "
            "θ_ML = c/(c + m) = 0.6."),
        "likely.pictures.likelihood(estimate)",
    ),
    "insurance": (
        "Class densities",
        "p(age | risk) of the car insurance, one Gaussian with μᵢₖ and σᵢₖ for each class. At 30 years, 0.0359 against 0.0120.",
        'likely.pictures.class_densities(model, "Age")',
    ),
    "discriminant": (
        "Decision surface: line and parabola",
        ("Gaussian naive Bayes on two columns. With tied variances σᵢ the squares cancel and the border is the line "
            "4x + 6/5·y = 101/5, as in LDA; with own variances σᵢₖ it is a parabola, as in QDA."),
        'likely.pictures.decision_surface(model, "x", "y", data)',
    ),
    "spam": (
        "Bayes' rule on events",
        'P(spam) of a mail before a word of it is read, with "buy" in it, and with "buy" and "lottery": 0.6, 0.9, 0.923.',
        'likely.Hypotheses(prior=prior, likelihood=likelihood).observe("buy").plot()',
    ),
    "text": (
        "Words of two classes",
        "P(w | v) = (n_k + 1) / (n + |Vocabulary|) of every word of four mails: no word has a probability of zero.",
        'likely.learn(mails, "v", families={"text": likely.Text("multinomial")}, smoothing=1).plot()',
    ),
    "average": (
        "Posterior of sixteen structures",
        ("P(h | D) of every choice of the columns that depend on PlayTennis, from their marginal likelihoods: no choice is "
            "certain, so Bayes-optimal prediction averages over all."),
        "likely.compare_models(one, other).plot()",
    ),
    "tennis": (
        "Naive Bayes as a network",
        "PlayTennis: the class is the parent of every column. Each node has its table θᵢⱼₖ as a tooltip.",
        "likely.pictures.naive_bayes(model)",
    ),
    "ball": ("The same on six days", "PlayBall.", "likely.pictures.naive_bayes(model)"),
    "icecream": (
        "Ice cream and drowning",
        "They depend on each other (G = 292.2), and are independent given the weather (G = 0).",
        'likely.Network("weather -> ice, weather -> drowning").fit(data).svg()',
    ),
    "sky": (
        "A network with missing cells",
        "Sky and weather of ten days, two without the sky: the tables are those that EM converges to.",
        'likely.Network("sky -> weather").fit(data).svg()',
    ),
    "aode": (
        "Naive Bayes, TAN and AODE as networks",
        ("PlayTennis: the class is the parent of every column; in TAN each column has one more parent, by a tree; "
            "AODE averages over the four networks in which one column is a parent of all others."),
        'likely.Network.learn_structure(data, method="tan", target="PlayTennis").svg()',
    ),
    "em": (
        "EM on two Gaussians",
        "The fitted densities over the six numbers, and the log-likelihood by iteration, which never decreases.",
        "likely cluster DATA -k 2 --picture clusters.svg",
    ),
}

INTRODUCTION = """\
# Gallery

<!-- Made by scripts/make_gallery.py; change that, not this page. -->

The figures of the lecture notes, each by one command and one call. Every picture is plain SVG without scripts: it follows the
light or dark scheme of its reader, has a text alternative, tooltips, and colours and dashes that can be told apart without
colour vision. `likely draw MODEL DATA --columns A,B -o out.svg` draws the density of a column, or the decision surface of two,
of your own model.

```python
import likely

model = likely.learn("src/likely/data/loans.csv", "outcome", families={"income": "gaussian", "amount": "gaussian"})
svg = likely.pictures.class_densities(model, "income")
surface = likely.pictures.decision_surface(model, "income", "amount", "src/likely/data/loans.csv")
assert svg.startswith("<svg") and "Decision surface" in surface
```

Accuracy against the number of rows learned from is drawn by `likely curve`: see [twenty newsgroups](newsgroups.md).
"""


def page() -> str:
    """The page, in the order of the pictures."""
    parts = [INTRODUCTION]
    for name, (heading, text, call) in SHOWN.items():
        command = f"likely examples {name} --picture {name}.svg"
        parts.append(f"## {heading}\n\n{text}\n\n`{command}` · `{call}`\n\n![{heading}: {name}](gallery/{name}.svg)\n")
    return "\n".join(parts)


def main() -> None:
    """Draw all pictures and write the page."""
    folder = DOCS / "gallery"
    folder.mkdir(exist_ok=True)
    for name in SHOWN:
        (folder / f"{name}.svg").write_text(examples.picture(name), encoding="utf-8")
    (DOCS / "gallery.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
