"""Writers of predictions beside their rows, batch by batch; a file is complete or absent."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from likely.cli.parquet_writer import LONG_BATCH, ParquetWriter, arrow_or_list, is_text
from likely.cli.terminal import is_terminal, plain, standard_output, to_json
from likely.errors import DataError, UsageError

if TYPE_CHECKING:
    from likely.bayes import Posterior
    from likely.model.model import Model
    from likely.sources import Batch, Source

FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
FORMULA = r"^[=+\-@\t\r]"
Columns = dict[str, Any]


class Writer(Protocol):
    """A table to which rows can be appended."""

    def write(self, columns: Columns) -> None:
        """Append rows, given as columns of equal length."""

    def close(self) -> None:
        """Finish the table."""


def format_of(path: str, excel_safe: bool = False) -> str:
    """Format by the extension of a path; CSV for standard output. `excel_safe` requires CSV or TSV."""
    from likely.sources.table_writing import DATABASES, is_database

    if path == "-":
        return "csv"
    kind = "database" if is_database(path) else FORMATS.get(Path(path).suffix.lower())
    if kind is None:
        known = ", ".join((*FORMATS, *DATABASES))
        raise UsageError(f"-o {path!r} has an unknown extension: use one of {known}")
    if excel_safe and kind not in ("csv", "tsv"):
        raise UsageError(f"--excel-safe is for .csv and .tsv: {path!r} cannot contain formulas, omit the option")
    return kind


def predictions(
    model: Model, source: Source, absent: str, *, as_written: bool, decisions: Mapping[str, Any] | None = None
) -> Iterator[tuple[Batch, Posterior, list[Any]]]:
    """Each batch with its columns, the posterior of its rows and the decisions; for folders of texts, only the file column.

    With `as_written`, cells of a text file are unchanged (007 stays 007); otherwise numeric columns of the model are
    numbers.
    """
    from likely.engines.read_ahead import ahead
    from likely.schema import CATEGORY
    from likely.sources import require_rows
    from likely.sources.row_access import complete, take_columns

    first = next(iter(source.batches()), None)
    require_rows(first.rows if first else 0, source.label)
    assert first is not None
    known = {} if as_written else {column.name: column.kind for column in model.schema.columns}
    kinds = {name: known.get(name, CATEGORY) for name in first.names}
    shown = getattr(source, "shown", first.names)
    for batch in ahead(source.batches(kinds)):
        posterior = model.posterior_of(complete(batch, model.schema.columns, source, absent))
        decided = posterior.decide(**(decisions or {})).tolist()
        yield batch if shown is first.names else take_columns(batch, shown), posterior, decided


def with_answers(batch: Batch, posterior: Posterior, decided: list[Any], prefix: str, probabilities: bool) -> Columns:
    """The columns of a batch, the label and, if requested, the probability of each class."""
    from likely.sources.row_access import take_columns

    columns = take_columns(batch, batch.names).columns
    answers: Columns = {f"{prefix}label": _labels(decided)}
    if probabilities:
        import pyarrow as pa

        values_by_class = posterior.probabilities
        answers |= {f"{prefix}p_{label}": pa.array(values_by_class[:, k]) for k, label in enumerate(posterior.classes)}
    return beside(columns, answers)


def _labels(decided: list[Any]) -> Any:
    """Decisions as a column; many texts as a dictionary, which Parquet stores as it is."""
    import pyarrow as pa

    column = arrow_or_list(decided)
    many = len(decided) >= LONG_BATCH and not isinstance(column, list) and pa.types.is_string(column.type)
    return column.dictionary_encode() if many and not column.null_count else column


def beside(columns: Columns, answers: Columns) -> Columns:
    """Columns followed by predictions; duplicate names are refused."""
    twice = sorted(answers.keys() & columns.keys())
    if twice:
        raise UsageError(f"the data already have a column {twice[0]!r}: rename the new ones with --prefix TEXT")
    return columns | answers


@contextlib.contextmanager
def table_writer(path: str, table: str, *, replace: bool = False) -> Iterator[Writer]:
    """Writer of a table of a database: rows are collected in a temporary file, and the table is complete or absent."""
    from likely.sources.table_writing import write_table

    with tempfile.TemporaryDirectory(prefix="likely-") as folder:
        collected = str(Path(folder, "rows.parquet"))
        made = ParquetWriter(collected)
        yield made
        made.close()
        write_table(collected, path, table, replace=replace)


@contextlib.contextmanager
def writer(path: str, *, excel_safe: bool = False) -> Iterator[Writer]:
    """Writer of a table to a path, which is complete or absent, or to standard output.

    Values are written unchanged; `excel_safe` escapes formulas in CSV and TSV.
    """
    from likely.sources.atomic_write import whole_file

    kind = format_of(path, excel_safe)
    if path == "-":
        stream = standard_output()
        yield DelimitedWriter(stream, ",", to_terminal=is_terminal(stream), excel_safe=excel_safe)
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
    """Write a page or a picture; the file is complete or absent."""
    from likely.sources.atomic_write import whole_file

    with whole_file(path) as temporary:
        Path(temporary).write_text(page, encoding="utf-8")


def write_picture(found: Any, output: str | None, *how: Any) -> None:
    """Write a picture, drawn with the arguments `how`, to a path or standard output; nothing if `output` is None."""
    from likely.sources.atomic_write import whole_file

    if output == "-":
        standard_output().write(found.svg(*how))
    elif output:
        with whole_file(output) as temporary:
            Path(temporary).write_bytes(found.drawn(Path(output).suffix.lower(), *how))


class DelimitedWriter:
    """CSV or TSV writer whose values are read back unchanged.

    With `excel_safe`, an apostrophe is put before text that a spreadsheet would run as a formula.
    """

    def __init__(self, stream: Any, delimiter: str, *, to_terminal: bool = False, excel_safe: bool = False) -> None:
        self.rows = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        # Before Python 3.13 a carriage return is quoted only if lines end in one; unquoted it would end the row.
        self.quoting_returns = csv.writer(_LineFeedStream(stream), delimiter=delimiter, lineterminator="\r\n")
        self.to_terminal, self.excel_safe, self.started = to_terminal, excel_safe, False

    def write(self, columns: Columns) -> None:
        """Append rows."""
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
        if self.to_terminal:
            from likely.model.ledger import clean

            cells = [clean(cell) if isinstance(cell, str) else cell for cell in cells]
        return cells

    def close(self) -> None:
        """Nothing to do."""


class _LineFeedStream:
    """A stream that replaces CRLF at the end of rows by a line feed."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, line: str) -> None:
        """Write one row."""
        self.stream.write(line.removesuffix("\r\n") + "\n")


