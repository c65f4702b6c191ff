"""The examples in README and docs run, in the order they are printed, in a folder laid out like the repository."""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

import likely.cli

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {"api.md", "cli.md", "items.md"}  # references made from the code; items.md is run by test_items.py
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md") if p.name not in ELSEWHERE)]
NOT_RUN = "<!-- not run -->"
LEFT_TO_THE_READER = ("make", "pip", "git", "cd", "python3", ".venv/bin/")
SHELL = set("|<>;&$*?`~")  # what only a shell understands
FENCE = re.compile(r"^```(\w*)\s*$")


@dataclass(frozen=True)
class Block:
    language: str
    line: int
    text: str
    run: bool


def blocks(markdown: str) -> Iterator[Block]:
    """Fenced blocks in order; a block right after the marker (blank lines apart) is not run."""
    language, start, body, before = None, 0, [], ""
    for number, line in enumerate(markdown.splitlines(), 1):
        fence = FENCE.match(line)
        if language is None and fence:
            language, start, body = fence[1], number, []
        elif language is not None and line.strip() == "```":
            yield Block(language, start, "\n".join(body), before != NOT_RUN)
            language, before = None, ""
        elif language is not None:
            body.append(line)
        elif line.strip():
            before = line.strip()


def commands(block: Block) -> list[str]:
    """The lines after a `$` prompt, or every line of a bash block without prompts; the rest is output."""
    lines = block.text.replace("\\\n", " ").splitlines()
    prompted = [line[2:].strip() for line in lines if line.startswith("$ ")]
    if prompted or block.language == "console":
        return prompted
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def run_command(command: str, folder: Path, where: str) -> None:
    if command.startswith(LEFT_TO_THE_READER):
        return
    assert command.startswith("likely"), f"{where}: cannot run {command!r}; put {NOT_RUN} before the block"
    if not SHELL & set(command):  # no process of its own: starting one is what the tests of the command line are for
        done = CliRunner().invoke(likely.cli.main, shlex.split(command, comments=True)[1:])
        assert done.exit_code == 0, f"{where}: {command}\nexit {done.exit_code}\n{done.stdout}\n{done.stderr}"
        return
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, f"{where}: {command}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}"


def run_python(block: Block, names: dict[str, object], where: str) -> str:
    """Run the block, and return what it prints."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(block.text, where, "exec"), names)
    except Exception as error:
        error.add_note(where)
        raise
    return printed.getvalue()


def check_output(block: Block, printed: str, where: str) -> None:
    """A block of text after one of Python is what that printed; `...` stands for lines that are left out."""
    lines = iter(printed.splitlines())
    for wanted in block.text.splitlines():
        assert wanted == "..." or any(line.rstrip() == wanted for line in lines), f"{where}: {wanted!r} is not printed so"


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run_as_printed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "src" / "likely" / "data", tmp_path / "src" / "likely" / "data")
    monkeypatch.chdir(tmp_path)
    module = ModuleType("__example__")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # a page may define a dataclass
    names = vars(module)
    ran, printed = 0, None
    for block in blocks((ROOT / page).read_text(encoding="utf-8")):
        where = f"{page}, line {block.line}"
        if not block.run:
            continue
        if block.language == "python":
            printed = run_python(block, names, where)
            ran += 1
        elif block.language == "text" and printed is not None:
            check_output(block, printed, where)
        elif block.language in {"console", "bash", "sh", "shell"}:
            for command in commands(block):
                run_command(command, tmp_path, where)
            ran += 1
    assert ran or page != "README.md", "the README holds no example that runs"


def test_every_block_of_the_readme_imports_what_it_uses() -> None:
    """Whoever copies one block must not need another."""
    for block in blocks((ROOT / "README.md").read_text(encoding="utf-8")):
        if block.language == "python" and "likely." in block.text:
            assert re.search(r"^import likely$|^from likely import", block.text, re.M), f"README.md, line {block.line}"


def test_output_that_is_not_printed_so_is_noticed() -> None:
    shown = Block("text", 1, "a 1\n...\nc 3", run=True)
    check_output(shown, "title\na 1\nb 2\nc 3\n", "a page")
    with pytest.raises(AssertionError, match="'c 3' is not printed so"):
        check_output(shown, "a 1\nb 2\nc 4\n", "a page")


def test_blocks_are_found_with_their_language_and_marker() -> None:
    text = "a\n\n```python\nx = 1\n```\n<!-- not run -->\n```bash\nrm it\n```\n"
    text += "\n```console\n$ likely \\\n  learn\nout\n```\n"
    found = list(blocks(text))
    assert [(block.language, block.run) for block in found] == [("python", True), ("bash", False), ("console", True)]
    assert [command.split() for command in commands(found[2])] == [["likely", "learn"]]
