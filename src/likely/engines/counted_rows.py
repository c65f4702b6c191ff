"""Sources that count their rows, and those without a label, while they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from likely.engines.memory import Plan
from likely.errors import DataError, UsageError
from likely.sources import Batch, Source
from likely.sources.wrapper import SourceWrapper


@dataclass
class CountedSource:
    """A source that counts its rows, and those without a label, while they are read."""

    source: Source
    plan: Plan
    refuse_unlabelled: bool = False
    rows: int = 0
    without_label: int = 0

    def batches(self) -> Iterator[Batch]:
        """The rows, with the columns of the plan; DataError for an unlabelled row if those are refused."""
        for batch in self.source.batches(self.plan.kinds()):
            hidden = batch.coded(self.plan.target)
            outside = (hidden.codes < hidden.low) if hidden.low == 0 else np.zeros(1, bool)
            self.rows += batch.rows
            self.without_label += int(outside.sum())
            if self.refuse_unlabelled and outside.any():
                row = batch.start + int(np.argmax(outside)) + 1
                raise DataError(
                    "has no label", column=self.plan.target, row=row, remedy="fill it in, or pass unlabelled='ignore'"
                )
            yield batch


@dataclass(frozen=True)
class UnreadRows(SourceWrapper):
    """Rows that are not read in this process: reading them is an error.

    Attributes
    ----------
    why : str
        Where they are instead.
    remedy : str
        What to do.
    """

    why: str
    remedy: str

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:  # noqa: ARG002
        """Raise UsageError."""
        raise UsageError(
            "what is asked for reads the rows again (EM over rows without a label or missing cells of a joint block, or "
            f"selection of columns), and {self.why}",
            remedy=self.remedy,
        )
