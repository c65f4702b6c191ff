"""The map in CONTRIBUTING.md and the picture of the rooms are what the tree gives."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_map_and_picture_are_made_from_the_tree() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/make_map.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_at_the_top_stands_on_a_floor() -> None:
    """The contract is exhaustive, so the map that is made from it is."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import make_map
    finally:
        sys.path.pop(0)
    rooms = {room for floor in make_map.floors() for room in floor}
    inside = (ROOT / "src" / "likely").iterdir()
    there = {path.name.removesuffix(".py") for path in inside if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert there - {"__init__", "__main__", "distributions"} == rooms  # doors into the house, not rooms of it


def test_no_family_is_named_outside_its_room() -> None:
    """What differs between families is asked of them, so that a new one needs no change elsewhere."""
    import re

    kinds = "Categorical|Bernoulli|Binomial|Multinomial|Poisson|Gaussian|Binned|Text|Joint"
    test = re.compile(rf"isinstance\([^)]*\b({kinds})\b")
    source = ROOT / "src" / "likely"
    guilty = [
        f"{path.relative_to(source)}: {found[0]}"
        for path in source.rglob("*.py") if "families" not in path.parts
        for found in test.finditer(path.read_text(encoding="utf-8"))
    ]  # fmt: skip
    assert guilty == []


def test_no_file_name_has_two_meanings() -> None:
    import collections

    names = collections.Counter(path.name for path in (ROOT / "src" / "likely").rglob("*.py") if path.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []


def test_no_class_name_has_two_meanings() -> None:
    """Only a distribution and the family of columns that has it share a name, as `likely.distributions.Poisson`."""
    import ast
    import collections

    homes: dict[str, list[str]] = collections.defaultdict(list)
    source = ROOT / "src" / "likely"
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and path != source / "bayes" / "discrete.py":
                homes[node.name].append(str(path.relative_to(source)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
