"""Text by hand, and what a prior does for outcomes that were never seen: text and die."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import likely
from likely.errors import LikelyError
from likely.teaching.examples._sheet import CLOSE, Sheet, decimal

MAILS = (
    ("buy cheap pills", "spam"),
    ("buy now", "spam"),
    ("lunch now", "good"),
    ("agenda lunch tomorrow", "good"),
)
NEW = "buy pills now aardvark"
FACES = (1, 2, 3, 4, 5, 6)
ROLLS = (1, 2, 6, 6, 3)
WORDS = {"aardvark": 0, "about": 2, "all": 2, "Africa": 1, "apple": 0, "anxious": 0, "gas": 2, "oil": 1, "Zaire": 0}


def text(sheet: Sheet) -> None:
    """P(w | v) = (n_k + 1) / (n + |Vocabulary|), then v_NB = argmax P(v) · Π P(w | v)."""
    classes = ("good", "spam")
    bags = {v: Counter(word for mail, label in MAILS if label == v for word in mail.split()) for v in classes}
    vocabulary = sorted(set().union(*bags.values()))
    sheet.head("Four mails:")
    sheet.table([["mail", "class v"], *([f'"{mail}"', label] for mail, label in MAILS)])
    sheet.head(f"Vocabulary: {', '.join(vocabulary)}; |Vocabulary| = {len(vocabulary)}. Counts n_k of each word:")
    sheet.table([["", *vocabulary, "n"], *([v, *(str(bags[v][w]) for w in vocabulary), str(bags[v].total())] for v in classes)])
    sheet.head(f'A new mail: "{NEW}". "aardvark" is in no mail: it is not in the vocabulary, and is skipped.')
    joint = {}
    for v in classes:
        prior = Fraction(sum(label == v for _, label in MAILS), len(MAILS))
        size = bags[v].total() + len(vocabulary)
        known = [w for w in NEW.split() if w in vocabulary]
        shares = [Fraction(bags[v][w] + 1, size) for w in known]
        joint[v] = prior * math.prod(shares, start=Fraction(1))
        for w, share in zip(known, shares, strict=True):
            sheet.write(f"  P({w} | {v}) = (n_k + 1)/(n + |Vocabulary|) = ({bags[v][w]}+1)/{size} = {share}")
        sheet.write(f"  P({v}) · Π P(w | {v}) = {prior} · {' · '.join(map(str, shares))} = {joint[v]}")
    best = max(joint, key=lambda v: joint[v])
    paper = joint["spam"] / sum(joint.values())
    divided = f"({joint['spam']}) / ({sum(joint.values())})"
    sheet.head(f"v_NB = argmax = {best};  P(spam | mail) = {divided} = {paper} = {decimal(paper)}")
    table = {"text": [mail for mail, _ in MAILS], "v": [label for _, label in MAILS]}
    model = likely.learn(table, "v", families={"text": likely.Text(kind="multinomial")}, smoothing=1)
    sheet.check("P(spam | mail)", paper, model.explain({"text": NEW}).posterior["spam"])
    sheet.keep("P(spam | mail)", paper)
    sheet.keep("v_NB", best)
    sheet.keep("joint", {v: str(p) for v, p in joint.items()})


def text_picture() -> str:
    """P(w | v) of every word of the four mails, in spam and in good ones."""
    from likely.plots.bars import Bar, BarChart, bars_svg

    table = {"text": [mail for mail, _ in MAILS], "v": [label for _, label in MAILS]}
    model = likely.learn(table, "v", families={"text": likely.Text(kind="multinomial")}, smoothing=1)
    share = {(row["value"], row["class"]): row["probability"] for row in model.parameters["text"]}
    words = sorted({word for word, _ in share}, key=lambda word: (round(share[word, "good"] - share[word, "spam"], 9), word))
    rows = [
        (word, [Bar(share[word, v], colour=i, value=f"{share[word, v]:.3f}") for i, v in enumerate(model.classes)])
        for word in words
    ]
    subtitle = "(n_k + 1) / (n + |Vocabulary|), from four mails"
    return bars_svg(BarChart("Text: words of spam and good mails", subtitle, "P(w | v)", rows, legend=model.classes))


def die(sheet: Sheet) -> None:
    """MAP with a Dirichlet prior: (α + β − 1) / Σ (α + β − 1), for outcomes that were never seen, too."""
    sheet.head(f"A die is rolled {len(ROLLS)} times: {', '.join(map(str, ROLLS))}. How probable is a 4?")
    seen = Counter(ROLLS)
    found = likely.estimate(list(ROLLS), prior=likely.Dirichlet(dict.fromkeys(FACES, 2)))
    smoothed = len(ROLLS) + len(FACES)
    sheet.write("  Dirichlet(2, 2, 2, 2, 2, 2) is a pseudocount of one for each face: β − 1 = 1.")
    rows = [["face", "α (counted)", "θ_ML", "θ_MAP = (α + 1)/11", "posterior mean = (α + 2)/17"]]
    for face in FACES:
        best, mean = Fraction(seen[face] + 1, smoothed), Fraction(seen[face] + 2, smoothed + len(FACES))
        rows.append([str(face), str(seen[face]), str(Fraction(seen[face], len(ROLLS))), str(best), str(mean)])
        _agree(f"the MAP of {face}", best, found.map[face])
        _agree(f"the mean of {face}", mean, found.posterior.mean[face])
        sheet.keep(f"P({face})", best)
    sheet.table(rows)
    sheet.write("  checked with the library in every line")
    total = sum(WORDS.values())
    sheet.head(f"A document is {total} rolls of a die with a side for every word. Words counted in one, of {len(WORDS)}:")
    sheet.table([["word", *WORDS], ["count", *map(str, WORDS.values())]])
    words = likely.estimate([w for w, n in WORDS.items() for _ in range(n)], prior=likely.Dirichlet(dict.fromkeys(WORDS, 2)))
    paper = Fraction(1, total + len(WORDS))
    sheet.write(f"  ML: P(aardvark) = 0/{total} = 0, and a document with one aardvark is impossible.")
    sheet.write(f"  MAP, a pseudocount of one for each word: (0 + 1)/({total} + {len(WORDS)}) = {paper}")
    sheet.check("P(aardvark)", paper, words.map["aardvark"])
    sheet.write('  (A slide counts "gas" once; it stands in the text twice.)')
    sheet.keep("P(aardvark)", paper)


def die_picture() -> str:
    """Posterior density of the probability of a face seen twice, once and never."""
    found = likely.estimate(list(ROLLS), prior=likely.Dirichlet(dict.fromkeys(FACES, 2)))
    return likely.pictures.parameters(found, [6, 1, 4], title="Die: posterior of the probability of 6, 1 and 4")


def _agree(what: str, paper: Fraction, library: float) -> None:
    if not math.isclose(paper, library, rel_tol=CLOSE):
        raise LikelyError(f"{what} differs between paper and library: please report it")
