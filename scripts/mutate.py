"""Break the code in one place at a time and see whether the tests notice: `python scripts/mutate.py --count 40`.

Places are drawn evenly from the modules below: an operator, a comparison, a sign or a condition is turned round. For each, the
related tests run on a copy of the package; a mutation that all of them pass is a survivor and is printed with its line.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "likely"
# The modules that are broken, and the tests that should notice.
TARGETS: dict[str, list[str]] = {
    "calibration/_stages.py": [
        "tests/worked/test_second_stage.py", "tests/laws/test_calibration_laws.py", "tests/laws/test_trust_laws.py",
        "tests/laws/test_joint_gaussian_laws.py",
    ],
    "calibration/_fit.py": [
        "tests/worked/test_second_stage.py", "tests/laws/test_calibration_laws.py", "tests/laws/test_trust_laws.py",
        "tests/laws/test_text_weight_laws.py", "tests/laws/test_second_stage_laws.py",
    ],
    "calibration/_terms.py": [
        "tests/worked/test_second_stage.py", "tests/laws/test_calibration_laws.py", "tests/laws/test_trust_laws.py",
        "tests/laws/test_second_stage_laws.py", "tests/laws/test_compiled_laws.py",
    ],
    "calibration/_weight_fit.py": [
        "tests/laws/test_compiled_laws.py", "tests/laws/test_calibration_laws.py", "tests/laws/test_trust_laws.py",
        "tests/laws/test_weight_fit_laws.py",
    ],
    "calibration/calibration.py": [
        "tests/worked/test_second_stage.py", "tests/laws/test_calibration_laws.py", "tests/laws/test_default_laws.py",
        "tests/laws/test_joint_gaussian_laws.py",
    ],
    "model/ledger.py": ["tests/worked/test_ledger.py", "tests/worked/test_tennis.py", "tests/doors/test_plain_messages.py"],
    "model/_explanation.py": [
        "tests/worked/test_ledger.py", "tests/worked/test_tennis.py", "tests/worked/test_edges.py",
        "tests/worked/test_blocks.py", "tests/laws/test_family_laws.py",
    ],
    "latent/semi_supervised.py": [
        "tests/worked/test_second_stage.py", "tests/laws/test_semi_supervised_laws.py", "tests/worked/test_binned_hidden.py",
        "tests/worked/test_em.py", "tests/laws/test_em_laws.py",
    ],
    "latent/_unlabelled_choice.py": ["tests/laws/test_semi_supervised_laws.py", "tests/worked/test_second_stage.py"],
    "evaluation/metrics.py": ["tests/doors/test_evaluate.py"],
    "latent/em.py": [
        "tests/laws/test_em_laws.py", "tests/worked/test_em.py", "tests/laws/test_step_laws.py", "tests/doors/test_mixture.py",
    ],
    "model/serialization/_parts.py": [
        "tests/faults/test_model_file.py", "tests/laws/test_family_laws.py", "tests/laws/test_second_stage_laws.py",
        "tests/laws/test_joint_gaussian_laws.py",
    ],
    "model/serialization/_validator.py": [
        "tests/faults/test_model_file.py", "tests/faults/test_calibrated_file.py", "tests/faults/test_crafted_file.py",
    ],
    "engines/scorer.py": [
        "tests/worked/test_gaussian.py", "tests/worked/test_tennis.py", "tests/laws/test_family_laws.py",
        "tests/laws/test_second_stage_laws.py", "tests/laws/test_text_laws.py", "tests/worked/test_edges.py",
    ],
    "model/parameters.py": [
        "tests/worked/test_tennis.py", "tests/worked/test_edges.py", "tests/laws/test_model_laws.py",
        "tests/worked/test_parameter_tables.py", "tests/doors/test_names.py", "tests/faults/test_signs_of_a_file.py",
        "tests/laws/test_copy_laws.py", "tests/worked/test_second_stage.py",
    ],
    "kernels/keys.py": [
        "tests/laws/test_document_sample_laws.py", "tests/laws/test_row_sample_laws.py", "tests/laws/test_counted_before.py",
    ],
    "tally/row_sample.py": [
        "tests/laws/test_row_sample_laws.py",
        "tests/laws/test_tally_laws.py", "tests/laws/test_counted_before.py", "tests/laws/test_copy_laws.py",
    ],
    "families/document_sample.py": [
        "tests/laws/test_document_sample_laws.py", "tests/laws/test_text_weight_laws.py", "tests/faults/test_model_file.py",
    ],
}
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Lt: ast.GtE, ast.GtE: ast.Lt,
    ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}


def places(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes that can be broken: not in messages, annotations, docstrings or what only shapes types."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Raise | ast.AnnAssign | ast.arguments | ast.JoinedStr | ast.Import | ast.ImportFrom):
            continue
        if can_break(child):
            yield child
        yield from places(child)


def can_break(node: ast.AST) -> bool:
    """Whether a node has an opposite."""
    if isinstance(node, ast.BinOp):
        return type(node.op) in OPERATORS and not isinstance(node.left, ast.Constant | ast.List)
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in OPERATORS
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not | ast.USub)
    name = getattr(node, "attr", "") or getattr(node, "id", "")
    return isinstance(node, ast.BoolOp) or (isinstance(node, ast.Attribute | ast.Name) and name in NAMES)


def broken(node: ast.AST) -> None:
    """Turn one node round, in place."""
    if isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = OPERATORS[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.Compare):
        node.ops[0] = OPERATORS[type(node.ops[0])]()  # type: ignore[call-overload]
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        if isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.Attribute):
        node.attr = NAMES[node.attr]
    elif isinstance(node, ast.Name):
        node.id = NAMES[node.id]


def mutants(count: int, seed: int) -> list[tuple[str, int, str]]:
    """Module, line and the whole mutated source, drawn evenly from the modules."""
    rng = random.Random(seed)
    chosen: list[tuple[str, int, str]] = []
    modules = list(TARGETS)
    for turn in range(count):
        module = modules[turn % len(modules)]
        tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        spots = [spot for function in functions for spot in places(function)]
        at = rng.randrange(len(spots))
        made = copy.deepcopy(tree)
        again = [spot for n in ast.walk(made) if isinstance(n, ast.FunctionDef) for spot in places(n)]
        broken(again[at])
        chosen.append((module, getattr(spots[at], "lineno", 0), ast.unparse(ast.fix_missing_locations(made))))
    return chosen


def survives(module: str, source: str, folder: Path, seconds: int) -> bool:
    """Whether the related tests pass on the mutated package."""
    path = folder / "likely" / module
    before = path.read_text(encoding="utf-8")
    path.write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *TARGETS[module]]
    env = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command += ["-o", f"pythonpath={folder} tests", "--hypothesis-profile=quick"]
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, timeout=seconds, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        return False  # an endless loop is noticed
    finally:
        path.write_text(before, encoding="utf-8")
    return done.returncode == 0


def _numbers(text: str) -> set[int]:
    """1,4-6 as a set of numbers."""
    ends = [part.split("-") for part in text.split(",") if part]
    return {number for pair in ends for number in range(int(pair[0]), int(pair[-1]) + 1)}


def main() -> int:
    """Print every mutation with its fate, then the survivors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=600, help="for the tests of one mutation")
    parser.add_argument("--only", default="", metavar="N,N-N", help="numbers of the mutations to try; all by default")
    given = parser.parse_args()
    wanted = _numbers(given.only) or set(range(1, given.count + 1))
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(PACKAGE, Path(folder) / "likely", ignore=shutil.ignore_patterns("__pycache__"))
        for number, (module, line, source) in enumerate(mutants(given.count, given.seed), 1):
            if number not in wanted:
                continue
            alive = survives(module, source, Path(folder), given.seconds)
            text = (PACKAGE / module).read_text(encoding="utf-8").splitlines()[line - 1].strip()
            print(f"{number:3d} {'SURVIVED' if alive else 'noticed '} {module}:{line} {text[:90]}", flush=True)
            survivors += [f"{module}:{line}"] if alive else []
    print(f"{len(wanted) - len(survivors)} of {len(wanted)} were noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
