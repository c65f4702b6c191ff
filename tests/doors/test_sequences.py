"""Sequences through the doors: scikit-learn's checks and the command line."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import commands
import likely
from likely import HiddenMarkov
from likely.cli import main
from likely.errors import UsageError


# The checks whether rows can be taken alone and in any order set n_components=1: one state depends on nothing.
# The families differ in what is counted, not in the number of starts: one start checks the same.
@parametrize_with_checks([HiddenMarkov(), *(HiddenMarkov(families=family, n_init=1) for family in ("joint", "categorical"))])
def test_it_passes_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def days(seed: int = 0) -> dict[str, list]:
    """Three people, some days restless and some quiet, with gaps."""
    rng = np.random.default_rng(seed)
    table: dict[str, list] = {"who": [], "steps": [], "mood": []}
    for who in ("ann", "bob", "cat"):
        z = 0
        for _ in range(60):
            z = 1 - z if rng.random() < 0.1 else z
            table["who"].append(who)
            table["steps"].append(None if rng.random() < 0.05 else round(rng.normal(4000 + 5000 * z, 800)))
            table["mood"].append(str(rng.choice(["good", "fair", "low"], p=[0.7, 0.2, 0.1] if z else [0.2, 0.3, 0.5])))
    return table


def test_frames_of_both_libraries_and_the_function_give_the_same_model() -> None:
    table = days()
    lengths = [60, 60, 60]
    rows = {name: table[name] for name in ("steps", "mood")}
    a = HiddenMarkov(2).fit(pd.DataFrame(rows), lengths=lengths)
    b = HiddenMarkov(2).fit(pl.DataFrame(rows), lengths=lengths)
    chain = likely.sequences(table, 2, by="who")
    np.testing.assert_allclose(a.transition_, b.transition_, rtol=1e-9)
    np.testing.assert_allclose(a.transition_, chain.transition, rtol=1e-9)
    np.testing.assert_array_equal(a.predict(pd.DataFrame(rows), lengths), chain.decode(chain.opened(table, by="who")))
    assert set(a.emission_) == {"steps", "mood"}
    assert a.score(pd.DataFrame(rows), lengths=lengths) == pytest.approx(chain.log_likelihood)
    assert a.bic(pd.DataFrame(rows), lengths) == pytest.approx(chain.bic)
    assert a.aic(pd.DataFrame(rows), lengths) < a.bic(pd.DataFrame(rows), lengths)


def test_the_state_of_a_row_depends_on_the_rows_around_it() -> None:
    X = np.repeat([0.0, 3.0, 0.0, 3.0], 20)[:, None] + np.random.default_rng(1).normal(size=(80, 1))
    made = HiddenMarkov(2).fit(X)
    alone = np.concatenate([made.predict_proba(X[i : i + 1]) for i in range(len(X))])
    assert np.abs(alone - made.predict_proba(X)).max() > 0.1


def test_an_unfitted_estimator_raises_a_clear_error_and_a_stopped_one_warns() -> None:
    X = np.arange(20.0)[:, None]
    with pytest.raises(NotFittedError):
        HiddenMarkov().predict(X)
    with pytest.warns(ConvergenceWarning, match="EM did not converge in 2 iterations"):
        HiddenMarkov(max_iter=2, tol=-np.inf).fit(X)
    assert clone(HiddenMarkov(n_components=3, start={"start": [1, 0, 0]})).start == {"start": [1, 0, 0]}


def test_moves_that_are_barred_stay_barred_without_imagined_ones() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1, 40) for m in (0, 4, 8)] * 2)[:, None]
    onward = {"start": [1, 0, 0], "transition": [[0.9, 0.1, 0], [0, 0.9, 0.1], [0, 0, 1]]}
    found = HiddenMarkov(3, transition_smoothing=0, start=onward, n_init=3).fit(X, lengths=[120, 120])
    assert (np.tril(found.transition_, -1) == 0).all()
    assert found.start_.tolist() == [1, 0, 0]
    assert (np.diff(found.predict(X[:120])) >= 0).all()


# ---------------------------------------------------------------- command line


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(days()).to_csv("days.csv", index=False)


def run(*args: str, expect: int = 0) -> Result:
    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == expect, (args, result.exit_code, result.stdout, result.stderr)
    return result


def test_every_row_is_written_with_its_state() -> None:
    shown = run("sequences", "days.csv", "-k", "2", "--by", "who", "-o", "out.csv").stdout
    assert "2 states in 180 rows of days.csv, 3 sequences" in shown
    assert "to 2" in shown
    assert "penalised log likelihood" in shown
    table = pyarrow.csv.read_csv("out.csv")
    assert table.column_names == ["who", "steps", "mood", "state", "p_1", "p_2"]
    chain = likely.sequences("days.csv", 2, by="who")
    states = chain.decode(chain.opened("days.csv", by="who"))
    assert table["state"].to_pylist() == [chain.states[s] for s in states]
    np.testing.assert_allclose(np.add(table["p_1"].to_numpy(), table["p_2"].to_numpy()), 1.0)
    run("sequences", "days.csv", "--by", "who", "-o", "out.parquet")
    assert pq.read_table("out.parquet")["state"].to_pylist() == table["state"].to_pylist()


def test_penalised_is_printed_only_where_there_is_a_penalty() -> None:
    asked = ("sequences", "days.csv", "-k", "2", "--by", "who", "--ignore", "steps", "--smoothing", "0")
    bare = run(*asked).stdout
    assert "log likelihood" in bare
    assert "penalised" not in bare
    assert "penalised log likelihood" in run(*asked, "--transition-smoothing", "1").stdout


def test_the_json_document_holds_trace_and_tables() -> None:
    report = json.loads(run("sequences", "days.csv", "-k", "3", "--by", "who", "--json").stdout)
    assert report["sequences"] == 3
    assert len(report["trace"]) == report["rounds"]
    assert all(b >= a - 1e-9 * abs(a) for a, b in zip(report["trace"], report["trace"][1:], strict=False))
    for line in report["transition"]:
        assert sum(p for name, p in line.items() if name != "state") == pytest.approx(1.0)
    assert set(report["states"]) == {"steps", "mood"}
    assert sum(report["decoded"].values()) == 180


def test_standard_output_carries_the_rows_alone() -> None:
    result = run("sequences", "days.csv", "--ignore", "who", "-o", "-")
    assert result.stdout.startswith("who,steps,mood,state,p_1,p_2")
    assert "one sequence" in result.stderr


def test_wrong_settings_give_clear_errors() -> None:
    assert "has no column 'whom'" in run("sequences", "days.csv", "--by", "whom", expect=3).stderr
    run("sequences", "days.csv", "--by", "who", "-o", "out.csv")
    assert "--prefix" in run("sequences", "out.csv", "--by", "who", "-o", "again.csv", expect=2).stderr
    assert not Path("again.csv").exists()
    assert "name a file" in run("sequences", "days.csv", "-o", "-", "--json", expect=2).stderr
    assert "unknown extension" in run("sequences", "days.csv", "-o", "out.txt", expect=2).stderr


def _three_states(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    hidden = np.repeat(rng.permutation(np.arange(18) % 3), 25)
    return {"x": rng.normal(6.0 * hidden, 1.0), "y": rng.normal(-5.0 * hidden, 1.0)}


def test_the_number_of_states_with_the_lowest_bic_is_kept() -> None:
    table = _three_states()
    chain = likely.sequences(table, "auto")
    assert chain.states == (1, 2, 3)
    assert min(chain.tried, key=chain.tried.__getitem__) == 3
    assert list(chain.tried) == [1, 2, 3, 4, 5, 6]
    assert likely.sequences(table, 2).bic == chain.tried[2]
    alone = likely.sequences(table, 3)
    assert alone.bic == chain.bic == chain.tried[3]
    assert alone.trace == chain.trace
    made = HiddenMarkov(n_components="auto").fit(np.column_stack(list(table.values())))
    assert made.transition_.shape == (3, 3)
    assert made.tried_ == pytest.approx(chain.tried)
    few = HiddenMarkov(n_components="auto").fit([[1.0], [1.0], [5.0]])
    assert set(few.tried_) <= {1, 2, 3}


def test_states_that_are_known_or_given_are_not_counted_out() -> None:
    x = np.column_stack(list(_three_states().values()))
    with pytest.raises(UsageError, match="leave out start= and states="):
        HiddenMarkov(n_components="auto").fit(x, states=[0] + [None] * (len(x) - 1))
    with pytest.raises(UsageError, match="leave out start= and states="):
        likely.sequences(_three_states(), "auto", start={"start": [0.5, 0.5]})
    for wrong in ("many", 0, 1.5, True):
        with pytest.raises(UsageError, match="is no number of"):
            likely.sequences(_three_states(), wrong)


def test_the_shell_tries_numbers_of_states(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    columns = _three_states()
    path.write_text("x,y\n" + "\n".join(f"{a:.6f},{b:.6f}" for a, b in zip(*columns.values(), strict=True)) + "\n")
    told = commands.document("sequences", str(path), "-k", "auto")
    assert set(told["tried"]) == {"1", "2", "3", "4", "5", "6"}
    assert told["bic"] == told["tried"]["3"]
    reported = commands.run("sequences", str(path), "-k", "auto").stdout
    assert re.search(r"^states +BIC$", reported, re.MULTILINE)
    assert "3 states in 450 rows" in reported
    assert "tried" not in commands.document("sequences", str(path), "-k", "3")
    for wrong in ("many", "0", "-1", "1.5"):
        commands.run("sequences", str(path), "-k", wrong, expect=2)


def test_first_means_set_the_initial_states_and_their_order() -> None:
    table = _three_states()
    wanted = [[12.0, -10.0], [0.0, 0.0], [6.0, -5.0]]
    chain = likely.sequences(table, 3, start={"means": wanted})
    means = np.column_stack([[line["mean"] for line in chain.tables[name]] for name in ("x", "y")])
    np.testing.assert_allclose(means, wanted, atol=0.5)
    made = HiddenMarkov(3, start={"means": wanted}).fit(np.column_stack(list(table.values())))
    np.testing.assert_allclose(made.means_, means)
    assert chain.trace[-1] == pytest.approx(likely.sequences(table, 3).trace[-1], abs=0.01)
    with pytest.raises(UsageError, match="start= takes 3 means of 2 columns of numbers"):
        likely.sequences(table, 3, start={"means": wanted[:2]})
    with pytest.raises(UsageError, match="pass one of them"):
        likely.sequences(table, 3, start={"means": wanted, "emission": chain.emission})
    with pytest.raises(UsageError, match="'mean', which is none of"):
        likely.sequences(table, 3, start={"mean": wanted})


def test_the_shell_takes_first_means_rounds_and_tolerance() -> None:
    asked = ("sequences", "days.csv", "--by", "who", "--ignore", "mood")
    report = json.loads(run(*asked, "--start", "9000", "--start", "4000", "--json").stdout)
    first, second = (line["mean"] for line in report["states"]["steps"])
    assert first > second
    other = json.loads(run(*asked, "--start", "4000", "--start", "9000", "-k", "2", "--json").stdout)
    assert [line["mean"] for line in other["states"]["steps"]] == pytest.approx([second, first], rel=1e-3)
    short = json.loads(
        run(*asked, "--start", "9000", "--start", "4000", "--max-iter", "3", "--tol", "-1", "--json").stdout
    )
    assert short["rounds"] == 3
    assert short["trace"][:3] == pytest.approx(report["trace"][:3])
    three = run(*asked, "--start", "9000", "--start", "6000", "--start", "4000").stdout
    assert "3 states in 180 rows" in three
    assert "give one for each state" in run(*asked, "-k", "3", "--start", "1", "--start", "2", expect=2).stderr
    assert "is not a number" in run(*asked, "--start", "many", expect=2).stderr
    assert (
        "start= takes 2 means of 2 columns"
        in run("sequences", "days.csv", "--by", "who", "--start", "1", "--start", "2", expect=2).stderr
    )
