"""Decisions in the library, in the estimators and in the shell; sampling, estimating and checking as commands."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.commands import LOANS, NEW, TENNIS, document, rows, run

import likely
from likely.errors import UsageError

DAY = {"Outlook": ["Sunny"], "Temperature": ["Cool"], "Humidity": ["High"], "Wind": ["Strong"]}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    made = {name: str(folder / f"{name}.likely") for name in ("tennis", "fewer", "loans")}
    run("learn", TENNIS, "--target", "PlayTennis", "--smoothing", "1", "-o", made["tennis"])
    run("learn", TENNIS, "--target", "PlayTennis", "--smoothing", "1", "--ignore", "Temperature", "-o", made["fewer"])
    run("learn", LOANS, "--target", "outcome", "--plain", "--ignore", "application_id", "-o", made["loans"])
    return made


def test_costs_move_a_decision_that_the_textbook_makes() -> None:
    """P(No) = 0.795: a wrong No has to cost 3.9 times a wrong Yes to change the decision."""
    model = likely.learn(TENNIS, "PlayTennis", smoothing=0)
    posterior = model.posterior(DAY)
    no, yes = posterior.probabilities[0]
    assert model.predict(DAY, costs={"Yes": {"No": 0.99 * no / yes}}).tolist() == ["No"]
    assert model.predict(DAY, costs={"Yes": {"No": 1.01 * no / yes}}).tolist() == ["Yes"]
    assert posterior.expected_loss({"Yes": {"No": 3}})[0].tolist() == pytest.approx([3 * yes, no])
    assert posterior.decide(costs={"*": {"ask": 0.1}}).tolist() == ["ask"]
    assert model.predict(DAY, threshold=0.2).tolist() == ["Yes"]
    assert model.predict(DAY, threshold={"Yes": 0.3}).tolist() == ["No"]
    with pytest.raises(UsageError, match="not both"):
        model.predict(DAY, costs={}, threshold=0.3)


def test_evaluate_reports_mean_cost_and_curves_as_scikit_learn_has_them() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn IS NOT INSTALLED")
    model = likely.learn(LOANS, "outcome", plain=True, ignore=["application_id"])
    costs = {"default": {"repaid": 5}}
    found = likely.evaluate(LOANS, model=model, costs=costs)
    p = model.posterior(LOANS).probabilities
    truth = np.array([row["outcome"] for row in rows(Path(LOANS).read_text(encoding="utf-8"))])
    reported = np.where(5 * p[:, 0] > p[:, 1], "default", "repaid")
    by_hand = np.where(truth == reported, 0.0, np.where(truth == "default", 5.0, 1.0)).mean()
    assert found.mean_cost == pytest.approx(by_hand, abs=1e-12)
    curves = found.curves("default")
    assert curves.ranking.roc_area == pytest.approx(metrics.roc_auc_score(truth == "default", p[:, 0]), abs=1e-12)
    average = metrics.average_precision_score(truth == "default", p[:, 0])
    assert found.average_precision("default") == pytest.approx(average, abs=1e-12)
    threshold, least = curves.best_threshold
    assert least <= by_hand + 1e-12
    decided = likely.evaluate(LOANS, model=model, costs=costs, threshold={"default": threshold})
    assert decided.mean_cost == pytest.approx(least, abs=1e-12)
    assert "mean cost" in str(found)
    assert found.to_dict()["best_threshold"]["mean_cost"] == pytest.approx(least)
    assert curves.svg().count("<polyline") == 6


def test_a_reject_option_in_an_evaluation() -> None:
    model = likely.learn(LOANS, "outcome", plain=True, ignore=["application_id"])
    found = likely.evaluate(LOANS, model=model, costs={"*": {"ask": 0.1}}).decisions
    assert 0 < found.rejected < 1
    assert found.mean_cost < found.most_probable
    assert found.confusion.sum() == 600


def test_estimators_take_costs_and_work_inside_scikit_learn_s_thresholds() -> None:
    selection = pytest.importorskip("sklearn.model_selection", reason="scikit-learn IS NOT INSTALLED")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 1).astype(int)
    plain = likely.NaiveBayes(plain=True).fit(X, y)
    wary = likely.NaiveBayes(plain=True, costs={1: {0: 9}}).fit(X, y)
    assert wary.predict(X).dtype == y.dtype
    assert np.array_equal(wary.predict(X), (plain.predict_proba(X)[:, 1] > 0.1).astype(int))
    assert set(likely.NaiveBayes(plain=True, costs={"*": {"ask": 0.2}}).fit(X, y).predict(X)) == {0, 1, "ask"}
    fixed = selection.FixedThresholdClassifier(likely.NaiveBayes(plain=True), threshold=0.1).fit(X, y)
    assert np.array_equal(fixed.predict(X), (plain.predict_proba(X)[:, 1] >= 0.1).astype(int))
    tuned = selection.TunedThresholdClassifierCV(likely.NaiveBayes(plain=True), scoring="balanced_accuracy", cv=3).fit(X, y)
    assert 0 < tuned.best_threshold_ < 0.5
    texts = ["cheap pills", "cheap offer", "dear friend", "dear colleague"]
    words = likely.TextNaiveBayes("multinomial", costs={"ham": {"spam": 100}})
    assert words.fit(texts, ["spam", "spam", "ham", "ham"]).predict(["cheap pills"]).tolist() == ["ham"]


def test_predict_decides_by_cost_and_by_threshold(models, tmp_path) -> None:
    out = tmp_path / "p.csv"
    run("predict", models["loans"], NEW, "--cost", "default:repaid=5", "--cost", "*:ask=0.3", "-o", str(out))
    labels = [row["label"] for row in rows(out.read_text())]
    assert set(labels) == {"default", "repaid", "ask"}
    model = likely.load(models["loans"])
    costs = {"default": {"repaid": 5}, "*": {"ask": 0.3}}
    assert labels == model.predict(NEW, costs=costs).tolist()
    printed = document("predict", models["loans"], NEW, "--threshold", "default=0.01")
    assert [row["label"] for row in printed["predictions"]] == model.predict(NEW, threshold={"default": 0.01}).tolist()
    assert "did you mean" in run("predict", models["loans"], NEW, "--threshold", "defalt=0.1", expect=2).stderr
    assert "TRUE:DECISION=COST" in run("predict", models["loans"], NEW, "--cost", "default=5", expect=2).stderr


def test_evaluate_prints_mean_cost_and_draws_curves(models, tmp_path) -> None:
    picture = tmp_path / "curves.svg"
    printed = run("evaluate", models["loans"], LOANS, "--cost", "default:repaid=5", "--curves", str(picture)).stdout
    assert "mean cost" in printed
    assert "best threshold" in printed
    assert "average precision" in printed
    assert "ROC, area" in picture.read_text()
    found = document("evaluate", models["loans"], LOANS, "--threshold", "default=0.1")
    assert found["decisions"]["by"] == "threshold"
    assert run("evaluate", models["loans"], LOANS, "--curves", str(tmp_path / "c.gif"), expect=2)


def test_models_are_compared_by_their_marginal_likelihoods(models) -> None:
    found = document("compare-models", models["tennis"], models["fewer"])
    wanted = likely.compare_models(likely.load(models["tennis"]), likely.load(models["fewer"]), names=["all", "fewer"])
    assert [row["log_marginal_likelihood"] for row in found["models"]] == sorted(wanted.log_marginal, reverse=True)
    assert found["best"] == models["fewer"]
    assert "barely any" in run("compare-models", models["tennis"], models["fewer"]).stdout
    assert "two or more" in run("compare-models", models["tennis"], expect=2).stderr


def test_bic_of_a_column_left_out_is_that_of_one_distribution_for_all_classes(models) -> None:
    """All models describe the same table: a column that one leaves out enters with one distribution for all classes."""
    whole, fewer = (likely.load(models[name]) for name in ("tennis", "fewer"))
    found = likely.compare_models(whole, fewer, names=["whole", "fewer"]).bic
    seen = np.array([4.0, 4.0, 6.0])  # Cool, Hot, Mild
    alone = -2 * (seen * np.log((seen + 1) / 17)).sum() + 2 * np.log(14)
    from likely.model.evidence import bic

    assert found[0] == pytest.approx(bic(whole))
    assert found[1] == pytest.approx(bic(fewer) + alone)


def test_rows_are_drawn_in_the_shell(models, tmp_path) -> None:
    out = tmp_path / "rows.csv"
    run("sample", models["tennis"], "-n", "50", "--class", "No", "--seed", "4", "-o", str(out))
    drawn = rows(out.read_text())
    assert len(drawn) == 50
    assert {row["PlayTennis"] for row in drawn} == {"No"}
    assert [row["Outlook"] for row in drawn] == likely.load(models["tennis"]).sample(50, 4, label="No")["Outlook"]
    assert len(document("sample", models["tennis"], "-n", "3")["columns"]["Wind"]) == 3


def test_a_distribution_is_estimated_in_the_shell(tmp_path) -> None:
    found = document("estimate", TENNIS, "--column", "Outlook", "--prior", "1")
    assert found["ml"]["Sunny"] == pytest.approx(5 / 14)
    assert found["posterior"]["parameters"][2]["mean"] == pytest.approx(6 / 17)
    assert found["predictive"]["probabilities"]["Sunny"] == pytest.approx(6 / 17)
    dirichlet = document("estimate", TENNIS, "--column", "Outlook", "--prior", "Sunny=2", "--prior", "Snow=3")
    assert dirichlet["map"]["Snow"] == pytest.approx(2 / 17)
    income = ["estimate", LOANS, "--column", "income", "--family", "gaussian"]
    normal = document(*income, "--level", "0.9", "--between", "2000", "3000")
    assert normal["missing"] == 48
    assert normal["posterior"]["level"] == 0.9
    assert 0 < normal["between"]["probability"] < 1
    assert normal["predictive"]["distribution"] == "Student"
    assert "posterior mean" in run(*income, "--prior", "mean=0", "--prior", "strength=1").stdout
    assert "did you mean" in run("estimate", LOANS, "--column", "incom", expect=3).stderr
    assert "mean, strength" in run(*income, "--prior", "men=0", expect=2).stderr


def test_a_model_is_checked_in_the_shell(models, tmp_path) -> None:
    picture = tmp_path / "check.svg"
    printed = run("check", models["loans"], LOANS, "--replicates", "60", "-o", str(picture)).stdout
    assert "600 rows against 60 tables" in printed
    assert picture.read_text().startswith("<svg")
    found = document("check", models["tennis"], TENNIS, "--replicates", "40")
    assert (found["columns_missed"], found["rows"]) == ([], 14)
    assert json.dumps(found["statistics"])
