"""Text columns as bags of words: multinomial, Bernoulli and complement naive Bayes over one table of word counts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likely.bayes.conjugate import DirichletPosterior, IndependentPosterior, beta_of
from likely.bayes.distribution import Distribution
from likely.bayes.parameter_posterior import ParameterPosterior
from likely.errors import LikelyWarning, UsageError
from likely.families._document_words import drawn_documents, words_by_pattern
from likely.families.bag_of_words import GENERATIVE, BagOfWordsTerm, WordRows
from likely.families.base import BlockPrior, Encoded, Labels, Parameters, weighted_responsibilities
from likely.families.document_sample import DocumentSample, SampledOrder, document_keys
from likely.families.family import Family, FittedBlock, SampledCells, Totals
from likely.families.statistics import Array, Statistic
from likely.families.value_tables import improper, weighted_logs
from likely.families.word_counts import Words, roomy
from likely.schema import TEXT, Column
from likely.tokenizer import Bags, Vocabulary, encode, encode_in_parts, encode_texts, encode_tokens, look_up, word_loops
from likely.tokenizer.documents import Documents, Strings, TextChunk

KINDS = ("auto", "multinomial", "bernoulli", "complement")
COUNTS = ("raw", "log", "once")
CHUNK = 1 << 23  # bytes of text, for a user's own pattern
MOST_SAMPLES = 32
LARGE = 1 << 20  # bytes of text from which loops are compiled
PAIR_CLASSES = 2  # with more, features of documents × classes take too long twice, and pairs hardly ever pay


@dataclass(frozen=True)
class Text(Family):
    """Documents as bags of words.

    Parameters
    ----------
    kind : "auto", "multinomial", "bernoulli" or "complement"
        The model: the last three are the textbook's; "auto" counts the logarithm of how often a word occurs and fits the
        weight of each word by leave-one-out.
    ngrams : (int, int)
        The shortest and longest run of words that is counted as one.
    lowercase : bool
        Whether capital letters are folded.
    unit : "word" or "char"
        What is counted.
    pattern : str, optional
        A regular expression that finds the words, in place of the usual one.
    counts : "raw", "log" or "once", optional
        What an occurrence adds; by default what the kind calls for.
    length : None or "l2"
        "l2" gives all documents the same length.
    idf : bool
        Whether rare words get larger weights (inverse document frequency).
    limit : int, optional
        The number of words that are kept at most.
    pairs : bool
        Whether pairs of neighbouring words are tried beside words, with kind "auto" and two classes: they are kept if the
        leave-one-out log loss falls by more than its standard error.
    """

    kind: str = "auto"
    ngrams: tuple[int, int] = (1, 1)
    lowercase: bool = True
    unit: str = "word"
    pattern: str | None = None
    counts: str | None = None
    length: str | None = None
    idf: bool = False
    limit: int | None = None
    pairs: bool = True

    name: ClassVar[str] = "text"
    column_kind: ClassVar[str | None] = TEXT
    single: ClassVar[bool] = False
    shorthand: ClassVar[str] = "kind"

    def __post_init__(self) -> None:
        object.__setattr__(self, "ngrams", tuple(self.ngrams))
        for name, allowed in (("kind", KINDS), ("counts", (None, *COUNTS)), ("length", (None, "l2"))):
            if getattr(self, name) not in allowed:
                raise UsageError(f"Text({name}={getattr(self, name)!r}) is not known: choose one of {allowed}")

    @property
    def adds(self) -> str:
        """What one word adds: its count, the logarithm of one plus its count, or one."""
        return self.counts or {"auto": "log", "bernoulli": "once"}.get(self.kind, "raw")

    @property
    def tries_pairs(self) -> bool:
        """Whether pairs of words may be added in the second stage."""
        counts_words = self.unit == "word" and self.ngrams == (1, 1) and self.pattern is None and self.adds == "log"
        return self.pairs and self.kind == "auto" and counts_words and self.length is None and not self.idf and not self.limit

    def bags(self, text: TextChunk, vocabulary: Vocabulary, frozen: bool = True) -> Bags:
        """Documents as bags of the vocabulary's words; unless it is frozen, new words are added to it.

        Parameters
        ----------
        text : TextChunk
            The documents.
        vocabulary : Vocabulary
            The words and their codes.
        frozen : bool, default=True
            Whether new words are left out.

        Returns
        -------
        Bags
            A bag a document.
        """
        if self.pattern is not None:
            words = words_by_pattern(text, self.pattern, self.lowercase)
            return encode_tokens(words, vocabulary, ngrams=self.ngrams, frozen=frozen)
        if isinstance(text, list):
            return encode_texts(text, vocabulary, frozen=frozen, **self._reading)
        return encode(*text, vocabulary, frozen=frozen, **self._reading)

    @property
    def _reading(self) -> dict[str, Any]:
        return {"ngrams": self.ngrams, "unit": self.unit, "lowercase": self.lowercase}

    def look_up(self, text: TextChunk, vocabulary: Vocabulary, then: Callable[[int, int, Bags], None]) -> None:
        """Call `then` with bags of the vocabulary's words, a chunk of documents at a time, on the thread that made them.

        Parameters
        ----------
        text : TextChunk
            The documents.
        vocabulary : Vocabulary
            The words and their codes.
        then : callable
            Called with the first and last place of a chunk, and its bags.
        """
        if self.pattern is not None:
            bags = self.bags(text, vocabulary)
            then(0, len(bags), bags)
        else:
            look_up(text, vocabulary, then, **self._reading)

    def values(self, bags: Bags) -> Array:
        """What each word of each bag adds.

        Parameters
        ----------
        bags : Bags
            The documents.

        Returns
        -------
        array
            One number for each entry of the bags.
        """
        if self.adds == "once":
            values = np.ones(len(bags.counts))
        else:
            values = bags.counts.astype(np.float64) if self.adds == "raw" else np.log1p(bags.counts)
        if self.length == "l2" and len(values):
            lengths = np.sqrt(np.bincount(_owner(bags), values * values, len(bags)))
            values = values / np.repeat(np.maximum(lengths, 1e-300), np.diff(bags.indptr))
        return values

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """Word counts by class."""
        vocabulary, documents, total = Vocabulary(), np.zeros(classes), np.zeros(classes)
        table = np.zeros((0, classes * self._parts))
        # A row with responsibilities cannot be left out of one class: no sample is kept.
        samples = self.kind == "auto" and labels.ndim == 1
        sampled, whole = [DocumentSample.empty()], labels.ndim == 1
        ordered = SampledOrder(self.lowercase) if samples and self.tries_pairs and classes <= PAIR_CLASSES else None
        for a, b, bags in self._parts_of(rows.documents):
            assert rows.documents is not None
            before, vocabulary = len(vocabulary), bags.vocabulary
            table = roomy(table, len(vocabulary), _most_words(rows.documents.ends, b, len(vocabulary)))
            # Reading unwritten memory before writing it costs two page faults: new rows are written first.
            table[before : len(vocabulary)].fill(0.0)
            if labels.ndim == 2:
                share = weighted_responsibilities(labels[a:b], weights[a:b])
                self.share(bags, np.where(rows.documents.missing[a:b, None], 0.0, share), table, documents)
                continue
            used = np.where(rows.documents.missing[a:b], -1, labels[a:b])
            whole &= bool((used >= 0).all() and (weights[a:b] == 1.0).all())
            word_loops.count_words(bags.ids, bags.indptr, self.values(bags), used, weights[a:b], table, documents, total)
            if samples:
                keys = document_keys(rows.documents.part(a, b)) if rows.keys is None else rows.keys[a:b]
                sampled.append(DocumentSample.of(bags, keys, used, weights[a:b]))
                if ordered is not None:
                    ordered.see(keys, (used >= 0) & (weights[a:b] > 0))
            if len(sampled) > MOST_SAMPLES:
                sampled = [DocumentSample.together(sampled)]
        sample = DocumentSample.together(sampled) if samples else None
        if sample is not None and ordered is not None and rows.documents is not None:
            sample = ordered.of(sample, rows.documents, vocabulary)
        exact = whole and self.length is None and self.adds != "log"  # integers, whose sum does not depend on the order
        return [Words(vocabulary, table, documents, sample, total=total if exact else None, all_known=whole)]

    def _parts_of(self, documents: Documents | Strings | None) -> Iterator[tuple[int, int, Bags]]:
        """Bags of a chunk of documents after the other, to bound the memory; the vocabulary grows on the way."""
        if documents is None or len(documents.ends) < 2:
            return
        rows = len(documents.ends) - 1
        if self.pattern is None:
            if documents.ends[-1] - documents.ends[0] > LARGE:
                word_loops.count_words.prepare()
            yield from encode_in_parts(documents.part(0, rows), **self._reading)
            return
        vocabulary = Vocabulary()
        for a, b in _chunks(documents):
            bags = self.bags(documents.part(a, b), vocabulary, frozen=False)
            vocabulary = bags.vocabulary
            yield a, b, bags

    def share(self, bags: Bags, share: Array, table: Array, documents: Array) -> None:
        """Add bags with responsibilities.

        Parameters
        ----------
        bags : Bags
            The documents.
        share : array
            Weighted responsibilities, documents × classes.
        table : array
            Words × classes: what the words add is added to it.
        documents : array
            One number a class: the weights are added to it.
        """
        classes = len(documents)
        documents += share.sum(0)
        word_loops.count_shares(bags.ids, bags.indptr, self.values(bags), share, table[:, :classes])
        if self._parts > 1:
            word_loops.count_shares(bags.ids, bags.indptr, np.ones(len(bags.ids)), share, table[:, classes:])

    def truncate(self, statistic: Words) -> Words:
        """Counts with at most `limit` words; cut only when exceeded by a quarter, so that cuts are rare."""
        if self.limit is None or len(statistic.vocabulary) <= self.limit * 5 // 4:
            return statistic
        warnings.warn(
            f"more than {self.limit:,} words: those that the fewest documents hold are dropped; raise limit= to keep them",
            LikelyWarning, stacklevel=2,
        )  # fmt: skip
        return statistic.capped(self.limit)

    @property
    def _parts(self) -> int:
        """Number of tables: document frequencies are counted too where they are needed and differ from the counts."""
        return 2 if self.kind == "auto" or (self.idf and self.kind != "bernoulli") else 1

    @property
    def for_each_column(self) -> bool:
        """Whether naming the family for all columns means a block for each of them."""
        return True

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        statistics: Sequence[Words],
        priors: Sequence[BlockPrior],
        classes: Sequence[Any],
        edges: Sequence[Array | None] | None = None,
    ) -> list[Parameters]:
        """Log weight of each word by class: (count + pseudocount) / total."""
        ((column,),), (words,), (prior,) = blocks, statistics, priors
        if prior.named:
            raise UsageError(
                f"column {column.name!r} is text, and its prior names the word {prior.named[0]!r}: words have no "
                f"pseudocounts of their own; pass a number, or MEstimate(m, 'background')"
            )
        # "auto" without its second stage is the multinomial over log counts.
        likelihood = BagOfWordsTerm(self, words, prior.unseen(max(words.known, 1)), prior.background)
        k = len(classes)
        rows = WordRows(column.name, likelihood, classes)
        return [Parameters((column.name,), likelihood, rows, k * words.known, k * max(words.known - 1, 0))]

    def settings(self) -> dict[str, Any]:
        """Settings that make this family again."""
        usual = asdict(Text())
        own = {name: value for name, value in asdict(self).items() if value != usual[name] or name == "kind"}
        return own | ({"ngrams": list(self.ngrams)} if "ngrams" in own else {})

    @classmethod
    def example(cls) -> Family:
        """The textbook's multinomial model."""
        return cls("multinomial")

    def counting_settings(self) -> dict[str, Any]:
        """All but the model; of that, whether documents are sampled and what an occurrence adds."""
        return self.settings() | {"kind": self.kind == "auto", "counts": self.adds}

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """Any text can be counted."""
        return None

    def not_generative(self, prior: BlockPrior) -> str:
        """Weighted words have no probability; otherwise the likelihood is that of the words in one order."""
        generative = (self.kind, self.adds, self.length, self.idf) in GENERATIVE
        return "" if generative else "has words that are weighted; choose kind='multinomial' or 'bernoulli'"

    def log_prior_density(self, block: FittedBlock) -> float:
        """Log density of a Dirichlet (multinomial) or Beta (Bernoulli) prior of the words."""
        self._refuse_em()
        likelihood: BagOfWordsTerm = block.likelihood
        alive = likelihood.words.seen.any(1)
        seen = likelihood.words.seen[alive]
        if self.kind == "bernoulli":
            share = (seen + likelihood.pseudocount) / (likelihood.words.documents + 2 * likelihood.pseudocount)
            logs = np.log(share) + np.log1p(-share)
            return weighted_logs(np.array(likelihood.pseudocount), logs) if likelihood.pseudocount else 0.0
        overall = seen.sum(1, keepdims=True)
        extra = likelihood.pseudocount + likelihood.background * overall / max(float(overall.sum()), 1e-300)
        return weighted_logs(np.broadcast_to(extra, seen.shape), likelihood.table[alive])

    def for_em(self, name: str, asked_for: bool) -> Family | None:
        """Generative model behind "auto": multinomial over log counts."""
        self._refuse_em()
        return replace(self, kind="multinomial", counts=self.adds) if self.kind == "auto" else self

    def _refuse_em(self) -> None:
        """Refuse models that are not generative: EM maximises the likelihood of what is counted."""
        if self.kind == "complement" or self.idf or self.limit:
            raise UsageError(
                f"{self} cannot be learned from rows without labels: choose kind='multinomial' or 'bernoulli', no idf, no limit"
            )

    def sample(self, block: FittedBlock, classes: NDArray[np.int64], rng: np.random.Generator) -> SampledCells:
        """Documents of words drawn from the class, with Poisson lengths of its mean, in random order."""
        likelihood: Any = block.likelihood
        if self.unit != "word" or self.ngrams != (1, 1) or self.kind == "complement":
            self.cannot("be sampled from unless it counts single words by a multinomial or Bernoulli model")
        known = np.flatnonzero(block.statistic.seen.any(1))
        names = np.array(block.statistic.vocabulary.keep(known).words(), dtype=object)
        documents = np.empty(len(classes), dtype=object)
        documents[:] = drawn_documents(likelihood, names, known, classes, rng)
        return {block.columns[0].name: documents}

    def parameter_posteriors(self, block: FittedBlock) -> list[ParameterPosterior]:
        """Dirichlet over the words (multinomial), or a Beta for each word (Bernoulli)."""
        form: BagOfWordsTerm = block.likelihood
        if not form.has_probabilities:
            self.cannot("give a posterior of its words unless it is a multinomial or Bernoulli model of raw counts")
        known = np.flatnonzero(block.statistic.seen.any(1))
        names = block.statistic.vocabulary.keep(known).words()
        alpha, rest = form.alphas(known)
        if self.kind == "multinomial":
            return [DirichletPosterior(dict(zip(names, part.tolist(), strict=True))) for part in alpha.T]
        pairs = zip(alpha.T.tolist(), rest.T.tolist(), strict=True)
        return [
            IndependentPosterior({name: beta_of(*both) for name, *both in zip(names, yes, no, strict=True)})
            for yes, no in pairs
        ]

    def log_marginal(self, block: FittedBlock) -> float:
        """Dirichlet–multinomial of the words in one order, or a Beta–Bernoulli for each word."""
        form: BagOfWordsTerm = block.likelihood
        if not form.has_probabilities:
            self.cannot("give a marginal likelihood unless it is a multinomial or Bernoulli model of raw counts")
        known = np.flatnonzero(block.statistic.seen.any(1))
        if len(known) and not form.pseudocount + form.background > 0:
            raise improper(block.name, "words have no pseudocount", "choose smoothing above 0 for it")
        return form.log_marginal(known)

    def totals(self, block: FittedBlock) -> dict[tuple[str, str], Totals]:
        """Documents, and what their words add."""
        words: Words = block.statistic
        return {(block.name, "documents"): words.documents, (block.name, f"words {self.adds}"): words.seen.sum(0)}

    def marginals(self, posterior: ParameterPosterior, line: Mapping[str, Any]) -> dict[str, Distribution]:
        """The probability of the line's word."""
        return {"probability": posterior.marginal(line["value"])}


def _chunks(documents: Documents | Strings) -> list[tuple[int, int]]:
    """Chunks of documents of some megabytes of text, to bound the memory of their bags."""
    ends = documents.ends
    edges = np.searchsorted(ends, np.arange(ends[0] + CHUNK, ends[-1], CHUNK))
    cuts = sorted({0, *edges.tolist(), len(ends) - 1})
    return list(pairwise(cuts))


def _most_words(ends: NDArray[np.int64], read: int, found: int) -> int:
    """Upper bound of the number of words: in proportion to the text, because new words become rarer."""
    return int(found * (ends[-1] - ends[0]) / max(ends[read] - ends[0], 1))


def _owner(bags: Bags) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(bags)), np.diff(bags.indptr))
