"""Likelihood term of a text, linear in the word counts of a document, and readable tables of word weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely.families.base import log
from likely.families.likelihood_form import TextForm
from likely.families.posterior_predictive import log_gamma
from likely.families.statistics import Array
from likely.families.value_tables import log_polya
from likely.families.word_counts import Words
from likely.kernels.parallel import cached_property
from likely.tokenizer import Bags, Vocabulary, word_loops

if TYPE_CHECKING:
    from likely.families._text import Text

MOST_WORDS_SHOWN = 200
# Kind, counts, length and idf of the models that give texts a probability.
GENERATIVE = (("multinomial", "raw", None, False), ("bernoulli", "once", None, False))


@dataclass(frozen=True, eq=False)
class BagOfWordsTerm(TextForm):
    """Log-likelihood linear in the words of a document: a weight for each word and class, plus a constant."""

    curve = None
    family: Text
    words: Words
    pseudocount: float
    background: float  # total pseudocount distributed by the overall frequency of each word

    @cached_property
    def idf(self) -> Array | None:
        """Inverse document frequency of each word: the smoothed logarithm, plus one."""
        if not self.family.idf:
            return None
        documents = self.words.documents.sum()
        return log((1.0 + documents) / (1.0 + self.words.holders.sum(1))) + 1.0

    @cached_property
    def totals(self) -> tuple[Array, float]:
        """Total of all words in each class, and the total pseudocount."""
        total = self.words.total if self.idf is None else self.idf @ self.words.seen
        return total, self.pseudocount * self.words.known + self.background

    def weights(self, ids: NDArray[Any]) -> Array:
        """Log weight of one unit of each of these words in each class; 0 for a word that no document has."""
        seen = self.words.seen_of(ids)
        alive = np.asarray(seen.any(1))[:, None]
        if self.idf is not None:
            seen = seen * self.idf[ids][:, None]
        total, pseudo_total = self.totals
        extra = self.pseudocount + self.background * seen.sum(1, keepdims=True) / max(float(total.sum()), 1e-300)
        if self.family.kind == "bernoulli":
            return np.where(alive, log(seen + extra) - log(self._without(seen, extra)), 0.0)
        if self.family.kind == "complement":
            seen, total = seen.sum(1, keepdims=True) - seen, total.sum() - total
        found = log(seen + extra) - log(total + pseudo_total)
        return np.where(alive, -found if self.family.kind == "complement" else found, 0.0)

    @cached_property
    def table(self) -> Array:
        """Log weight of each word in each class."""
        return np.ascontiguousarray(self.weights(np.arange(len(self.words.vocabulary))))

    @cached_property
    def constant(self) -> Array:
        """Constant of every document: for Bernoulli, the log probability that all words are absent."""
        if self.family.kind != "bernoulli":
            return np.zeros(self.words.classes)
        seen = self.words.seen[self.words.seen.any(1)]
        whole = self.words.documents + 2 * self.pseudocount
        absent = log(self._without(seen, self.pseudocount)) - log(whole)
        # One class per row, so that NumPy sums pairwise: down the columns, 130,000 rounding errors added up to 5e-9.
        return np.asarray(np.ascontiguousarray(absent.T).sum(1))

    @property
    def has_probabilities(self) -> bool:
        """Whether a word has a probability: of each position (multinomial) or of being in a document (Bernoulli)."""
        return (self.family.kind, self.family.adds, self.family.length, self.family.idf) in GENERATIVE

    def alphas(self, ids: NDArray[Any]) -> tuple[Array, Array]:
        """Counts with pseudocounts of these words in each class, and of everything else: the Beta posterior of each word."""
        seen = self.words.seen_of(ids)
        total, pseudo_total = self.totals
        extra = self.pseudocount + self.background * seen.sum(1, keepdims=True) / max(float(total.sum()), 1e-300)
        if self.family.kind == "bernoulli":
            return seen + extra, self._without(seen, extra)
        return seen + extra, np.maximum(total + pseudo_total - seen - extra, 0.0)

    def log_marginal(self, ids: NDArray[Any]) -> float:
        """Log probability of the documents, with the probabilities of these words integrated out."""
        seen, (alpha, rest) = self.words.seen_of(ids), self.alphas(ids)
        if not len(ids):
            return 0.0
        if self.family.kind == "multinomial":
            return log_polya(np.ascontiguousarray(seen.T), (alpha - seen)[:, 0])
        without = np.maximum(self.words.documents - seen, 0.0)
        a, b = (alpha - seen)[:, :1], (rest - without)[:, :1]
        terms = log_gamma(alpha) + log_gamma(rest) - log_gamma(alpha + rest)
        return float((terms - log_gamma(a) - log_gamma(b) + log_gamma(a + b)).sum())

    def _without(self, seen: Array, pseudocount: float | Array) -> Array:
        """Smoothed number of documents of each class without the word; counted, because 1 - p is 0 for p near 1."""
        return np.maximum(self.words.documents - seen, 0.0) + (2 * self.pseudocount - pseudocount)

    def terms(self, bags: Bags, missing: NDArray[np.bool_]) -> Array:
        """Log-likelihood term of each document; 0 for a missing document."""
        out = np.zeros((len(bags), self.words.classes))
        values = self.family.values(bags)
        if self.idf is not None:
            values = values * self.idf[bags.ids]
        few = len(bags.ids) < len(self.words.vocabulary) // 8
        if few and "table" not in self.__dict__:  # for few words the table of all is not worth making
            distinct, ids = np.unique(bags.ids, return_inverse=True)
            word_loops.score_words(ids.astype(np.int32), bags.indptr, values, self.weights(distinct), out)
        else:
            word_loops.score_words(bags.ids, bags.indptr, values, self.table, out)
        if self.family.kind == "bernoulli":
            out += self.constant
        out[missing] = 0.0
        return out

    def details(self, bags: Bags) -> list[tuple[str, float, Array]]:
        """Every word of one document with its count and its term for each class, the strongest first."""
        values = self.family.values(bags) * (1.0 if self.idf is None else self.idf[bags.ids])
        return ranked(self.words.vocabulary, bags, self.weights(bags.ids) * values[:, None])


def ranked(vocabulary: Vocabulary, bags: Bags, evidence: Array) -> list[tuple[str, float, Array]]:
    """Words of one document, ordered by how much their terms differ between the classes."""
    finite = np.where(np.isfinite(evidence), evidence, -1e6)
    order = np.argsort(finite.min(1) - finite.max(1), kind="stable")[:MOST_WORDS_SHOWN]
    names = vocabulary.keep(bags.ids[order]).words() if len(order) else []
    return [(word, float(bags.counts[i]), evidence[i]) for word, i in zip(names, order, strict=True)]


def ranked_words(likelihood: Any, most: int) -> list[list[tuple[str, float]]]:
    """For every class the words with the most evidence for it, against the average of the classes."""
    table = np.where(np.isfinite(likelihood.table), likelihood.table, -50.0)
    contrast = table - table.mean(1, keepdims=True)
    # Importance: evidence times the logarithm of the frequency.
    importance = contrast * np.log1p(likelihood.words.seen.sum(1, keepdims=True))
    places = [np.argsort(-importance[:, c], kind="stable")[:most] for c in range(table.shape[1])]
    return [
        list(zip(likelihood.words.vocabulary.keep(ids).words(), contrast[ids, c].tolist(), strict=True))
        for c, ids in enumerate(places)
    ]


def _share(part: float, rest: float) -> float:
    return float(part / (part + rest)) if part + rest > 0 else 0.0


class WordRows(Sequence[dict[str, Any]]):
    """Table of words as readable rows, made only when it is read: it may have millions."""

    def __init__(self, column: str, likelihood: BagOfWordsTerm, classes: Sequence[Any]) -> None:
        self.column, self.likelihood, self.classes = column, likelihood, classes

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        words, seen, table = self.likelihood.words.vocabulary.words(), self.likelihood.words.seen, self.likelihood.table
        alive = np.flatnonzero(seen.any(1)).tolist()
        has = self.likelihood.has_probabilities
        alpha, rest = self.likelihood.alphas(np.arange(len(words))) if has else (seen, seen)
        return [
            {
                "column": self.column,
                "class": label,
                "value": words[i],
                "count": float(seen[i, c]),
                **({"probability": _share(alpha[i, c], rest[i, c])} if has else {}),
                "weight": float(table[i, c]),
            }
            for c, label in enumerate(self.classes)
            for i in alive
        ]

    def __len__(self) -> int:
        return len(self.classes) * self.likelihood.words.known

    def __getitem__(self, at: Any) -> Any:
        return self._rows[at]
