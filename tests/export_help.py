"""One model, scored by a database and by `posterior`."""

import numpy as np

TOLERANCE = 1e-9


def both_ways(model, table, database, dialect, *, by=None, name="data", given=None):
    """Assert that the statement of a model gives its posterior, row by row.

    `by` are columns that a row is known by, where the database may change the order of rows.
    """
    database.put(name, table)
    found = database.ask(model.sql(given or name, dialect=dialect))
    assert list(found)[: table.num_columns] == table.schema.names
    wanted = model.posterior(table)
    assert len(found["label"]) == table.num_rows
    keys, ours = _order(found, by, table.num_rows), _order(table.to_pydict(), by, table.num_rows)
    shares = np.column_stack([np.array(found[f"p_{label}"], dtype=float) for label in model.classes])
    assert np.abs(shares[keys] - wanted.probabilities[ours]).max() < TOLERANCE
    clear = np.sort(wanted.probabilities, 1)
    clear = clear[:, -1] - clear[:, -2] > TOLERANCE  # of equals, rounding decides
    labels = np.array(found["label"], dtype=object)[keys]
    assert (labels == wanted.labels[ours].astype(object))[clear[ours]].all()


def _order(columns, by, rows):
    if by is None:
        return np.arange(rows)
    return np.array(sorted(range(rows), key=lambda i: [str(columns[name][i]) for name in by]))
