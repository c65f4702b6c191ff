"""Description of the columns of a table: kinds, missing cells, distinct values, and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from likely.engines.planning import AUTO, derived, used_as
from likely.errors import DataError
from likely.schema import CATEGORY, NUMBER, alike_message, look_alikes, ordered
from likely.sources import (
    Batch,
    Frame,
    MissingTokens,
    ReadKeywords,
    ReadOptions,
    for_target,
    missing_of,
    open_source,
    require_rows,
)
from likely.sources.missing_tokens import suspicious_token, token_warning, tokens_by_column


def inspect(
    data: Any, *, target: str | None = None, missing: Sequence[str] | None = None, **how: Unpack[ReadKeywords]
) -> list[dict[str, Any]]:
    """Describe the columns of a table as `learn` would read them.

    Parameters
    ----------
    data : path, frame, dict of columns or any other source
        The table, as for `learn`.
    target : str or None, default=None
        The column to predict, which is read as classes.
    missing : sequence of str or None, default=None
        Texts that stand for a missing cell.
    **how
        How a file is read, as for `learn`.

    Returns
    -------
    list of dict
        For every column: name, kind, the reason, whether it is used, rows, missing cells, different values, range.
    """
    source = for_target(open_source(data, ReadOptions.of(missing, how)), target)
    found: list[dict[str, Any]] = []
    for first in source.batches():
        batch = replace(first, parts=derived(first, AUTO, None, ())) if isinstance(first, Frame) else first
        for name in batch.names:
            kind, reason, used = (*batch.kind(name), True) if name == target else used_as(batch, name)
            if isinstance(batch, Frame) and name in batch.parts:
                reason += ", used if informative about the class"
            entry = {"column": name, "kind": kind or "none", "reason": reason, "used": used}
            found.append(entry | _summary(batch, name, kind) | _token_report(batch, name, kind, missing_of(source)))
        break  # kinds are inferred from the first batch
    require_rows(len(found), source.label)
    return found


def _token_report(batch: Batch, name: str, kind: str | None, tokens: MissingTokens) -> dict[str, Any]:
    """Cells of a column that were read as missing, and warnings about tokens and values that look alike."""
    taken = tokens_by_column(tokens.taken, [name]).get(name, {})
    values = batch.coded(name).values if kind == CATEGORY or (taken and kind != NUMBER) else ()
    pair = suspicious_token(taken, values, batch.rows)
    warning = token_warning(name, *pair, taken[pair[0]], batch.rows) if pair else ""
    alike = look_alikes(ordered(values)) if kind == CATEGORY else []
    return {"taken": taken, "doubt": warning, "look_alikes": alike_message(name, alike) if alike else ""}


def _summary(batch: Batch, name: str, kind: str | None) -> dict[str, Any]:
    if kind == NUMBER:
        x = batch.numbers([name], 0, batch.rows)[:, 0]
        seen = x[~np.isnan(x)]
        low, high = (float(seen.min()), float(seen.max())) if len(seen) else (None, None)
        return {
            "rows": batch.rows,
            "missing": int(np.isnan(x).sum()),
            "different": len(np.unique(seen)),
            "from": low,
            "to": high,
        }
    try:
        coded = batch.coded(name)
    except DataError:  # neither text nor number
        return {"rows": batch.rows, "missing": batch.rows, "different": 0, "from": None, "to": None}
    seen_codes = coded.codes[(coded.codes >= coded.low)]
    return {
        "rows": batch.rows,
        "missing": batch.rows - len(seen_codes),
        "different": len(np.unique(seen_codes)),
        "from": None,
        "to": None,
    }