def _may_match(column: Any, pattern: str) -> bool:
    """Whether a pattern may match a cell: one search of a column is much faster than testing every cell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, list):
        return True
    text = column.dictionary if pa.types.is_dictionary(column.type) else column
    if not is_text(text.type):
        return False
    return bool(pc.any(pc.match_substring_regex(text, pattern)).as_py())


def guarded(cell: str) -> str:
    """The cell with an apostrophe before it, unless it is a number."""
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell if cell[0] not in "\t\r" else f"'{cell}"


class JsonLinesWriter:
    """JSON lines writer."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, columns: Columns) -> None:
        """Append rows."""
        cells = zip(*(values(column) for column in columns.values()), strict=True)
        for row in cells:
            record = dict(zip(columns, map(plain, row), strict=True))
            self.stream.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")

    def close(self) -> None:
        """Nothing to do."""


def values(column: Any) -> list[Any]:
    """Cells of a column as Python values."""
    if isinstance(column, list):
        return column
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    numeric = column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind))
    if numeric or is_text(kind):  # the faster way, for most columns
        found: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return found
    return list(column.to_pylist())


def write_predictions(
    batches: Iterator[tuple[Batch, Posterior, list[Any]]], out: Writer, prefix: str, probabilities: bool
) -> Counter[Any]:
    """Write all batches, and return the number of predictions of each label."""
    predicted: Counter[Any] = Counter()
    first: list[str] = []
    with _writing(out) as write:
        for batch, posterior, decided in batches:
            columns = with_answers(batch, posterior, decided, prefix, probabilities)
            first = first or list(columns)
            predicted.update(_frequencies(columns[f"{prefix}label"], decided))
            write(_like(first, columns, batch))
    return predicted


def _frequencies(column: Any, decided: list[Any]) -> Counter[Any]:
    """Number of rows of each decision; texts are counted by their codes."""
    import numpy as np
    import pyarrow as pa

    if not isinstance(column, pa.DictionaryArray):
        return Counter(decided)
    counts = np.bincount(column.indices.to_numpy(), minlength=len(column.dictionary)).tolist()
    return Counter({label: n for label, n in zip(column.dictionary.to_pylist(), counts, strict=True) if n})


@contextlib.contextmanager
def _writing(out: Writer) -> Iterator[Callable[[Columns], None]]:
    """The function that writes a batch; a Parquet file is written by a thread, while the next batch is scored."""
    if not isinstance(out, ParquetWriter):
        yield out.write
        return
    with ThreadPoolExecutor(1, "likely-write") as thread:
        under_way: list[Future[None]] = []

        def write(columns: Columns) -> None:
            while under_way:
                under_way.pop().result()
            under_way.append(thread.submit(out.write, columns))

        yield write
        while under_way:
            under_way.pop().result()


def _like(first: list[str], columns: Columns, batch: Batch) -> Columns:
    """Columns in the order of the first batch; later rows may omit columns, but not add any."""
    known = set(first)
    new = [name for name in columns if name not in known]
    if new:
        raise DataError(
            f"column {new[0]!r} first occurs after row {batch.start}: add it to an earlier row, at least as null",
            column=new[0],
        )
    return {name: columns[name] if name in columns else [None] * batch.rows for name in first}


def print_json(batches: Iterator[tuple[Batch, Posterior, list[Any]]], write: Callable[[str], Any]) -> Counter[Any]:
    """Print one JSON document, row by row; returns the number of predictions of each label."""
    predicted: Counter[Any] = Counter()
    write('{"predictions": [')
    gap = "\n"
    for _, posterior, decided in batches:
        for record, decision in zip(posterior.to_dicts(), decided, strict=True):
            write(gap + to_json(record | {"label": decision}))
            predicted[decision] += 1
            gap = ",\n"
    write(f'\n], "rows": {predicted.total()}, "labels": {to_json(counted(predicted))}}}\n')
    return predicted


def counted(predicted: Mapping[Any, int], classes: Sequence[Any] = ()) -> dict[str, int]:
    """Number of predictions by label, with labels as text."""
    return {str(label): predicted.get(label, 0) for label in (classes or sorted(predicted, key=str))}
