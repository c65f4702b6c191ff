"""The source of the package, parsed and walked through once for all tests that look for something in it."""

import ast
import functools
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "likely"
GROUP = "source tree"  # of pytest-xdist: the tests that call `nodes` run in one process
WANTED = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Attribute


def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@functools.cache
def nodes() -> list[tuple[Path, ast.AST]]:
    """Imports, functions, classes and attributes of every file, each with the file's path in the package.

    Of a body only the first statement is kept, which may be a docstring: what stands in it is listed itself, and whole
    trees would be gone through by every run of the garbage collector.
    """
    found: list[tuple[Path, ast.AST]] = []
    for path in files():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [(path.relative_to(SOURCE), node) for node in ast.walk(tree) if isinstance(node, WANTED)]
    for _, node in found:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            del node.body[1:]
    return found
