"""What the tests of the command line share: a folder of their own, and models in it."""

from pathlib import Path

import pytest

import likely
from commands import LOANS, TENNIS, run


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tennis(own_folder: None) -> str:
    run("learn", TENNIS, "--target", "PlayTennis", "--plain", "-o", "tennis.likely")
    return "tennis.likely"


@pytest.fixture
def loans(own_folder: None) -> str:
    run("learn", LOANS, "--target", "outcome", "-o", "loans.likely")
    return "loans.likely"


@pytest.fixture
def model(own_folder: None) -> str:
    likely.learn(TENNIS, target="PlayTennis").save("m.likely")
    return "m.likely"
