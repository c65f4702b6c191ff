"""Rooms are closed: a module with an underscore is private to its room, and one without is used outside of it."""

import ast
from pathlib import Path

import likely

SOURCE = Path(likely.__file__).parent


def modules() -> dict[str, Path]:
    """Every module of a room by its name."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if len(parts) > 1 and parts[-1] != "__init__":
            found[".".join(("likely", *parts))] = path
    return found


def named_in(path: Path) -> set[str]:
    """Modules that a file imports, or names in a string to import them later."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("likely."):
            found.add(node.value.split(":")[0])
    return found


def used_outside() -> set[str]:
    """Modules that a file of another room, or of no room, imports."""
    known, found = modules(), set()
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).parts
        room = parts[0] if len(parts) > 1 else ""
        found |= {name for name in named_in(path) & known.keys() if name.split(".")[1] != room}
    return found


def test_nobody_outside_a_room_imports_its_private_modules() -> None:
    assert sorted(name for name in used_outside() if name.rsplit(".", 1)[1].startswith("_")) == []


def test_a_module_that_nobody_outside_its_room_imports_is_private() -> None:
    public = {name for name in modules() if not name.rsplit(".", 1)[1].startswith("_")}
    assert sorted(public - used_outside()) == []
