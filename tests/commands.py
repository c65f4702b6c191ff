"""Commands as a test calls them, in this process: what they print, and what they print as JSON."""

import csv
import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import likely
from likely.cli import main

DATA = Path(likely.__file__).parent / "data"
TENNIS, LOANS, NEW = str(DATA / "tennis.csv"), str(DATA / "loans.csv"), str(DATA / "loans_new.csv")
DAY = ["--set", "Outlook=Sunny", "--set", "Temperature=Cool", "--set", "Humidity=High", "--set", "Wind=Strong"]


def run(*args: str, stdin: bytes | str | None = None, expect: int = 0) -> Result:
    """One command, in this process."""
    result = CliRunner().invoke(main, list(args), input=stdin)
    assert result.exit_code == expect, (args, result.exit_code, result.stdout, result.stderr)
    return result


def refused(*args: str, code: int, **options: Any) -> str:
    """The one line of a refusal."""
    result = run(*args, expect=code, **options)
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    return lines[0]


def document(*args: str, **options: Any) -> dict[str, Any]:
    """What a command prints with --json: strict JSON, without NaN."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    found: dict[str, Any] = json.loads(run(*args, "--json", **options).stdout, parse_constant=refuse)
    return found


def rows(text: str) -> list[dict[str, str]]:
    """CSV as a list of rows."""
    return list(csv.DictReader(text.splitlines()))
