"""Averaging, selection and importance through the command line: what is asked for is in the file and in the report."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import likely
from likely.cli import main

LOANS = str(Path(likely.__file__).parent / "data" / "loans.csv")


def run(*args, expect=0):
    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == expect, (args, result.exit_code, result.stdout, result.stderr)
    return result


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_learning_with_average_writes_a_model_that_averages():
    reported = json.loads(
        run("learn", LOANS, "--target", "outcome", "--average", "--folds", "3", "-o", "m.likely", "--json").stdout
    )
    model = likely.load("m.likely")
    assert model == likely.learn(LOANS, "outcome", average=True)
    expected = likely.evaluate(LOANS, target="outcome", average=True, folds=3).log_loss
    assert reported["evaluation"]["log_loss"] == pytest.approx(expected)


def test_inspect_shows_what_each_column_tells():
    run("learn", LOANS, "--target", "outcome", "--average", "-o", "m.likely")
    reported = json.loads(run("inspect", "m.likely", "--json").stdout)
    model = likely.load("m.likely")
    assert reported["average"] is True
    found = {entry["column"]: entry for entry in reported["importance"]}
    assert {name: entry["arc_probability"] for name, entry in found.items()} == model.arc_probability
    informations = [entry["mutual_information"] for entry in reported["importance"]]
    assert informations == sorted(informations, reverse=True)
    printed = run("inspect", "m.likely").stdout
    assert "arc probability" in printed
    assert "averaged" in printed


def test_explain_shows_how_much_a_column_matters_and_still_adds_up():
    run("learn", LOANS, "--target", "outcome", "--average", "-o", "m.likely")
    reported = json.loads(run("explain", "m.likely", LOANS, "--row", "3", "--json").stdout)
    assert all(0 <= entry["arc_probability"] <= 1 for entry in reported["evidence"])
    for c, total in enumerate(reported["log_joint"]):
        parts = [reported["log_prior"][c], *(entry["log_likelihood"][c] for entry in reported["evidence"])]
        assert sum(parts) == pytest.approx(total, abs=1e-12)
    assert "matters" in run("explain", "m.likely", LOANS, "--row", "3").stdout


def test_learning_with_select_leaves_columns_out_and_reports_them():
    reported = json.loads(
        run("learn", LOANS, "--target", "outcome", "--select", "--folds", "3", "-o", "m.likely", "--json").stdout
    )
    model = likely.learn(LOANS, "outcome", select=True)
    assert likely.load("m.likely") == model
    reasons = {entry["column"]: entry["reason"] for entry in reported["left_out"]}
    assert any("not selected" in reason for reason in reasons.values())
    expected = likely.evaluate(LOANS, target="outcome", select=True, folds=3).log_loss
    assert reported["evaluation"]["log_loss"] == pytest.approx(expected)


def test_smoothing_of_nothing_cannot_be_averaged_over():
    reported = run("learn", LOANS, "--target", "outcome", "--average", "--smoothing", "0", expect=2)
    assert "smoothing above 0" in reported.stderr
    assert list(Path().iterdir()) == []


def test_the_estimator_averages_too():
    import pandas as pd

    frame = pd.read_csv(LOANS).drop(columns="application_id")
    X, y = frame.drop(columns="outcome"), frame["outcome"]
    estimator = likely.NaiveBayes(average=True).fit(X, y)
    assert estimator.model_.average
    grown = likely.NaiveBayes(average=True).partial_fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    assert grown.predict_proba(X) == pytest.approx(estimator.predict_proba(X), abs=1e-9)
