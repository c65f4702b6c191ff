"""Texts: the table of word weights, and the SQL that splits texts into words and joins them with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.errors import UsageError
from likely.export._dialects import Dialect, Expression
from likely.export._expressions import ExpressionWriter
from likely.export._term_forms import Array, ExportedModel, TextTerm, bounded
from likely.export._word_splitting import finished, joined_words, split

VALUES = {"raw": "CAST(n AS DOUBLE PRECISION)", "log": "LN(1 + CAST(n AS DOUBLE PRECISION))", "once": "1e0"}


def weights_of(likelihood: Any) -> dict[str, Any]:
    """The words of a text column with their weights, and how a document is scored by them."""
    table, known = _weights(likelihood)
    return {
        "words": likelihood.words.vocabulary.words(),
        "weights": table.tolist(),
        "known": known.tolist(),
        "adds": likelihood.family.adds,
        "ngrams": list(likelihood.family.ngrams),
        "length": likelihood.family.length,
        "document": {name: np.asarray(value).tolist() for name, value in _document(likelihood).items()},
    }


def word_table(scored: ExportedModel) -> Any:
    """The table of words that the SQL of a model with texts is joined with, as Arrow."""
    import pyarrow as pa

    parts = []
    for term in scored.of(TextTerm):
        table, known = _weights(term.likelihood)
        words = term.likelihood.words.vocabulary.words()
        columns: dict[str, Any] = {"text_column": [term.column] * len(words), "word": words, "known": known}
        columns |= {f"w{c}": table[:, c].copy() for c in range(len(scored.classes))}
        parts.append(pa.table(columns))
    if not parts:
        raise UsageError("the model has no column of text: its SQL needs no table of words")
    return pa.concat_tables(parts)


def _weights(likelihood: Any) -> tuple[Array, Array]:
    """Weight of each word for each class, and 1 for the words that some document has."""
    table = likelihood.table
    if likelihood.idf is not None:
        table = table * likelihood.idf[:, None]
    known = np.asarray(likelihood.words.table[: len(table)].any(1), dtype=np.float64)
    return bounded(table), known


def _document(likelihood: Any) -> dict[str, Any]:
    """Parameters of a document besides its words: exponent of length, saturation, weight and constants of a calibrated term."""
    if likelihood.curve is None:
        return {"exponent": 0.0, "weight": 1.0, "constant": bounded(likelihood.constant)}
    curve = likelihood.curve
    fitted = curve.bias + (0.0 if curve.copies is None else np.log(curve.copies))
    constant = fitted - np.maximum(likelihood.log_prior, -1e6)
    scaled = {} if curve.saturation is None else {"saturation": curve.saturation.array}
    return {"exponent": curve.exponent, "weight": likelihood.weight, "constant": constant, **scaled}


def _grams(syntax: Dialect, words: str, text: str, ngrams: tuple[int, int]) -> str:
    """All n-grams of neighbouring words, from words with their places; n-grams that a text ends before are null."""
    if ngrams == (1, 1):
        return words
    neighbours = [f"LEAD(likely__word, {k}) OVER (PARTITION BY {text} ORDER BY likely__place)" for k in range(1, ngrams[1])]
    grams = {n: joined_words(syntax, ["likely__word", *neighbours[: n - 1]]) for n in range(ngrams[0], ngrams[1] + 1)}
    named = ", ".join(f"{gram} AS likely__gram{n}" for n, gram in grams.items())
    listed = f"SELECT {text}, {named} FROM ({words}) AS likely__words"
    each = (f"SELECT {text}, likely__gram{n} AS likely__word FROM ({listed}) AS likely__grams" for n in grams)
    return " UNION ALL ".join(each)


class WordWriter:
    """SQL of the terms of texts: one common table expression for each column, joined by the text itself."""

    def __init__(self, scored: ExportedModel, syntax: Dialect, write: ExpressionWriter, parameters: str) -> None:
        self.scored, self.syntax, self.write, self.parameters = scored, syntax, write, parameters
        self.terms = scored.of(TextTerm)
        for term in self.terms:
            self._check(term)

    def _check(self, term: TextTerm) -> None:
        family = term.likelihood.family
        if family.unit != "word" or family.pattern is not None:
            raise UsageError(
                f"column {term.column!r} is text with a pattern, or n-grams of characters, which have no SQL",
                column=term.column,
                remedy="learn it from words: Text(), with n-grams of words if need be",
            )

    def expressions(self, inputs: str) -> dict[str, Expression]:
        """The common table expressions by name; `inputs` is the stage that has the texts."""
        from sqlglot import parse_one

        texts: dict[str, str] = {}
        for i, term in enumerate(self.terms):
            text = f"likely__w{i}"
            distinct = f"(SELECT DISTINCT {text} FROM {self._quoted(inputs)} WHERE NOT {text} IS NULL) AS likely__distinct"
            if self.syntax.name == "sqlite":  # words with their text beside them would take room with the square of its length
                numbered = f"likely__texts{i}"
                texts[numbered] = f"SELECT {text}, ROW_NUMBER() OVER (ORDER BY {text}) AS likely__id FROM {distinct}"
                sums = self._select(term, text, numbered, "likely__id")
                joined = f"({sums}) AS likely__sums JOIN {numbered} ON {numbered}.likely__id = likely__sums.likely__id"
                texts[f"likely__words{i}"] = f"SELECT {numbered}.{text}, likely__sums.* FROM {joined}"
            else:
                texts[f"likely__words{i}"] = self._select(term, text, distinct, text)
        parsed = {name: parse_one(text, dialect=self.syntax.name) for name, text in texts.items()}
        return {name: finished(self.syntax, self.write, each) for name, each in parsed.items()}

    def _select(self, term: TextTerm, text: str, distinct: str, key: str) -> str:
        """Sums of each text, which is known by `key`."""
        family = term.likelihood.family
        split_up = split(self.syntax, text, distinct, lowercase=family.lowercase)
        words = _grams(self.syntax, split_up, key, family.ngrams)
        counted = f"SELECT {key}, likely__word, COUNT(*) AS n FROM ({words}) AS likely__split GROUP BY {key}, likely__word"
        value = VALUES[family.adds]
        sums = [f"SUM({value} * p.w{c}) AS likely__sum{c}" for c in range(len(self.scored.classes))]
        sums += [f"SUM({value} * p.known) AS likely__length", f"SUM({value} * {value}) AS likely__square"]
        column = self.write.text(term.column).sql(dialect=self.syntax.name)
        column += f" COLLATE {self.syntax.binary}" if self.syntax.binary else ""
        joined = f"({counted}) AS likely__counted JOIN {self._quoted(self.parameters)} AS p ON p.word = likely__word"
        summed = f"SELECT {key}, {', '.join(sums)} FROM {joined} AND p.text_column = {column} GROUP BY {key}"
        return self._with_size(summed) if "saturation" in _document(term.likelihood) else summed

    def _with_size(self, summed: str) -> str:
        """The sums of each text with the norm of those relative to their mean over the classes."""
        names = [f"likely__sum{c}" for c in range(len(self.scored.classes))]
        mean = f"SELECT *, ({' + '.join(names)}) / {len(names)}e0 AS likely__mean FROM ({summed}) AS likely__summed"
        squares = " + ".join(f"({name} - likely__mean) * ({name} - likely__mean)" for name in names)
        return f"SELECT *, SQRT({squares}) AS likely__size FROM ({mean}) AS likely__centred"

    def _quoted(self, name: str) -> str:
        return str(self.write.name(name).sql(dialect=self.syntax.name))

    def joins(self, inputs: str) -> list[Expression]:
        """Joins of the stage after the inputs with the sums of each text."""
        e, write, found = self.write.e, self.write, []
        for i in range(len(self.terms)):
            name, text = f"likely__words{i}", f"likely__w{i}"
            same = write.compare("EQ", write.column(text, name), write.column(text, inputs))
            found.append(e.Join(this=e.Table(this=write.name(name)), on=same, side="LEFT"))
        return found

    def stage(self, inputs: str) -> dict[str, Any]:
        """Term of each text and class, for the stage after the inputs."""
        found: dict[str, Any] = {}
        for i, term in enumerate(self.terms):
            document = _document(term.likelihood)
            for c in range(len(self.scored.classes)):
                found[f"likely__text{i}_{c}"] = self._term(term, i, c, document, inputs)
        return found

    def _term(self, term: TextTerm, i: int, c: int, document: dict[str, Any], inputs: str) -> Expression:
        e, write, name = self.write.e, self.write, f"likely__words{i}"
        constant = write.number(float(document["constant"][c]))
        added: Any = write.column(f"likely__sum{c}", name)
        length: Any = write.column("likely__length", name)
        size: Any = write.column("likely__size", name)
        if term.likelihood.family.length == "l2":
            root = write.greatest([e.Sqrt(this=write.column("likely__square", name)), write.number(1e-300)])
            added, length, size = (
                e.Paren(this=e.Div(this=each, expression=root.copy(), typed=True)) for each in (added, length, size)
            )
        missing = write.is_null(write.column(f"likely__w{i}", inputs))
        if term.likelihood.curve is None:
            total = write.total([e.Coalesce(this=added, expressions=[write.number(0.0)]), constant])
            return write.case([(missing, write.number(0.0))], total)
        scale = e.Pow(this=length.copy(), expression=write.number(-float(document["exponent"])))
        if "saturation" in document:
            gain, rate, power = document["saturation"].tolist()
            grown = write.total([write.number(1.0), write.times(write.times(write.number(rate), size), scale.copy())])
            factor = e.Pow(this=e.Paren(this=grown), expression=write.number(-power))
            scale = write.times(write.times(scale, write.number(gain)), factor)
        whole = write.times(write.number(float(document["weight"])), write.total([write.times(added, scale), constant]))
        return write.case([(write.compare("GT", length, write.number(0.0)), whole)], write.number(0.0))


__all__ = ["WordWriter", "weights_of", "word_table"]
