"""Predictions beside their rows, batch by batch."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likely.cli._parquet_writer import ParquetWriter
from likely.cli._terminal import to_json
from likely.cli._writers import Columns, Writer, beside
from likely.errors import DataError
from likely.kernels.parallel import cached_property

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from likely.bayes import Posterior
    from likely.model.model import Model
    from likely.sources import Batch, Source
    from likely.sources.files import ParquetFile
    from likely.sources.parquet_extension import ParquetLayout


@dataclass(frozen=True, eq=False)
class PredictedBatch:
    """Rows, the posterior of each, and the decisions as positions in the list of possible ones.

    What is written of them is made once, by the thread that first asks for it.
    """

    batch: Batch
    posterior: Posterior
    codes: NDArray[np.int64]
    labels: list[Any]

    def decisions(self) -> list[Any]:
        """The decision of each row."""
        return [self.labels[code] for code in self.codes.tolist()]

    @cached_property
    def label_column(self) -> Any:
        """The decisions as an Arrow array, texts as a dictionary; as a list if they have several types."""
        import pyarrow as pa

        from likely.sources.arrow_arrays import arrow_array

        try:
            known = arrow_array(self.labels)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            return self.decisions()
        codes = arrow_array(self.codes.astype("int32"))
        texts = pa.types.is_string(known.type)
        return pa.DictionaryArray.from_arrays(codes, known) if texts else known.take(codes)

    @cached_property
    def probability_columns(self) -> list[Any]:
        """The probabilities of each class as an Arrow array."""
        from likely.sources.arrow_arrays import arrow_array

        p = self.posterior.probabilities
        return [arrow_array(p[:, k]) for k in range(len(self.posterior.classes))]

    @cached_property
    def counts(self) -> Counter[Any]:
        """Number of rows of each decision."""
        import numpy as np

        found = np.bincount(self.codes, minlength=len(self.labels)).tolist()
        return Counter({label: n for label, n in zip(self.labels, found, strict=True) if n})

    def answers(self, prefix: str, probabilities: bool) -> Columns:
        """The label column and, if requested, a column with the probability of each class."""
        found: Columns = {f"{prefix}label": self.label_column}
        if probabilities:
            names = (f"{prefix}p_{label}" for label in self.posterior.classes)
            found |= zip(names, self.probability_columns, strict=True)
        return found


def predictions(
    model: Model, source: Source, absent: str, *, as_written: bool, decisions: Mapping[str, Any] | None = None,
    few_columns: bool = False, probabilities: bool = False,
) -> Generator[PredictedBatch]:  # fmt: skip
    """Each batch with its columns, the posterior of its rows and the decisions; for folders of texts, only the file column.

    With `as_written`, cells of a text file are unchanged (007 stays 007); otherwise numeric columns of the model are
    numbers. With `few_columns`, batches may have only those of the model. `probabilities` is whether they are requested, so
    that several batches of them are computed at a time.
    """
    from likely.bayes.rule import labels_array
    from likely.engines.read_ahead import in_turn
    from likely.schema import CATEGORY
    from likely.sources import release, require_rows
    from likely.sources.row_access import complete, take_columns

    kinds = _needed(model, source) if few_columns else None
    shown: Sequence[str] | None = None
    if kinds is None:
        first = next(iter(source.batches()), None)
        require_rows(first.rows if first else 0, source.label)
        assert first is not None
        known = {} if as_written else {column.name: column.kind for column in model.schema.columns}
        kinds = {name: known.get(name, CATEGORY) for name in first.names}
        shown = getattr(source, "shown", None)

    def predict(batch: Batch, _alone: bool) -> PredictedBatch:
        posterior = model.posterior_of(complete(batch, model.schema.columns, source, absent))
        codes, labels = posterior.decision_codes(**(decisions or {}))
        rows = batch if shown is None else take_columns(batch, shown)
        made = PredictedBatch(rows, posterior, codes, labels_array(labels).tolist())
        if probabilities:
            _ = made.label_column, made.probability_columns, made.counts
        return made

    yield from in_turn(source.batches(kinds), predict)
    release(source)  # the predictions may replace the table itself


def _needed(model: Model, source: Source) -> dict[str, str] | None:
    """The columns of a model and their kinds, if a Parquet file has them, with numbers as numbers; else None."""
    from likely.schema import NUMBER
    from likely.sources.batch import arrow_kind
    from likely.sources.date_parts import part_of

    file = _parquet_file(source)
    types = {} if file is None else {field.name: field.type for field in file.schema}
    for column in model.schema.columns:
        part = part_of(column)
        kind = types.get(part.origin if part else column.name)
        if kind is None or ((part or column.kind == NUMBER) and arrow_kind(kind)[0] != NUMBER):
            return None
    return {column.name: column.kind for column in model.schema.columns} if file and file.row_count else None


def _parquet_file(source: Any) -> ParquetFile | None:
    """The Parquet file that a source reads; None if it reads anything else."""
    from likely.sources.files import ParquetFile

    while (inner := getattr(source, "inner", None)) is not None:
        source = inner
    return source if isinstance(source, ParquetFile) else None


def layout_of(source: Source, kind: str, columns: int) -> ParquetLayout | None:
    """The layout of the Parquet file that a source reads, if so many columns can be added to a copy of it; else None.

    `kind` is the format that is written.
    """
    from likely.cli._parquet_extender import MOST_CELLS
    from likely.sources.parquet_extension import NotExtendableError, ParquetLayout

    file = _parquet_file(source) if kind == "parquet" else None
    if file is None:
        return None
    try:
        return ParquetLayout.of(file.path, file.label, file.schema.names, MOST_CELLS // columns)
    except NotExtendableError:
        return None


def write_predictions(batches: Generator[PredictedBatch], out: Writer, prefix: str, probabilities: bool) -> Counter[Any]:
    """Write all batches, and return the number of predictions of each label."""
    from likely.sources.row_access import take_columns

    predicted: Counter[Any] = Counter()
    first: list[str] = []
    layout: ParquetLayout | None = getattr(out, "layout", None)
    with contextlib.closing(batches), _writing(out) as write:
        for found in batches:
            rows, answers = found.batch, found.answers(prefix, probabilities)
            if layout is not None:
                beside(dict.fromkeys(layout.names), answers)
                write(answers)
            else:
                held = take_columns(rows, rows.names)
                columns = beside(held.columns | {n: c for n, c in held.stored.items() if n in held.columns}, answers)
                first = first or list(columns)
                write(_in_order_of_first(first, columns, rows))
            predicted.update(found.counts)
    return predicted


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


def _in_order_of_first(first: list[str], columns: Columns, batch: Batch) -> Columns:
    """Columns in the order of the first batch; later rows may omit columns, but not add any."""
    known = set(first)
    new = [name for name in columns if name not in known]
    if new:
        raise DataError(
            f"column {new[0]!r} first occurs after row {batch.start}: add it to an earlier row, at least as null",
            column=new[0],
        )
    return {name: columns[name] if name in columns else [None] * batch.rows for name in first}


def print_json(batches: Generator[PredictedBatch], write: Callable[[str], Any]) -> Counter[Any]:
    """Print one JSON document, row by row; returns the number of predictions of each label."""
    predicted: Counter[Any] = Counter()
    write('{"predictions": [')
    gap = "\n"
    with contextlib.closing(batches):
        for found in batches:
            for record, decision in zip(found.posterior.to_dicts(), found.decisions(), strict=True):
                write(gap + to_json(record | {"label": decision}))
                predicted[decision] += 1
                gap = ",\n"
    write(f'\n], "rows": {predicted.total()}, "labels": {to_json(counted(predicted))}}}\n')
    return predicted


def counted(predicted: Mapping[Any, int], classes: Sequence[Any] = ()) -> dict[str, int]:
    """Number of predictions by label, with labels as text: of the classes, and of decisions that are no class."""
    labels = [*classes, *predicted] if classes else sorted(predicted, key=str)
    return {str(label): predicted.get(label, 0) for label in labels}
