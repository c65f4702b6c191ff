"""Online learning: updates are counted in groups by one thread, written to the journal, then acknowledged."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from likely.errors import LikelyError
from likely.model.model import Model
from likely.web._journal import Journal, JournalEntry
from likely.web._served_model import ModelState, ServedModel

LARGEST_GROUP = 256
FOLDED_ENTRIES = 5_000  # updates after which the journal is folded into the model file


@dataclass
class _Waiting:
    """An update that a client waits for."""

    entry: JournalEntry
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[dict[str, Any]]

    def settle(self, result: dict[str, Any] | BaseException) -> None:
        """Send the result to the waiting client."""

        def give() -> None:
            if self.answer.done():
                return
            if isinstance(result, BaseException):
                self.answer.set_exception(result)
            else:
                self.answer.set_result(result)

        self.loop.call_soon_threadsafe(give)


def applied(model: Model, entries: Sequence[JournalEntry]) -> Model:
    """The model after some updates; neighbouring updates are counted together."""
    at = 0
    while at < len(entries):
        end = at + 1
        while end < len(entries) and entries[end].verb == entries[at].verb:
            end += 1
        rows = [row for entry in entries[at:end] for row in entry.rows]
        model = model.update(rows) if entries[at].verb == "update" else model.forget(rows)
        at = end
    return model


class OnlineLearner:
    """The one writer of a served model.

    Parameters
    ----------
    served : ServedModel
        The model; its journal is applied to it first.
    """

    def __init__(self, served: ServedModel) -> None:
        from likely.learning.load import load_changeable

        assert served.path is not None
        model, digest = load_changeable(served.path)
        assert isinstance(model, Model)
        self.served, self.path = served, served.path
        self.journal = Journal(served.path, digest)
        self.digest = digest
        if self.journal.entries:
            model = applied(model, self.journal.entries)
            self.digest = self.journal.fold(model, served.path)
        served.state = ModelState.of(model, self._version())
        self._queue: queue.Queue[_Waiting | None] = queue.Queue(10_000)
        self._thread = threading.Thread(target=self._work, name="likely-learner", daemon=True)
        self._thread.start()

    def _version(self) -> str:
        return f"{self.digest[:12]}+{len(self.journal.entries)}"

    async def submit(self, entry: JournalEntry) -> dict[str, Any]:
        """Learn or forget rows; returns when they are on disk and in the model that is served."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(entry, loop, loop.create_future())
        self._queue.put_nowait(waiting)
        return await waiting.answer

    def close(self) -> None:
        """Finish what was accepted, fold the journal into the model file, and release it."""
        self._queue.put(None)
        self._thread.join(60)
        self.journal.close()

    def _work(self) -> None:
        stopping = False
        while not stopping:
            group = [self._queue.get()]
            while len(group) < LARGEST_GROUP and not self._queue.empty():
                group.append(self._queue.get())
            stopping = None in group
            try:
                self._learn([each for each in group if each is not None])
            except BaseException as fault:  # the thread must survive: the error is sent to the clients
                for each in group:
                    if each is not None:
                        each.settle(fault)

    def _learn(self, group: list[_Waiting]) -> None:
        """Count a group together; where that is refused, one by one, so that only the bad ones are."""
        new: list[_Waiting] = []
        again: list[_Waiting] = []
        inside: set[str] = set()
        for each in group:
            known = each.entry.identifier in self.journal.identifiers or each.entry.identifier in inside
            (again if known else new).append(each)
            inside.add(each.entry.identifier)
        try:
            self._accept(new)
        except LikelyError as fault:
            if len(new) == 1:
                new[0].settle(fault)
            for each in new if len(new) > 1 else ():
                try:
                    self._accept([each])
                except LikelyError as own:
                    each.settle(own)
        for each in again:
            if each.entry.identifier in self.journal.identifiers:
                each.settle(self._report(each, duplicate=True))
            else:  # the first one with this identifier was refused
                self._learn([each])

    def _accept(self, group: list[_Waiting]) -> None:
        if not group:
            return
        entries = [each.entry for each in group]
        model = applied(self.served.state.model, entries)  # first: what is refused must not be in the journal
        made = ModelState.of(model, "")
        self.journal.append(entries)
        self.served.state = replace(made, version=self._version())
        for each in group:
            each.settle(self._report(each, duplicate=False))
        if len(self.journal.entries) >= FOLDED_ENTRIES:
            self.digest = self.journal.fold(model, self.path)

    def _report(self, each: _Waiting, *, duplicate: bool) -> dict[str, Any]:
        return {
            "model_version": self.served.state.version, "rows": 0 if duplicate else len(each.entry.rows),
            "rows_counted": int(self.served.state.model.tally.rows), "id": each.entry.identifier, "duplicate": duplicate,
        }  # fmt: skip
