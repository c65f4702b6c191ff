"""The house stands: rooms import downwards, the front door is light, files and functions stay small."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from source_tree import GROUP, SOURCE, files, nodes

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("numba", "sklearn", "duckdb", "pandas", "polars")
EXECUTABLE_FORMATS = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
MAY_USE_THE_FRONT_DOOR = {"__init__", "__main__", "cli", "teaching", "web"}
MOST_LINES_IN_A_FILE = 400
MOST_LINES_IN_A_FUNCTION = 40

pytestmark = pytest.mark.xdist_group(GROUP)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=300)


def python(code: str) -> str:
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def measured_files() -> list[Path]:
    """The package and what stands beside it: benchmarks and scripts."""
    return [*files(), *sorted((ROOT / "bench").rglob("*.py")), *sorted((ROOT / "scripts").rglob("*.py"))]


def imported_modules(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        yield node.module


def test_a_room_imports_only_from_rooms_further_down() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    if not linter.exists():
        pytest.fail("import-linter is not installed: pip install -e '.[lint]'")
    done = run(str(linter), "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_import_likely_brings_in_no_heavy_library() -> None:
    loaded = python(f"import likely, sys; print(*[name for name in {HEAVY!r} if name in sys.modules])")
    assert loaded == ""


def test_compiled_loops_bring_in_no_linear_algebra_which_numba_still_finds_where_it_is_compiled() -> None:
    pytest.importorskip("scipy.linalg")
    code = """
import sys, numba, numpy as np
from likely.kernels.table_scores import add_places
place = np.zeros(3, np.int64)
add_places.fast(np.array([0, 1, -1], np.int32), np.array([5, 6, 7]), place)
print(place.tolist(), "scipy.linalg" in sys.modules)
product = numba.njit(lambda a: a @ np.linalg.inv(a))
print(np.allclose(product(np.array([[2.0, 1.0], [0.0, 3.0]])), np.eye(2)), "scipy.linalg" in sys.modules)
"""
    assert python(code).splitlines() == ["[6, 7, 5] False", "True True"]


def test_a_model_of_a_table_is_loaded_without_what_hidden_labels_need(tmp_path: Path) -> None:
    likely.learn({"a": ["u", "v"], "y": ["p", "q"]}, "y", plain=True).save(tmp_path / "m.likely")
    loaded = python(f"import likely, sys; likely.load({str(tmp_path / 'm.likely')!r}); print(*sys.modules)").split()
    assert "likely.model.model" in loaded
    assert not [name for name in loaded if name.startswith(("likely.latent.", "likely.networks"))]


@pytest.mark.parametrize(("given", "pool"), [("", "system"), ("mimalloc", "mimalloc")])
def test_a_command_that_reads_rows_uses_the_allocator_of_the_system_unless_another_is_set(
    given: str, pool: str, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"a": ["u", "v"] * 4, "y": ["p", "q"] * 4}), tmp_path / "t.parquet")
    code = f"""
import atexit, os
{f'os.environ["ARROW_DEFAULT_MEMORY_POOL"] = {given!r}' if given else 'os.environ.pop("ARROW_DEFAULT_MEMORY_POOL", None)'}
from likely.cli import main
def tell():
    import pyarrow
    print(pyarrow.default_memory_pool().backend_name)
