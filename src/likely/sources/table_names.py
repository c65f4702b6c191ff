"""Names of the tables of a database, as one writes them: `table`, `schema.table`, parts with dots in double quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from likely.errors import DataError, did_you_mean

PART = re.compile(r'"((?:[^"]|"")*)"|([^".]+)')
MOST_LISTED = 20
Place = tuple[str, str]  # schema and table


def quoted(name: str) -> str:
    """A name as quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def name_parts(name: str, most: int = 2) -> list[str]:
    """The parts of a name, the table last; a name that is not made of at most so many parts is the table itself."""
    found = PART.findall(name)
    parts = [inside.replace('""', '"') if inside else bare for inside, bare in found]
    written = ".".join(f'"{inside}"' if inside else bare for inside, bare in found)
    return parts if written == name and 0 < len(parts) <= most else [name]


def shown(place: Place, usual: str) -> str:
    """The name by which a table is chosen; its schema is named unless it is the usual one."""
    parts = place[1:] if place[0] == usual else place
    return ".".join(part if name_parts(part) == [part] else quoted(part) for part in parts)


def choose_table(wanted: str | None, places: Sequence[Place], usual: str, label: str) -> Place:
    """The requested table of those of a database, or the only one."""
    names = {shown(place, usual): place for place in places}
    if wanted is None and len(places) == 1:
        return places[0]
    more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    listed = ", ".join(map(repr, list(names)[:MOST_LISTED])) + more
    if wanted is None:
        raise DataError(
            f"{label} has {len(names)} tables: {listed}" if names else f"{label} has no table",
            remedy="name one with table= (--table)" if names else None,
        )
    parts = name_parts(wanted)
    for place in ((usual, parts[0]) if len(parts) == 1 else (parts[0], parts[1]), (usual, wanted)):
        if place in places:
            return place
    raise DataError(f"{label} has no table {wanted!r}{did_you_mean(wanted, list(names))}: it has {listed}")
