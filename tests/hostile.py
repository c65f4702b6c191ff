"""Tables that are hard to quote, with every kind of cell that is hard to score."""

import numpy as np
import pyarrow as pa

VALUES = np.array(["it's", 'say "x"', "a\\b", "; DROP TABLE data; --", "é ü", "TRUE", "none", "", None], dtype=object)
NAMES = ("c.d", 'a"b', "select * from x; --", "Ünï `tick`", "x", "n")


def hostile(rows=1500, seed=0):
    """A table with quotes, nulls, NaN, truth values, numbers of every size, and odd names; the target is y."""
    rng = np.random.default_rng(seed)
    category = VALUES[rng.integers(0, len(VALUES), rows)]
    label = np.where(rng.random(rows) < 0.25 + 0.4 * (category == "it's"), "yes", "it's no")
    number = rng.normal(size=rows) + (label == "yes")
    number[::7] = np.nan
    truth = rng.random(rows) < 0.3 + 0.4 * (label == "yes")
    far = rng.normal(size=rows) * 1e6
    far[:4] = [-0.0, 0.0, 1e12, 5e-324]
    counts = rng.poisson(1 + 2.0 * (label == "yes"))
    columns = [
        category.tolist(),
        pa.array(number, from_pandas=True),
        rng.integers(0, 4, rows),
        pa.array([None if i % 11 == 5 else bool(t) for i, t in enumerate(truth)]),
        far,
        pa.array([None if i % 13 == 3 else int(c) for i, c in enumerate(counts)]),
    ]
    return pa.table({**dict(zip(NAMES, columns, strict=True)), "y": label})


def strange(table):
    """Rows that no training table has: unseen values, nothing but nulls, numbers at the ends of their range."""
    rows = {name: table[name].slice(0, 8).to_pylist() for name in table.schema.names}
    rows["c.d"][:3] = ["never seen", None, "IT'S"]
    rows['a"b'][:5] = [1e308, -1e308, None, 5e-324, -0.0]
    rows["select * from x; --"][:3] = [99, None, -1]
    rows["x"][:3] = [1e300, None, -1e150]
    rows["n"][:3] = [None, 10**6, 0]
    for name in NAMES:
        rows[name][7] = None
    return pa.table({name: pa.array(cells, table.schema.field(name).type) for name, cells in rows.items()})
