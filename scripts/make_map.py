"""The map of the rooms in CONTRIBUTING.md and their picture, docs/rooms.svg, from docstrings and imports.

python scripts/make_map.py           writes both
python scripts/make_map.py --check   exits 1 if either is not what the tree gives
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "likely"
MAP, PICTURE = ROOT / "CONTRIBUTING.md", ROOT / "docs" / "rooms.svg"
BEGIN, END = "<!-- map: made by scripts/make_map.py -->", "<!-- end of the map -->"
WIDTH, HIGH, GAP, TOP = 960, 34, 26, 16


def floors() -> list[list[str]]:
    """The rooms floor by floor, the highest first, as the import contract has them."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][0]
    return [[room.strip() for room in layer.split("|")] for layer in contract["layers"]]


def module_of(room: str) -> Path:
    """The file with the room's docstring."""
    package = SOURCE / room / "__init__.py"
    return package if package.exists() else SOURCE / f"{room}.py"


def words(room: str) -> tuple[str, str]:
    """What a room is for, and what it never does."""
    text = ast.get_docstring(ast.parse(module_of(room).read_text(encoding="utf-8"))) or ""
    never = re.search(r"^Never: (.*)\.$", text, re.MULTILINE)
    if never is None:
        raise SystemExit(f"{module_of(room).relative_to(ROOT)}: the docstring has no line 'Never: ...'")
    return text.splitlines()[0], never[1]


def table() -> str:
    """The map as a Markdown table."""
    lines = ["| floor | room | what it is for | never |", "|---|---|---|---|"]
    for number, rooms in zip(range(len(floors()) - 1, -1, -1), floors(), strict=True):
        for room in rooms:
            what, never = words(room)
            lines.append(f"| {number} | `{room}{'/' if (SOURCE / room).is_dir() else '.py'}` | {what} | {never} |")
    return "\n".join(lines)


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements at any depth: expressions, which are most of a tree, hold no import."""
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        inside = getattr(tree, field, None)
        for node in inside if isinstance(inside, list) else ():
            yield node
            yield from statements(node)


def imports() -> set[tuple[str, str]]:
    """Which room imports from which."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("likely."):
                found.add((own, (node.module or "").split(".")[1]))
            elif isinstance(node, ast.ImportFrom) and node.module == "likely":
                found |= {(own, alias.name) for alias in node.names}
    return {(a, b) for a, b in found if a != b}


def picture() -> str:
    """The rooms as boxes, floor by floor; a line joins a room with one that it imports from."""
    places: dict[str, tuple[float, float, float]] = {}
    for level, rooms in enumerate(floors()):
        wide = (WIDTH - 20) / len(rooms)
        for i, room in enumerate(rooms):
            places[room] = (10 + wide * i + 6, TOP + level * (HIGH + GAP), wide - 12)
    high = TOP + len(floors()) * (HIGH + GAP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}" role="img" font-family="sans-serif">',
        "<title>The folders of the package</title>",
        "<desc>A folder imports only from folders in lower rows; each line is an import.</desc>",
        f'<rect width="{WIDTH}" height="{high}" fill="#ffffff"/>',
    ]
    for a, b in sorted(imports()):
        if a in places and b in places:
            (xa, ya, wa), (xb, yb, wb) = places[a], places[b]
            x1, y1, x2, y2 = xa + wa / 2, ya + HIGH, xb + wb / 2, yb
            path = f"M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + 40:.0f} {x2:.0f} {y2 - 40:.0f} {x2:.0f} {y2:.0f}"
            tip = f"<title>{a} imports {b}</title>"
            out.append(f'<path d="{path}" fill="none" stroke="#0f766e" stroke-opacity="0.28">{tip}</path>')
    for room, (x, y, wide) in places.items():
        what, _ = words(room)
        out.append(
            f'<g><title>{what}</title><rect x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{HIGH}" rx="6" fill="#e6f4f1" '
            f'stroke="#0f766e"/><text x="{x + wide / 2:.0f}" y="{y + 22:.0f}" text-anchor="middle" font-size="14" '
            f'fill="#134e4a">{room}</text></g>'
        )
    return "\n".join([*out, "</svg>", ""]).replace("'", "&#39;")


def main() -> int:
    """Write both, or compare them with what is there."""
    text = MAP.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    made = {MAP: f"{before}{BEGIN}\n{table()}\n{END}{after}", PICTURE: picture()}
    if "--check" in sys.argv[1:]:
        old = [str(p.relative_to(ROOT)) for p, t in made.items() if not p.exists() or p.read_text(encoding="utf-8") != t]
        print(*(f"{path} is not what the tree gives: run scripts/make_map.py" for path in old), sep="\n")
        return 1 if old else 0
    for path, content in made.items():
        path.write_text(content, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
