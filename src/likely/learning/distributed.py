"""Counting in parts by any scheduler: plan the columns once, count every part, add, and learn from the sum.

Never: schedulers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Unpack

from likely.engines.engine import CountedSource, CountTask, Part, PartTask, Progress, UnreadRows
from likely.errors import UsageError
from likely.learning.learn import learn
from likely.model.model import Model
from likely.model.model_keywords import PlanSettings
from likely.model.parts import PartPlan, count_part, result_of, total
from likely.sources import Source

Each = Callable[[Callable[[Any], bytes | None]], Iterable[bytes | None]]
REMEDY = (
    "pass each=, which calls a function with every part, to plan.learn; with unlabelled='auto' or select=, "
    "pass unlabelled= a weight or 'ignore', and leave out select="
)


class _Planned(Exception):  # noqa: N818 - it ends the planning, and is no error
    """The plan is made, and nothing is to be counted yet."""

    def __init__(self, task: CountTask) -> None:
        self.task = task
        super().__init__()


@dataclass(frozen=True)
class _PartsEngine:
    """Parts that were counted elsewhere; without any, the plan for them."""

    parts: tuple[Part, ...] | None = None
    each: Each | None = None
    name: str = "parts"

    @property
    def reason(self) -> str:
        """How many parts there are."""
        return f"{len(self.parts or ()):,} parts, counted elsewhere and added"

    @property
    def supports_parts(self) -> bool:
        """Whether further tasks can be run over the parts."""
        return self.each is not None

    def rows(self, here: Source, read_as_planned: Callable[[Any], Source]) -> Source:  # noqa: ARG002
        """The rows of the sample, which are some of all rows: nothing may be learned from them, nor counted twice."""
        here.missing.taken.clear()
        return UnreadRows(here, "the rows of the parts are not in this process", REMEDY)

    def tally(self, rows: CountedSource, task: Callable[[], CountTask], progress: Progress = None) -> Part:  # noqa: ARG002
        """The sum of the parts, or the result of another task over all of them."""
        work = task()
        if self.parts is None:
            raise _Planned(work)
        found = total(self.parts) if work.run is count_part else self._run_on_parts(work)
        rows.rows, rows.without_label = found.rows, found.without_label
        return found

    def _run_on_parts(self, work: CountTask) -> Part:
        """The summed result of a task over all parts, local or remote."""
        assert self.each is not None
        assert work.part is not None
        found = [content for content in self.each(partial(result_of, work.run, work.state)) if content is not None]
        if not found:
            raise UsageError("each= has found no rows: it must call the function with every part, and return the results")
        return work.part(found)

    def score(self, here: Callable[[], Any], task: Callable[[], PartTask]) -> Any:  # noqa: ARG002
        """Score the rows in this process."""
        return here()


@dataclass(frozen=True)
class CountingPlan:
    """Counting plan for the parts of a table, in any process. Made by `plan`.

    Attributes
    ----------
    parts : PartPlan
        Columns, families and formats; it is sent to other processes as the bytes of a model file.
    """

    parts: PartPlan
    _sample: Any = field(repr=False)
    _target: Any = field(repr=False)
    _settings: dict[str, Any] = field(repr=False)

    @property
    def count(self) -> Callable[[Any], Part]:
        """The function that counts a part of the rows: any source that `learn` takes."""
        return self.parts.count

    def learn(self, parts: Iterable[Part], each: Each | None = None) -> Model:
        """Learn from counted parts.

        Parameters
        ----------
        parts : iterable of Part
            What `count` returned for every part.
        each : callable or None, default=None
            Goes through all rows again, as EM does (a weight of rows without a label, missing cells of joint blocks):
            `each(function)` calls the function with every part of the rows, wherever it is, and returns the results. The
            function can be copied to other processes.

        Returns
        -------
        Model
            The model: equal to that of all rows at once.
        """
        known = tuple(part for part in parts if part.rows)
        if not known:
            raise UsageError("there are no parts with rows: nothing can be learned from them")
        return learn(self._sample, self._target, engine=_PartsEngine(known, each), **self._settings)


def plan(data: Any, target: Any = None, **settings: Unpack[PlanSettings]) -> CountingPlan:
    """Plan the columns from some rows, so that parts of the table can be counted elsewhere.

    Parameters
    ----------
    data : path, frame, dict of columns or any other source
        Some rows that show all columns, as for `learn`.
    target : str or int
        The column to predict.
    **settings
        Settings of `learn`; rows without a label are not counted unless `unlabelled` is their weight.

    Returns
    -------
    CountingPlan
        `.count(rows)` counts a part, `.learn(parts)` learns from all of them.
    """
    given: dict[str, Any] = {"unlabelled": "ignore", **settings}
    try:
        learn(data, target, engine=_PartsEngine(), **given)
    except _Planned as planned:
        return CountingPlan(PartPlan.from_bytes(planned.task.state), data, target, given)
    raise AssertionError("unreachable")


__all__ = ["CountingPlan", "plan"]