atexit.register(tell)
main(["learn", {str(tmp_path / "t.parquet")!r}, "--target", "y", "--plain", "-o", {str(tmp_path / "m.likely")!r}])
"""
    assert python(code).splitlines()[-1] == pool


KINDS = ["dict", "rows", "array", "csv", "odd.csv", "jsonl", "parquet"]
LEARN_AND_PREDICT = """
import json, sys, warnings, numpy as np, likely
warnings.simplefilter("ignore")
for kind, data in json.loads(sys.argv[1]).items():
    data = np.array(data, dtype=float) if kind == "array" else data
    model = likely.learn(data, "x2" if kind == "array" else "y")
    model.predict(data); model.update(data)
    print(kind, *[name for name in ("pandas", "polars", "sklearn", "numba") if name in sys.modules])
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What is imported after learning from each kind of data, one after the other in one process."""
    folder = tmp_path_factory.mktemp("kinds")
    table = {"a": [1.5, 2.5, None, 4.0], "n": [1, 2, 2, None], "b": ["u", "v", None, "v"], "y": ["p", "q", "p", "q"]}
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    lines = "".join(",".join("" if v is None else str(v) for v in row.values()) + "\n" for row in rows)
    (folder / "table.csv").write_text("a,n,b,y\n" + lines, newline="")
    (folder / "table.odd.csv").write_text("a,n,b,y\r\n" + lines, newline="")  # two kinds of line end
    (folder / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.table(table), folder / "table.parquet")
    array = [[1.5, 2, 0], [2.5, None, 1], [3.5, 1, 0], [1, 2, 1]]
    data = {"dict": table, "rows": rows, "array": array} | {kind: str(folder / f"table.{kind}") for kind in KINDS[3:]}
    done = run(sys.executable, "-c", LEARN_AND_PREDICT, json.dumps(data))
    assert done.returncode == 0, done.stderr
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("kind", KINDS)
def test_learning_and_predicting_bring_in_no_library_that_the_data_do_not_need(
    kind: str, libraries: dict[str, list[str]]
) -> None:
    """Arrow imports pandas whenever it is handed a Python value, which takes longer than learning a small table."""
    assert libraries[kind] == []


def test_a_verb_stays_callable_whichever_module_was_imported_first() -> None:
    public = python("import likely; print(*likely.__all__)").split()
    rooms = {path.stem for path in SOURCE.iterdir()} - {"brain", "distributions", "errors"}  # these are public modules
    verbs = [name for name in public if name in rooms]
    assert verbs
    for first in verbs:
        check = f"print(*[name for name in {verbs!r} if not callable(getattr(likely, name))])"
        hidden = python(f"import likely.{first}, likely; {check}")
        assert hidden == "", f"after `import likely.{first}` these are modules, not verbs: {hidden}"


def test_every_public_name_can_be_had() -> None:
    python("import likely\nfor name in likely.__all__: getattr(likely, name)")


def test_no_room_below_the_doors_imports_the_front_door() -> None:
    rooms = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()} - {"distributions"}
    guilty = []
    for path, node in nodes():
        if path.parts[0].removesuffix(".py") in MAY_USE_THE_FRONT_DOOR:
            continue
        if "likely" in imported_modules(node) and isinstance(node, ast.Import):
            guilty.append(f"{path}:{node.lineno}")
        if isinstance(node, ast.ImportFrom) and node.module == "likely" and node.level == 0:
            guilty += [f"{path}:{node.lineno} {alias.name}" for alias in node.names if alias.name not in rooms]
        guilty += [f"{path}:{node.lineno} {name}" for name in imported_modules(node) if name == "likely.distributions"]
    assert guilty == []


def test_nothing_that_can_execute_a_file_is_imported() -> None:
    guilty = [
        f"{path}: {name}" for path, node in nodes() for name in imported_modules(node)
        if name.split(".")[0] in EXECUTABLE_FORMATS
    ]  # fmt: skip
    assert guilty == []


def docstring_lines(node: ast.AST) -> int:
    """Lines of a docstring: reference documentation, which is as long as the parameters are many."""
    body = getattr(node, "body", None)
    first = body[0] if isinstance(body, list) and body else None
    if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)):
        return 0
    return (first.end_lineno or first.lineno) - first.lineno + 1


def test_no_file_has_more_than_four_hundred_lines() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text(encoding="utf-8").splitlines()) for path in measured_files()}
    assert lengths
    assert {str(path): lines for path, lines in lengths.items() if lines > MOST_LINES_IN_A_FILE} == {}


def compiled(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A kernel is one loop nest: cut in two, it would run twice over memory."""
    kernels = ("Kernel", "ReorderedKernel", "ComposedKernel", "SimdKernel", "subroutine", "piece")
    return any(isinstance(mark, ast.Name) and mark.id in kernels for mark in node.decorator_list)


def test_no_function_but_a_compiled_loop_has_more_than_forty_lines_besides_its_docstring() -> None:
    long = []
    for path, node in nodes():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not compiled(node):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1 - docstring_lines(node)
            if lines > MOST_LINES_IN_A_FUNCTION:
                long.append(f"{path}:{node.lineno} {node.name} ({lines} lines)")
    assert long == []


def test_no_function_but_a_compiled_loop_takes_more_than_five_arguments_by_position() -> None:
    """A command of the shell gets its options by name from click."""
    wide = []
    for path, node in nodes():
        if path.name in ("_block_operations.py", "_scalar.py", "_simd.py"):  # the operations that compiled loops call
            continue
        if not isinstance(node, ast.FunctionDef) or any("click." in ast.unparse(d) for d in node.decorator_list):
            continue
        names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
        count = len(names) - (names[:1] in (["self"], ["cls"]))
        if count > 5 and not compiled(node):
            wide.append(f"{path}:{node.lineno} {node.name}")
    assert wide == []


def test_no_cached_property_holds_a_lock() -> None:
    """Until Python 3.12 the one of functools locks for all instances: a forked process could wait for it for ever."""
    guilty = [
        f"{path}:{node.lineno}" for path, node in nodes()
        if isinstance(node, ast.ImportFrom) and node.module == "functools"
        and any(alias.name == "cached_property" for alias in node.names)
    ]  # fmt: skip
    assert guilty == []
