"""Trouble with the compile cache is never fatal: the answer is the same, and the trouble is reported once."""

import functools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from processes import SOURCE

TINY = """
import numpy as np
from likely.kernels.kernel import Kernel

@Kernel
def doubled(x, out):
    for i in range(x.size):
        out[i] = 2 * x[i]

@Kernel
def added(x, out):
    for i in range(x.size):
        out[i] = x[i] + 1

x = np.arange(100.0)
out = np.empty(100)
for kernel in (doubled, added):
    kernel.prepare()
    kernel.tiny = 0
    kernel(x, out)
    print(out.sum())
"""
# Importing Numba takes longer than compiling two small kernels: each process is the fork of one that has imported it.
IMPORTED = """
import json, os, runpy, sys
import numba
from numba.core import config
from likely.kernels import _compiling as compiling, kernel

for line in sys.stdin:
    module, env, out, err = json.loads(line)
    child = os.fork()
    if not child:
        os.environ.clear()
        os.environ.update(env)
        config.reload_config()
        for stream, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
        try:
            runpy.run_path(module, run_name="__main__")
            sys.stdout.flush()
            os._exit(0)
        finally:
            os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
END = "print(out.sum())\nprint(5050.0)"
ANSWER = "9900.0\n5050.0\n"
COMPILED = [f"likely: compiling {name}, about 0.1 s (once on this machine)" for name in ("doubled", "added")]
NOBODY = 65534


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A module with two small kernels, and a home without a cache."""
    return made(tmp_path)


