"""Folders of tables, as Spark and other engines write them, with the values that folders named like `year=2026` hold."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote

from likely.errors import DataError
from likely.sources._text_folders import TABLES
from likely.sources.batch import Batch, Frame
from likely.sources.wrapper import SourceWrapper

NULL = "__HIVE_DEFAULT_PARTITION__"


def tables_of(folder: str) -> list[str]:
    """Files of a folder and its folders, sorted, if they are tables of one type; else none.

    Names that begin with an underscore or a dot are not data: writers mark with them that they finished, and keep checksums.
    """
    found = []
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(("_", ".")))
        found += [os.path.join(here, name) for name in sorted(names) if not name.startswith(("_", "."))]
    endings = {os.path.splitext(path)[1].lower() for path in found}
    return found if len(endings) == 1 and endings <= set(TABLES) - {".likely"} else []


def partition_values(path: str, given: str) -> dict[str, str | None]:
    """Columns that the folders of a file are named after, below the given folder or the first star of the given pattern.

    `year=2026/day=3/part.parquet` has a year and a day.
    """
    fixed = given if os.path.isdir(given) else os.path.dirname(given.split("*", maxsplit=1)[0])
    folders = os.path.dirname(os.path.relpath(path, fixed or ".")).split(os.sep)
    pairs = [name.split("=", 1) for name in folders if "=" in name[1:]]
    return {unquote(key): None if value == NULL else unquote(value) for key, value in pairs}


@dataclass(frozen=True)
class PartitionedFile(SourceWrapper):
    """A file with the columns that its folders are named after."""

    values: Mapping[str, str | None]

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        import pyarrow as pa

        for batch in self.inner.batches(kinds):
            assert isinstance(batch, Frame)
            twice = sorted(self.values.keys() & set(batch.names))
            if twice:
                raise DataError(f"{self.label} has a column {twice[0]!r}, and its folder has one as well", column=twice[0])
            wanted = {name: value for name, value in self.values.items() if kinds is None or name in kinds}
            same = {name: pa.repeat(pa.scalar(value, pa.string()), batch.rows) for name, value in wanted.items()}
            yield replace(batch, columns={**batch.columns, **same})
