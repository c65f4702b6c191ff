"""A hash of every row from its class and its cells: the key of the row sample, and the fold where rows have no order."""

from __future__ import annotations

import numpy as np

from likely.engines._coded_rows import CodedRows
from likely.engines._row_sampling import Ints, row_keys
from likely.engines.memory import Plan, schema_of, sorted_labels
from likely.schema import CATEGORY
from likely.sources.batch import Batch


def row_hashes(batch: Batch, plan: Plan) -> Ints:
    """The hash of each row of a batch, the same on every engine, in any order of rows and for any size of batch."""
    labels = sorted_labels(batch.coded(plan.target), plan.target_form)
    y = labels.codes.astype(np.int64) - labels.low
    found = {column.name: batch.coded(column.name) for column in plan.columns if column.kind == CATEGORY}
    rows = CodedRows(batch, np.where(y < 0, -1, y), np.ones(batch.rows), len(labels.values), found)
    return row_keys(rows, schema_of(plan, labels.values, found))
