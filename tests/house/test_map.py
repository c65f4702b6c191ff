"""The map in CONTRIBUTING.md and the picture of the rooms are what the tree gives."""

import ast
import collections
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from likely.families.likelihood_form import LikelihoodForm
from scripted import script
from source_tree import GROUP, SOURCE, files, nodes

TESTS_FOR_A_FORM = {"calibration/_terms.py:_plain_term"}  # functions that still do

pytestmark = pytest.mark.xdist_group(GROUP)


def test_map_and_picture_are_made_from_the_tree(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["make_map.py", "--check"])
    assert script("make_map").main() == 0, capsys.readouterr().out


def test_every_module_at_the_top_stands_on_a_floor() -> None:
    """The contract is exhaustive, so the map that is made from it is."""
    rooms = {room for floor in script("make_map").floors() for room in floor}
    inside = SOURCE.iterdir()
    there = {path.name.removesuffix(".py") for path in inside if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert there - {"__init__", "__main__", "distributions"} == rooms  # doors into the house, not rooms of it


def test_no_family_is_named_outside_its_room() -> None:
    """What differs between families is asked of them, so that a new one needs no change elsewhere."""
    kinds = "Categorical|Bernoulli|Binomial|Multinomial|Poisson|Gaussian|Binned|Text|Joint"
    test = re.compile(rf"isinstance\([^)]*\b({kinds})\b")
    guilty = [
        f"{path.relative_to(SOURCE)}: {found[0]}"
        for path in files() if "families" not in path.parts
        for found in test.finditer(path.read_text(encoding="utf-8"))
    ]  # fmt: skip
    assert guilty == []


def forms() -> set[str]:
    """Names of all likelihood forms."""
    for path in (SOURCE / "families").glob("*.py"):
        importlib.import_module(f"likely.families.{path.stem}".removesuffix(".__init__"))
    found, rest = set(), [LikelihoodForm]
    while rest:
        rest += (form := rest.pop()).__subclasses__()
        found.add(form.__name__)
    return found


def names_tested_for(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each class that `isinstance`, `issubclass` or a case of `match` tests for."""
    for node in ast.walk(tree):
        tested: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
            tested = node.args[1:]
        elif isinstance(node, ast.MatchClass):
            tested = [node.cls]
        for part in (part for each in tested for part in ast.walk(each)):
            if isinstance(part, ast.Name | ast.Attribute):
                yield part.lineno, part.id if isinstance(part, ast.Name) else part.attr


def test_no_likelihood_form_is_tested_for_outside_its_room() -> None:
    """What differs between forms is asked of them; scorers go by `form.loop`, exporters by one table from form to function."""
    known = forms()
    assert {"LookupTable", "GaussianTerm", "JointGaussianTerm", "ScaledTerm", "BagOfWordsTerm", "Averaged"} <= known
    guilty = []
    for path in files():
        if "families" not in path.parts:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            allowed = {
                line for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef) and f"{path.parent.name}/{path.name}:{node.name}" in TESTS_FOR_A_FORM
                for line in range(node.lineno, (node.end_lineno or 0) + 1)
            }  # fmt: skip
            guilty += [
                f"{path.relative_to(SOURCE)}:{line} {name}" for line, name in names_tested_for(tree)
                if name in known and line not in allowed
            ]  # fmt: skip
    assert guilty == []


def test_no_file_name_has_two_meanings() -> None:
    names = collections.Counter(path.name for path in files() if path.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []


DISTRIBUTIONS = (Path("bayes", "discrete.py"), Path("bayes", "outcomes.py"))


def test_no_class_name_has_two_meanings() -> None:
    """Only a distribution and the family of columns that has it share a name, as `likely.distributions.Poisson`."""
    homes: dict[str, list[Path]] = collections.defaultdict(list)
    for path, node in nodes():
        if isinstance(node, ast.ClassDef) and path not in DISTRIBUTIONS:
            homes[node.name].append(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
