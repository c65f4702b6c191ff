"""Predictions beside the rows they are for, written batch by batch: whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from likely.atomic import whole_file
from likely.cli.terminal import is_terminal, plain, standard_output, to_json
from likely.errors import DataError, UsageError

if TYPE_CHECKING:
    from likely.bayes import Posterior
    from likely.comparison import Comparison
    from likely.curve import LearningCurve
    from likely.model import Model
    from likely.sources import Batch, Source

FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
FORMULA = r"^[=+\-@\t\r]"
Columns = dict[str, Any]


class Writer(Protocol):
    """A table that grows at its end."""

    def write(self, columns: Columns) -> None:
        """Some more rows, as columns of equal length."""

    def close(self) -> None:
        """The table is whole."""


def format_of(path: str, excel_safe: bool = False) -> str:
    """What the ending of a path asks for; standard output gets CSV. Formulas can be escaped in CSV and TSV alone."""
    if path == "-":
        return "csv"
    kind = FORMATS.get(Path(path).suffix.lower())
    if kind is None:
        raise UsageError(f"-o {path!r} has an ending that is not known: use one of {', '.join(FORMATS)}")
    if excel_safe and kind not in ("csv", "tsv"):
        raise UsageError(f"--excel-safe is for .csv and .tsv: {path!r} holds no formulas, leave the option out")
    return kind


def predictions(model: Model, source: Source, absent: str, *, as_written: bool) -> Iterator[tuple[Batch, Posterior]]:
    """Each batch with all of its columns, and the posterior of its rows; of texts in folders, only the file is named.

    As written, every cell of a text file keeps its spelling (007 stays 007); else columns that the model takes for
    numbers come as numbers.
    """
    from likely.schema import CATEGORY
    from likely.sources import require_rows
    from likely.sources.rows import complete, take_columns

    first = next(iter(source.batches()), None)
    require_rows(first.rows if first else 0, source.label)
    assert first is not None
    known = {} if as_written else {column.name: column.kind for column in model.schema.columns}
    kinds = {name: known.get(name, CATEGORY) for name in first.names}
    shown = getattr(source, "shown", first.names)
    for batch in source.batches(kinds):
        posterior = model.posterior_of(complete(batch, model.schema.columns, source, absent))
        yield batch if shown is first.names else take_columns(batch, shown), posterior


def with_answers(batch: Batch, posterior: Posterior, prefix: str, probabilities: bool) -> Columns:
    """The columns of a batch, then its label and, if asked for, the probability of each class."""
    from likely.sources.rows import take_columns

    columns = take_columns(batch, batch.names).columns
    answers: Columns = {f"{prefix}label": _arrow_or_list(posterior.labels.tolist())}
    if probabilities:
        import pyarrow as pa

        shares = posterior.probabilities
        answers |= {f"{prefix}p_{label}": pa.array(shares[:, k]) for k, label in enumerate(posterior.classes)}
    return beside(columns, answers)


def beside(columns: Columns, answers: Columns) -> Columns:
    """The answers after the columns they are for; neither hides the other."""
    twice = sorted(answers.keys() & columns.keys())
    if twice:
        raise UsageError(f"the data have a column {twice[0]!r} already: name the new ones apart with --prefix TEXT")
    return columns | answers


@contextlib.contextmanager
def writer(path: str, *, excel_safe: bool = False) -> Iterator[Writer]:
    """A table at a path, which appears there when it is whole, or on standard output as it comes.

    Every value is written unchanged, unless `excel_safe` asks for formulas to be escaped in CSV and TSV.
    """
    kind = format_of(path, excel_safe)
    if path == "-":
        stream = standard_output()
        yield DelimitedWriter(stream, ",", for_a_person=is_terminal(stream), excel_safe=excel_safe)
        return
    with whole_file(path) as temporary:
        if kind == "parquet":
            made: Writer = ParquetWriter(temporary)
            yield made
            made.close()
            return
        with open(temporary, "w", encoding="utf-8", newline="") as file:
            delimiter = "\t" if kind == "tsv" else ","
            yield JsonLinesWriter(file) if kind == "jsonl" else DelimitedWriter(file, delimiter, excel_safe=excel_safe)


def write_page(path: str, page: str) -> None:
    """A page or a picture at its path, whole or not at all."""
    with whole_file(path) as temporary:
        Path(temporary).write_text(page, encoding="utf-8")


def write_picture(found: Comparison | LearningCurve, output: str | None, *how: Any) -> None:
    """A picture, drawn as `how` says, at its path or on standard output, if it is wanted at all."""
    if output == "-":
        standard_output().write(found.svg(*how))
    elif output:
        with whole_file(output) as temporary:
            Path(temporary).write_bytes(found.drawn(Path(output).suffix.lower(), *how))


class DelimitedWriter:
    """CSV or TSV: reading it gives back every value unchanged.

    With `excel_safe`, text that a spreadsheet would run as a formula gets an apostrophe in front.
    """

    def __init__(self, stream: Any, delimiter: str, *, for_a_person: bool = False, excel_safe: bool = False) -> None:
        self.rows = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        # Before Python 3.13 a carriage return is quoted only if the lines end in one; without quotes it ends the row.
        self.quoting_returns = csv.writer(_Lines(stream), delimiter=delimiter, lineterminator="\r\n")
        self.for_a_person, self.excel_safe, self.started = for_a_person, excel_safe, False

    def write(self, columns: Columns) -> None:
        """Some more rows."""
        if not self.started:
            self.quoting_returns.writerow(self._cells([*columns]))
            self.started = True
        out = self.quoting_returns if any(_may_match(c, r"\r") for c in columns.values()) else self.rows
        out.writerows(zip(*map(self._cells, columns.values()), strict=True))

    def _cells(self, column: Any) -> list[Any]:
        cells = values(column)
        if self.excel_safe and _may_match(column, FORMULA):
            starts = re.compile(FORMULA).match
            cells = [guarded(cell) if isinstance(cell, str) and starts(cell) else cell for cell in cells]
        if self.for_a_person:
            from likely.ledger import clean

            cells = [clean(cell) if isinstance(cell, str) else cell for cell in cells]
        return cells

    def close(self) -> None:
        """Nothing is left to be done."""


class _Lines:
    """A stream whose lines end in a line feed, though the rows written to it end in carriage return and line feed."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, line: str) -> None:
        """One row."""
        self.stream.write(line.removesuffix("\r\n") + "\n")


