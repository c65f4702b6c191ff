"""How far it is from a public call to the arithmetic: functions, files and depth of calls inside the package.

Run with `python scripts/hops.py`. Each task runs once to import and compile what it needs, and once under the interpreter's
profile hook, which sees every Python function of the package that is entered; comprehensions and lambdas count with the
function that holds them, the getter of a cached property with the property, the work of threads from depth 1.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import likely

SOURCE = str(Path(likely.__file__).parent)
INNER = ("<lambda>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<module>")
GETTER = "cached_property.__get__"


def _counts(frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_filename.startswith(SOURCE) and code.co_name not in INNER and code.co_qualname != GETTER


class Hops:
    """A profile hook that notes which functions are entered, and how deep."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.deepest = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note one call."""
        if event != "call" or not _counts(frame):
            return
        self.functions.add((frame.f_code.co_filename, frame.f_code.co_qualname))
        depth, above = 0, frame
        while above is not None:
            depth, above = depth + _counts(above), above.f_back  # type: ignore[assignment]
        self.deepest = max(self.deepest, depth)

    @property
    def line(self) -> str:
        """Functions, files and depth."""
        return f"{len(self.functions):5d} {len({file for file, _ in self.functions}):5d} {self.deepest:5d}"


def tasks(folder: Path) -> dict[str, Callable[[], Any]]:
    """What is measured, by name."""
    data = Path(SOURCE) / "data" / "loans.csv"
    model = likely.learn(str(data), target="outcome")
    row = {"employment": "student", "late_payments": 3, "income": 2000.0}
    numbers = {"x": [0.1, 0.3, 5.1, 5.2, 0.2, 4.9] * 50}
    return {
        "learn(csv)": lambda: likely.learn(str(data), target="outcome"),
        "learn(csv, plain=True)": lambda: likely.learn(str(data), target="outcome", plain=True),
        "posterior(row)": lambda: model.posterior(row, absent="missing"),
        "explain(row)": lambda: model.explain(row, absent="missing"),
        "one EM round": em_round(numbers),
        "save and load": lambda: (model.save(folder / "m.likely"), likely.load(folder / "m.likely")),
    }


def em_round(numbers: dict[str, list[float]]) -> Callable[[], Any]:
    """E-step and M-step of a mixture over rows that were read before."""
    from likely.latent.em import StreamedRows, column_weights, e_step
    from likely.sources import open_source

    model = likely.cluster(numbers, k=2, max_iter=1, n_init=1).model
    rows = list(StreamedRows(lambda: open_source(numbers).batches(), model.schema, column_weights(None)))
    return lambda: replace(model, tally=e_step(replace(model), rows, 1.0).tally).plain_parameters


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print(f"{'':24} func. files depth")
    with tempfile.TemporaryDirectory() as folder:
        for name, task in tasks(Path(folder)).items():
            task()
            hops = Hops()
            threading.setprofile(hops)
            sys.setprofile(hops)
            try:
                task()
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
            print(f"{name:24} {hops.line}")


if __name__ == "__main__":
    main()
