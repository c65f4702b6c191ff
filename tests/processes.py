"""Commands in a process of their own, as a shell runs them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import likely

SOURCE = Path(likely.__file__).parents[1]
DATA = SOURCE / "likely" / "data"
TENNIS = str(DATA / "tennis.csv")
COMMAND = [sys.executable, "-m", "likely"]
ANSI = "\x1b[31mred\x1b[0m"


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(SOURCE)} | more


def run(*args: str, expect: int = 0, stdin: bytes = b"", env: dict[str, str] | None = None) -> Any:
    """One command in a process of its own; text comes back as UTF-8."""
    done = subprocess.run(
        [*COMMAND, *args], input=stdin, capture_output=True, env=env or environment(), timeout=120, check=False
    )
    done.stdout, done.stderr = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    assert "Traceback" not in done.stderr
    assert done.returncode == expect, (args, done.returncode, done.stdout, done.stderr)
    return done


def refused(*args: str, code: int, **options: Any) -> str:
    """The one line of a refusal."""
    done = run(*args, expect=code, **options)
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    return str(lines[0])


def write(name: str, text: str) -> str:
    Path(name).write_text(text, encoding="utf-8", newline="")
    return name
