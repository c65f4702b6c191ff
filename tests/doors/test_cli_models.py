"""Models on the command line: updated, forgotten and merged, looked into; examples and completion."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import likely
from commands import DATA, LOANS, NEW, TENNIS, document, run
from likely.cli import main

pytestmark = pytest.mark.usefixtures("own_folder")


# ---------------------------------------------------------------- update, forget, merge


def parts() -> tuple[str, str]:
    head, *lines = Path(TENNIS).read_text(encoding="utf-8").splitlines()
    for name, some in (("one.csv", lines[:8]), ("two.csv", lines[8:])):
        Path(name).write_text("\n".join([head, *some]) + "\n", encoding="utf-8")
    return "one.csv", "two.csv"


def test_update_in_place_equals_learning_everything_at_once(tennis: str) -> None:
    one, two = parts()
    run("learn", one, "--target", "PlayTennis", "--plain", "-o", "m.likely")
    reported = run("update", "m.likely", two).stdout
    assert "Counted 6 rows" in reported
    assert likely.load("m.likely").parameters == likely.load(tennis).parameters


def test_forget_undoes_update_and_can_write_elsewhere(tennis: str) -> None:
    one, two = parts()
    run("learn", one, "--target", "PlayTennis", "--plain", "-o", "m.likely")
    before = Path(tennis).read_bytes()
    found = document("forget", tennis, two, "-o", "less.likely")
    assert (found["rows_before"], found["rows_after"]) == (14, 8)
    assert Path(tennis).read_bytes() == before
    assert likely.load("less.likely").parameters == likely.load("m.likely").parameters


def test_update_welcomes_a_new_class(tennis: str) -> None:
    Path("x.csv").write_text("Outlook,Temperature,Humidity,Wind,PlayTennis\nHail,Cold,High,Strong,Never\n", "utf-8")
    found = document("update", tennis, "x.csv")
    assert found["new_classes"] == ["Never"]
    assert likely.load(tennis).tally.rows == 15


def test_what_was_never_counted_cannot_be_forgotten(tennis: str) -> None:
    Path("x.csv").write_text("Outlook,Temperature,Humidity,Wind,PlayTennis\nHail,Cold,High,Strong,Never\n", "utf-8")
    before = Path(tennis).read_bytes()
    run("forget", tennis, "x.csv", expect=3)
    assert Path(tennis).read_bytes() == before


def test_merge_adds_up_to_the_whole(tennis: str) -> None:
    for name in parts():
        run("learn", name, "--target", "PlayTennis", "--plain")
    reported = run("merge", "one.likely", "two.likely", "-o", "all.likely").stdout
    assert "14 rows" in reported
    assert likely.load("all.likely").parameters == likely.load(tennis).parameters
    assert "two models" in run("merge", "one.likely", "-o", "all.likely", expect=2).stderr


def test_merge_warns_when_the_priors_differ() -> None:
    one, two = parts()
    run("learn", one, "--target", "PlayTennis", "--smoothing", "1/2")
    run("learn", two, "--target", "PlayTennis", "--plain")
    assert "note: the priors differ" in run("merge", "one.likely", "two.likely", "-o", "all.likely").stderr


# ---------------------------------------------------------------- inspect, examples, completion


def test_inspect_shows_what_a_model_holds(tennis: str) -> None:
    reported = run("inspect", tennis).stdout
    for part in ("14 rows counted", "categorical", "table entries    22", "13 (71 without conditional", "sha256"):
        assert part in reported
    found = document("inspect", tennis, "--column", "Outlook")
    assert found["bytes"] == Path(tennis).stat().st_size
    assert found["parameters"] == {"table_entries": 22, "free": 13, "free_without_independence": 71}
    assert {row["value"] for row in found["tables"]["Outlook"]} == {"Sunny", "Overcast", "Rain"}
    assert document("inspect", tennis, "--tables")["tables"].keys() == likely.load(tennis).parameters.keys()


def test_inspect_prints_the_parameters_of_a_column(tennis: str) -> None:
    reported = run("inspect", tennis, "--column", "Wind").stdout
    assert "Strong" in reported
    assert "Outlook" not in reported
    assert "no parameters of 'Sky'" in run("inspect", tennis, "--column", "Sky", expect=2).stderr


def test_inspect_shows_what_likely_sees_in_a_table() -> None:
    found = {column["column"]: column for column in document("inspect", LOANS)["columns"]}
    assert found["income"]["kind"] == "number"
    assert found["income"]["missing"] == 48
    assert not found["application_id"]["used"]
    assert "an ID or a name" in run("inspect", LOANS).stdout
    assert "no column" in run("inspect", LOANS, "--target", "nope", expect=2).stderr


def test_a_model_is_known_by_its_first_bytes_not_by_its_name(tennis: str) -> None:
    Path(tennis).rename("odd.name")
    assert "14 rows counted" in run("inspect", "odd.name").stdout
    assert "14 rows counted" in run("inspect", "-", stdin=Path("odd.name").read_bytes()).stdout


def test_examples_are_listed_and_run() -> None:
    assert "wrappers" in run("examples").stdout
    assert "18/875" in run("examples", "tennis").stdout
    assert document("examples")["examples"].keys() >= {"tennis", "spam"}
    assert document("examples", "tennis")["joint No"] == "18/875"
    assert "choose one of" in run("examples", "golf", expect=2).stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    assert "_LIKELY_COMPLETE" in run("completion", shell).stdout


def test_completion_offers_the_commands() -> None:
    environment = {"_LIKELY_COMPLETE": "bash_complete", "COMP_WORDS": "likely ex", "COMP_CWORD": "1"}
    result = CliRunner().invoke(main, [], prog_name="likely", env=environment)
    assert result.stdout.split() == ["plain,explain", "plain,export", "plain,examples"]


def test_version_and_help() -> None:
    assert run("--version").stdout == f"likely {likely.__version__}\n"
    listed = run("--help").stdout
    assert [name for name in main.commands if name not in listed] == []
    for name, command in main.commands.items():
        for inner in getattr(command, "commands", [None]):
            assert "--json" in run(*filter(None, (name, inner)), "--help").stdout


def test_every_command_of_the_public_page_is_there() -> None:
    wanted = {"learn", "predict", "explain", "evaluate", "update", "forget", "merge", "inspect", "examples"}
    assert wanted <= main.commands.keys()


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['likely', '--help']\n"
        "from likely.cli import main\n"
        "main(standalone_mode=False)\n"
        "heavy = ('numpy', 'pyarrow', 'duckdb', 'numba', 'rich', 'narwhals')\n"
        "print(*[name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    env = os.environ | {"PYTHONPATH": str(DATA.parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stderr.strip() == ""


def test_a_calibrated_model_shows_its_weights_and_reports_when_it_is_stale() -> None:
    head, *lines = Path(LOANS).read_text(encoding="utf-8").splitlines()
    one, two = "one.csv", "two.csv"
    for name, some in ((one, lines[:500]), (two, lines[500:])):
        Path(name).write_text("\n".join([head, *some]) + "\n", encoding="utf-8")
    run("learn", one, "--target", "outcome", "--dependence", "pairs", "-o", "m.likely")
    shown = document("inspect", "m.likely")
    assert set(shown["calibration"]["weights"]) == {c["column"] for c in shown["columns"]}
    assert shown["calibration"]["dependence"] == "pairs"
    assert all(entry["weight"] >= 0 and "log_loss_rise" in entry for entry in shown["importance"])
    assert "--recalibrate" in run("update", "m.likely", two, "-o", "stale.likely").stdout
    assert document("inspect", "stale.likely")["calibration"]["stale"]
    assert not document("update", "m.likely", two, "--recalibrate", "-o", "fresh.likely")["stale"]
    run("learn", LOANS, "--target", "outcome", "--dependence", "pairs", "-o", "whole.likely")
    fresh, whole = likely.load("fresh.likely"), likely.load("whole.likely")
    assert fresh.tally == whole.tally
    assert fresh.calibration.weights == pytest.approx(whole.calibration.weights, rel=1e-6)


@pytest.mark.parametrize("dependence", ["none", "tree", "one-dependence"])
def test_every_dependence_is_learned_and_explained(dependence) -> None:
    run("learn", LOANS, "--target", "outcome", "--dependence", dependence, "-o", "m.likely")
    interactions = document("inspect", "m.likely")["calibration"]["interactions"]
    assert bool(interactions) == (dependence != "none")
    found = document("explain", "m.likely", NEW, "--row", "1")
    lines = [found["log_prior"], *(entry["log_likelihood"] for entry in found["evidence"])]
    assert [sum(column) for column in zip(*lines, strict=True)] == pytest.approx(found["log_joint"])