def made(folder: Path) -> Path:
    (folder / "package").mkdir()
    (folder / "home").mkdir()
    module = folder / "package" / "tiny.py"
    module.write_text(TINY)
    return module


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of such a module after it was compiled."""
    folder = tmp_path_factory.mktemp("compiled")
    assert run(made(folder)) == COMPILED
    return folder


@pytest.fixture
def compiled(once: Path, tmp_path: Path) -> Path:
    """A copy of the compiled module, with its cache."""
    shutil.copytree(once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "package" / "tiny.py"


@functools.cache
def imported() -> subprocess.Popen[str]:
    """The process that forks."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")} | {"PYTHONPATH": str(SOURCE)}
    return subprocess.Popen([sys.executable, "-c", IMPORTED], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module", autouse=True)
def _ended() -> Iterator[None]:
    yield
    imported().communicate(timeout=60)
    imported.cache_clear()


def forked(module: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What a fork that runs the module says."""
    process = imported()
    assert process.stdin is not None
    assert process.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process.stdin.write(json.dumps([str(module), env, str(out), str(err)]) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        return subprocess.CompletedProcess([], code, out.read_text(), err.read_text())


def run(module: Path, home: Path | str | None = None, cache: Path | str | None = None, **options: Any) -> list[str]:
    """What a process that compiles both kernels says; its answers are always the right ones."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_"))}
    env |= {"PYTHONPATH": str(SOURCE), "HOME": str(home or module.parents[1] / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"NUMBA_CACHE_DIR": str(cache)} if cache is not None else {}
    env |= options.pop("more", {})
    done = forked(module, env) if not options else subprocess.run(
        [sys.executable, str(module)], env=env, capture_output=True, text=True, timeout=300, check=False, **options
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ANSWER), done.stderr
    return done.stderr.splitlines()


def test_a_compilation_reports_how_long_it_takes() -> None:
    from likely.calibration import _calibration_loops as loops
    from likely.kernels._compiling import estimated_seconds
    from likely.tokenizer import _loops

    short, long = (estimated_seconds(kernel.plain) for kernel in (loops.add_residuals, loops.cut_bins))
    assert 0.1 < short < long < 2.0
    alone = len(_loops.count_documents.plain.__code__.co_code) * 6e-4
    assert estimated_seconds(_loops.count_documents.plain) > 3 * alone  # the functions that it calls are compiled as well


def without_cache(reported: list[str], reason: str) -> None:
    """The trouble was reported exactly once, and that it costs a compilation at every start."""
    assert sum("the compile cache cannot be used" in line for line in reported) == 1, reported
    assert any(reason in line and "NUMBA_CACHE_DIR" in line for line in reported), reported
    assert sum(line.startswith("likely: compiling ") for line in reported) == 2, reported


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbc"))


def test_what_was_compiled_is_loaded_without_a_word(package: Path) -> None:
    assert run(package) == COMPILED
    assert len(kept(package.parent)) == 2
    assert run(package) == []


def test_a_folder_that_cannot_be_made_is_passed_over(package: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run(package, cache=tmp_path / "file") == COMPILED  # kept beside the source instead
    assert run(package, cache="/proc/none") == []


def test_without_any_place_to_write_it_compiles_in_memory(package: Path) -> None:
    (package.parent / "__pycache__").write_text("a file where the folder should be")
    without_cache(run(package, home="/proc/none"), "no locator available")
    without_cache(run(package, home="/dev/null", cache="/dev/null"), "no locator available")


def test_without_a_home_no_folder_is_made_in_the_working_one(package: Path, tmp_path: Path) -> None:
    (package.parent / "__pycache__").write_text("")
    (tmp_path / "work").mkdir()
    without_cache(run(package, home="~", cwd=tmp_path / "work"), "no locator available")
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can give a file away: not tested here")
def test_a_cache_that_another_user_could_have_written_is_not_run(compiled: Path) -> None:
    for path in (kept(compiled.parent)[0], compiled.parent / "__pycache__"):
        os.chown(path, NOBODY, NOBODY)
        reported = run(compiled)
        assert sum("belongs to another user" in line for line in reported) == 1, reported
    os.chown(compiled, NOBODY, NOBODY)  # whoever writes the source code may write what it is compiled to
    assert run(compiled) == []


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here: not tested")
def test_a_cache_that_everybody_may_write_is_not_run(compiled: Path) -> None:
    (compiled.parent / "__pycache__").chmod(0o777)
    without_cache(run(compiled), "can be written by everybody")
    (compiled.parent / "__pycache__").chmod(0o755)
    kept(compiled.parent)[0].chmod(0o666)
    reported = run(compiled)
    assert sum("can be written by everybody" in line for line in reported) == 1, reported
    assert run(compiled) == []  # its place was taken by a new one


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "a byte": lambda whole: whole[:1],
    "half": lambda whole: whole[: len(whole) // 2],
    "one byte short": lambda whole: whole[:-1],
    "zeros": lambda whole: bytes(len(whole)),
    "one bit": lambda whole: whole[:5000] + bytes([whole[5000] ^ 4]) + whole[5001:],
    "other": lambda whole: b"not a cache at all",
}


def test_damaged_files_are_compiled_again(package: Path) -> None:
    head, one, *_ = TINY.split("@Kernel")
    names = [f"kernel{i}" for i in range(len(DAMAGE))]
    text = "@Kernel".join([head, *(one.replace("doubled", name) for name in names)])
    called = f"x, out = np.arange(100.0), np.empty(100)\nfor kernel in [{', '.join(names)}]:\n"
    package.write_text(text + called + "    kernel.prepare()\n    kernel.tiny = 0\n    kernel(x, out)\n" + END)
    compiled = [f"likely: compiling {name}, about 0.1 s (once on this machine)" for name in names]
    assert run(package) == compiled
    for damage, path in zip(DAMAGE.values(), kept(package.parent), strict=True):
        path.write_bytes(damage(path.read_bytes()))
    first, *rest = reported = run(package)
    assert "a file of the compile cache is damaged" in first
    assert rest == compiled, reported
    assert run(package) == []


def test_a_folder_where_a_file_should_be(compiled: Path) -> None:
    for path in kept(compiled.parent):
        path.unlink()
        path.mkdir()
    without_cache(run(compiled), "Is a directory")


def test_a_limit_on_the_size_of_files(package: Path) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    without_cache(run(package, preexec_fn=limited), "File too large")
    assert list((package.parent / "__pycache__").iterdir()) == []  # no half file stays


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small disk can be made here: not tested ({mounted.stderr.decode().strip()})")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk(package: Path, small_disk: Path) -> None:
    without_cache(run(package, cache=small_disk), "No space left")
    assert kept(small_disk) == []


def test_a_disk_that_is_only_read(package: Path, small_disk: Path) -> None:
    module = small_disk / "tiny.py"
    module.write_text(TINY)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    without_cache(run(module, home="/proc/none"), "no locator available")


def test_code_that_checks_bounds_is_kept_apart(compiled: Path) -> None:
    assert run(compiled, more={"NUMBA_BOUNDSCHECK": "1"}) == COMPILED
    assert run(compiled, more={"NUMBA_BOUNDSCHECK": "1"}) == []
    assert run(compiled) == []


def test_other_source_code_is_compiled_again(compiled: Path) -> None:
    beside = compiled.with_name("_part.py")
    beside.write_text("# a part that may have been compiled into it")
    assert run(compiled) == COMPILED
    assert run(compiled) == []


def test_without_a_compiler_it_is_interpreted(package: Path) -> None:
    assert run(package, more={"NUMBA_DISABLE_JIT": "1"}) == []
