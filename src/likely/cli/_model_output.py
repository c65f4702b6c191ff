"""Output of the model of a command: a file that replaces only a model, or standard output."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from likely.cli import _outputs as outputs
from likely.cli._terminal import Terminal, standard_output
from likely.errors import ChangedError

if TYPE_CHECKING:
    from likely.latent.clusters import Clusters
    from likely.model.model import Model

ATTEMPTS = 100  # an attempt fails only if another process saved meanwhile: so many may run at a time


def default_output(data: str) -> str:
    """Default model file: the name of the data with the extension .likely, in the current folder."""
    packed = Path(data).suffix.lower() in (".gz", ".bz2", ".xz", ".zst", ".zip")
    stem = (Path(Path(data).stem).stem if packed else Path(data).stem) or "model"
    return "model.likely" if data == "-" or set(stem) & set("*?[]") else f"{stem}.likely"


def checked(destination: str, inputs: Sequence[str], terminal: Terminal, replaceable: Sequence[str] = ()) -> bool:
    """Check the destination, which may replace only a model; returns whether it is standard output."""
    outputs.check({"-o": destination}, inputs, replaceable=replaceable)
    outputs.check_model("-o", destination)
    return outputs.stdout_is_taken(destination, terminal, "model")


Done = TypeVar("Done")


def until_saved(work: Callable[[], Done]) -> Done:
    """Run read, change and save; repeated if another process has replaced the file meanwhile."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(ChangedError):
            return work()
    return work()


def save(model: Model | Clusters, destination: str, to_stdout: bool, replacing: str | None = None) -> str:
    """Write the model to a file or standard output, and return its digest."""
    if not to_stdout:
        return model.save(destination, replacing=replacing)
    stream = standard_output()
    with tempfile.TemporaryDirectory(prefix="likely-") as folder:
        path = Path(folder, "model.likely")
        digest = model.save(path)
        with path.open("rb") as file:
            shutil.copyfileobj(file, stream.buffer)
        stream.buffer.flush()
    return digest


def called(path: str) -> str:
    """How messages refer to a path."""
    return "standard output" if path == "-" else path