def _may_match(column: Any, pattern: str) -> bool:
    """Whether it is worth looking at every cell: one search of the whole column is much faster."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, list):
        return True
    text = column.dictionary if pa.types.is_dictionary(column.type) else column
    if not _is_text(text.type):
        return False
    return bool(pc.any(pc.match_substring_regex(text, pattern)).as_py())


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def guarded(cell: str) -> str:
    """The cell with an apostrophe in front, unless it is a plain number."""
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell if cell[0] not in "\t\r" else f"'{cell}"


class JsonLinesWriter:
    """One JSON object a line."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, columns: Columns) -> None:
        """Some more rows."""
        cells = zip(*(values(column) for column in columns.values()), strict=True)
        for row in cells:
            record = dict(zip(columns, map(plain, row), strict=True))
            self.stream.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")

    def close(self) -> None:
        """Nothing is left to be done."""


class ParquetWriter:
    """A Parquet file with the column types of its first rows."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file: Any = None

    def write(self, columns: Columns) -> None:
        """Some more rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        arrays = {name: _arrow(column) for name, column in columns.items()}
        if self.file is None:
            schema = pa.schema([(name, _kind(array.type)) for name, array in arrays.items()])
            self.file = pq.ParquetWriter(self.path, schema)
        typed = [_cast(array, field) for array, field in zip(arrays.values(), self.file.schema, strict=True)]
        self.file.write_batch(pa.record_batch(typed, schema=self.file.schema))

    def close(self) -> None:
        """The footer is written: the file can be read."""
        if self.file is not None:
            self.file.close()


def _arrow(column: Any) -> Any:
    import pyarrow as pa

    column = _arrow_or_list(column)
    if isinstance(column, list):  # values of several types
        return pa.array([None if value is None else str(value) for value in column])
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _arrow_or_list(column: Any) -> Any:
    import pyarrow as pa

    if not isinstance(column, list):
        return column
    try:
        return pa.array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return column


def _kind(kind: Any) -> Any:
    import pyarrow as pa

    return pa.string() if pa.types.is_null(kind) else kind


def _cast(array: Any, field: Any) -> Any:
    import pyarrow as pa

    try:
        return array.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(
            f"holds {array.type} after rows of {field.type}", column=field.name, remedy="write .csv or .jsonl instead"
        ) from None


def values(column: Any) -> list[Any]:
    """The cells of a column as plain values."""
    if isinstance(column, list):
        return column
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    whole = column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind))
    if whole or _is_text(kind):  # by far the most columns, and by far the faster way
        found: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return found
    return list(column.to_pylist())


def write_predictions(
    batches: Iterator[tuple[Batch, Posterior]], out: Writer, prefix: str, probabilities: bool
) -> Counter[Any]:
    """All batches through a writer, and how often each label was said."""
    said: Counter[Any] = Counter()
    first: list[str] = []
    for batch, posterior in batches:
        columns = with_answers(batch, posterior, prefix, probabilities)
        first = first or list(columns)
        out.write(_like(first, columns, batch))
        said.update(posterior.labels.tolist())
    return said


def _like(first: list[str], columns: Columns, batch: Batch) -> Columns:
    """The columns in the order of the first rows; JSON lines may lack some later on, but none may be new."""
    known = set(first)
    new = [name for name in columns if name not in known]
    if new:
        raise DataError(
            f"column {new[0]!r} first occurs after row {batch.start}: give it to an earlier row too, if only as null",
            column=new[0],
        )
    return {name: columns[name] if name in columns else [None] * batch.rows for name in first}


def print_json(batches: Iterator[tuple[Batch, Posterior]], write: Callable[[str], Any]) -> Counter[Any]:
    """One JSON document, printed row by row as the answers come."""
    said: Counter[Any] = Counter()
    write('{"predictions": [')
    gap = "\n"
    for _, posterior in batches:
        for record in posterior.to_dicts():
            write(gap + to_json(record))
            said[record["label"]] += 1
            gap = ",\n"
    write(f'\n], "rows": {said.total()}, "labels": {to_json(counted(said))}}}\n')
    return said


def counted(said: Mapping[Any, int], classes: Sequence[Any] = ()) -> dict[str, int]:
    """How often each label was said, the labels as text."""
    return {str(label): said.get(label, 0) for label in (classes or sorted(said, key=str))}
