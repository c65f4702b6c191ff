"""A served model: one immutable state with a version, replaced as a whole."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from likely.bayes.rule import labels_array
from likely.errors import UsageError
from likely.latent.clusters import Clusters
from likely.learning.load import load_changeable
from likely.model.model import Model
from likely.model.prepared import Predictor
from likely.web._messages import plain

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class ModelState:
    """A model, prepared for single rows, and its version: the input of every answer."""

    model: Model
    predictor: Predictor
    version: str
    labels: list[Any]  # as JSON holds them
    keys: list[str]  # of the probabilities
    columns: frozenset[str]
    kinds: dict[str, str]  # of the columns

    @staticmethod
    def of(model: Model, version: str) -> ModelState:
        """The state of a model; everything is derived here, and not while a client waits."""
        labels = [plain(label) for label in labels_array(model.classes).tolist()]
        named = frozenset(column.name for column in model.schema.columns)
        origins = frozenset(part.origin for part in model.reading.parts.values())
        kinds = {column.name: column.kind for column in model.schema.columns}
        keys = [key_of(label) for label in labels]
        return ModelState(model, model.prepare(), version, labels, keys, named | origins, kinds)


def key_of(label: Any) -> str:
    """A label as a key of a JSON object: its JSON text without quotes."""
    return label if isinstance(label, str) else msgspec.json.encode(label).decode()


class ServedModel:
    """A model file that is served: its state, and how it is loaded again.

    Parameters
    ----------
    name : str
        Its name in addresses.
    path : Path or None
        The file; None for a model that was learned here.
    state : ModelState
        What is served first.
    """

    def __init__(self, name: str, path: Path | None, state: ModelState) -> None:
        self.name, self.path, self.state = name, path, state
        self.seen = stamp(path)
        self.failed = ""  # why the file could not be loaded again
        self._turn = threading.Lock()

    @staticmethod
    def load(name: str, path: Path) -> ServedModel:
        """A served model from its file."""
        before = stamp(path)
        served = ServedModel(name, path, loaded(path))
        served.seen = before
        return served

    @property
    def changed(self) -> bool:
        """Whether the file is another one than was loaded last."""
        return self.path is not None and stamp(self.path) != self.seen

    def reload(self) -> None:
        """Load the file again; if it cannot be read, the old model stays and the error is raised."""
        if self.path is None:
            return
        with self._turn:
            self.seen = stamp(self.path)
            try:
                self.state = loaded(self.path)
                self.failed = ""
            except Exception as fault:
                self.failed = str(fault)
                raise


def loaded(path: Path) -> ModelState:
    """The state of a model file."""
    model, digest = load_changeable(path)
    return ModelState.of(model.model if isinstance(model, Clusters) else model, digest[:12])


def stamp(path: Path | None) -> tuple[int, int, int] | None:
    """Identity and times of a file, which change when it is replaced; None while there is no file."""
    try:
        found = os.stat(path) if path is not None else None
    except OSError:
        return None
    return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


def names_of(paths: Iterable[str]) -> dict[str, Path]:
    """Model files by the name in their addresses: the name of the file without its ending."""
    found: dict[str, Path] = {}
    for path in map(Path, paths):
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.name.removesuffix(".likely")).strip("-.") or "model"
        name = name[:100]
        if name in found:
            raise UsageError(f"two model files are named {name!r}: rename one of {str(found[name])!r} and {str(path)!r}")
        found[name] = path
    return found
