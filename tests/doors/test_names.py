"""The same words in function, estimator and command line: "*", n_components, n_init, n_jobs, top_words, extras."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import likely
from commands import LOANS, TENNIS, run
from likely import HiddenMarkov, Mixture, NaiveBayes, NetworkClassifier, TextNaiveBayes
from likely.engines import inspection
from likely.errors import EXTRAS, MissingDependencyError, SchemaError, UsageError, import_optional
from likely.kernels import thread_count

X = np.random.default_rng(0).normal(size=(60, 3)) + np.repeat([[0.0], [4.0]], 30, axis=0)
Y = np.repeat([0, 1], 30)


def families(model: likely.Model) -> dict[tuple[str, ...], str]:
    return {block.columns: block.family.name for block in model.blocks}


# ---------------------------------------------------------------- "*" in families=


def test_a_star_is_the_family_of_every_column_not_named() -> None:
    data = {"a": [1.0, 2.0] * 6, "b": [3.0, 5.0, 4.0] * 4, "c": ["u", "v"] * 6, "y": ["p", "q", "q"] * 4}
    model = likely.learn(data, "y", families={"*": "gaussian", "c": "categorical"})
    assert families(model) == {("a",): "gaussian", ("b",): "gaussian", ("c",): "categorical"}
    alone = {name: data[name] for name in ("a", "b", "y")}
    assert likely.learn(alone, "y", families={"*": "gaussian"}) == likely.learn(alone, "y", families="gaussian")
    assert likely.learn(data, "y", families={"*": "auto"}) == likely.learn(data, "y")


def test_a_star_may_stand_for_one_block_and_leaves_named_blocks_alone() -> None:
    data = {name: np.arange(12.0) % n for name, n in {"a": 2, "b": 3, "c": 4, "d": 5}.items()} | {"y": ["p", "q", "q"] * 4}
    model = likely.learn(data, "y", families={"*": "joint", "d": "poisson"})
    assert families(model) == {("a", "b", "c"): "joint", ("d",): "poisson"}
    model = likely.learn(data, "y", families={"*": "gaussian:class"}, joint=[("a", "d")])
    assert families(model) == {("a", "d"): "joint", ("b",): "gaussian", ("c",): "gaussian"}
    trials = likely.learn(
        {"k": [1, 2, 0, 3], "n": [4] * 4, "z": [0.5, 0.1, 0.2, 2.0], "y": list("pqpq")}, "y",
        families={"k": likely.Binomial("n"), "*": "gaussian"},
    )  # fmt: skip
    assert families(trials) == {("k", "n"): "binomial", ("z",): "gaussian"}


def test_every_column_of_text_is_a_block_of_its_own() -> None:
    data = {"a": ["u v", "w x"] * 4, "b": ["s t", "q r"] * 4, "y": ["p", "q"] * 4}
    for given in ("text", {"*": "text"}):
        assert families(likely.learn(data, "y", families=given)) == {("a",): "text", ("b",): "text"}
    with pytest.raises(UsageError, match="text takes one column"):
        likely.learn(data, "y", families={("a", "b"): "text"})


def test_a_star_with_a_misspelt_column_beside_it_is_refused() -> None:
    with pytest.raises(SchemaError, match="'agee'"):
        likely.learn({"age": [1.0, 2.0], "y": ["p", "q"]}, "y", families={"*": "gaussian", "agee": "poisson"})


def test_a_star_works_in_relearn_clusters_sequences_and_evaluate() -> None:
    table = {f"x{j}": X[:, j] for j in range(3)}
    plain = likely.learn(table | {"y": Y}, "y", families="gaussian")
    assert plain.relearn(families={"*": "gaussian:class"}) == plain.relearn(families="gaussian:class")
    mixed = plain.relearn(families={"*": "gaussian:class", "x1": likely.Gaussian()})
    assert [block.family.tie for block in mixed.blocks] == ["class", None, "class"]
    for find in (likely.cluster, likely.sequences):
        made = find(table, 2, families={"*": "gaussian:class"}, n_init=1)
        same = find(table, 2, families="gaussian:class", n_init=1)
        assert made.log_likelihood == same.log_likelihood
    found = [likely.evaluate(table, Y, families=given).log_loss for given in ("gaussian", {"*": "gaussian"})]
    assert found[0] == found[1]


def test_a_star_works_in_estimators_beside_names_and_positions() -> None:
    made = NaiveBayes(families={"*": "gaussian", 1: "binned"}).fit(X, Y)
    assert families(made.model_) == {("x0",): "gaussian", ("x1",): "binned", ("x2",): "gaussian"}
    assert Mixture(families={"*": "joint"}).fit(X).covariances_.shape == (2, 3, 3)
    assert HiddenMarkov(families={"*": "joint"}, n_init=1).fit(X).covariances_.shape == (2, 3, 3)
    assert Mixture(families={"*": "joint"}).fit(X[:, :1]).covariances_.shape == (2, 1, 1)
    assert Mixture(families="gaussian").fit(X[:, :1]).covariances_.shape == (2, 1)


def test_a_star_works_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("learn", TENNIS, "--target", "PlayTennis", "--family", "*=categorical", "-o", "m.likely")
    assert likely.load("m.likely") == likely.learn(TENNIS, "PlayTennis", families="categorical")
    run("learn", LOANS, "--target", "outcome", "--family", "*=categorical", "--family", "income=gaussian", "-o", "n.likely")
    found = families(likely.load("n.likely"))
    assert found.pop(("income",)) == "gaussian"
    assert set(found.values()) == {"categorical"}


# ---------------------------------------------------------------- scikit-learn's names


@pytest.mark.parametrize("kind", [Mixture, HiddenMarkov])
def test_estimators_of_components_have_the_names_of_scikit_learn(kind: type) -> None:
    made = kind(n_components=2, n_init=2, random_state=1, max_iter=50, tol=0.01, n_jobs=1)
    assert {"n_components", "n_init", "random_state", "max_iter", "tol", "n_jobs"} <= set(made.get_params())
    assert not {"k", "restarts", "renamed"} & set(made.get_params())
    assert clone(made).fit(X).means_.shape == (2, 3)


@pytest.mark.parametrize("kind", [Mixture, HiddenMarkov])
def test_former_names_still_work_with_a_warning(kind: type) -> None:
    with pytest.warns(FutureWarning, match="is now called") as reported:
        made = kind(k=3, restarts=2)
    assert (made.n_components, made.n_init) == (3, 2)
    assert {str(each.message) for each in reported} == {"k= is now called n_components=", "restarts= is now called n_init="}
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_component'"):
        kind(n_component=3)


def test_the_signature_of_the_api_page_holds() -> None:
    fixed = {"variance": 1.0, "weights": "equal"}
    made = Mixture(n_components=2, families="auto", fixed=fixed, max_iter=200, tol=1e-4, n_init=5, random_state=0).fit(X)
    assert made.weights_.tolist() == [0.5, 0.5]
    assert made.responsibilities(X).sum(1) == pytest.approx(1.0)
    assert sorted(made.means_[:, 0]) == pytest.approx([X[:30, 0].mean(), X[30:, 0].mean()], abs=0.1)


def test_functions_take_n_init_and_its_former_name() -> None:
    table = {"x": X[:, 0]}
    for find in (likely.cluster, likely.sequences):
        with pytest.warns(FutureWarning, match="n_init"):
            former = find(table, 2, restarts=1)
        assert former.trace == find(table, 2, n_init=1).trace


# ---------------------------------------------------------------- n_jobs


@pytest.mark.parametrize("kind", [NaiveBayes, TextNaiveBayes, Mixture, HiddenMarkov, NetworkClassifier])
def test_estimators_use_as_many_threads_as_n_jobs(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    true = thread_count.limited_to
    monkeypatch.setattr("likely.estimators._base.limited_to", lambda limit: seen.append(limit) or true(limit))
    data = ["a b c d", "e f g h"] * 30 if kind is TextNaiveBayes else X
    one, many = (kind(n_jobs=jobs).fit(data, Y) for jobs in (1, 3))
    assert one.predict(data).tolist() == many.predict(data).tolist()
    assert set(seen) == {1, 3}
    with pytest.raises(ValueError, match="n_jobs=0 is no number of threads"):
        kind(n_jobs=0).fit(data, Y)


def test_the_command_line_has_the_setting_in_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    true = inspection.inspect
    monkeypatch.delenv("LIKELY_THREADS", raising=False)
    monkeypatch.setattr(inspection, "inspect", lambda *a, **k: seen.append(thread_count.threads()) or true(*a, **k))
    run("inspect", TENNIS, "--threads", "3", "--json")
    assert seen == [3]
    assert "LIKELY_THREADS" not in os.environ  # restored when the command ends
    assert "--threads" in run("inspect", TENNIS, "--threads", "0", expect=2).stderr


# ---------------------------------------------------------------- top_words


def test_top_words_of_model_and_estimator_have_one_shape() -> None:
    texts, labels = ["cheap pills now", "lunch at noon"] * 6, [1, 0] * 6
    estimator = TextNaiveBayes("multinomial").fit(texts, labels)
    found = estimator.top_words(2)
    assert found == estimator.model_.top_words(2)
    assert list(found) == [0, 1]
    assert all(isinstance(word, str) and weight > 0 for best in found.values() for word, weight in best)
    assert {len(best) for best in found.values()} == {2}
    table = {"a": texts, "b": texts[::-1], "y": labels}
    model = likely.learn(table, "y", families={"*": likely.Text("multinomial")})
    assert model.top_words(2, column="a") == found
    with pytest.raises(UsageError, match="name one with column="):
        model.top_words()
    with pytest.raises(UsageError, match="the model has no text column"):
        likely.learn(TENNIS, "PlayTennis").top_words()


def test_the_report_of_a_model_lists_the_words_of_every_text_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = {"a": ["cheap pills now", "lunch at noon"] * 6, "b": ["x y", "z w"] * 6, "y": ["s", "g"] * 6}
    likely.learn(table, "y", families={"*": "text"}).save("m.likely")
    words = json.loads(run("inspect", "m.likely", "--json").stdout)["top_words"]
    assert set(words) == {"a", "b"}
    assert set(words["a"]["s"][:3]) == {"cheap", "pills", "now"}


# ---------------------------------------------------------------- optional dependencies


@pytest.mark.parametrize("library", EXTRAS)
def test_a_missing_optional_dependency_names_the_extra_that_installs_it(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    package, extra = EXTRAS[library]
    with pytest.raises(MissingDependencyError) as reported:
        import_optional(library, "this")
    assert str(reported.value) == f"this needs {package}, which is not installed: pip install 'likely[{extra}]'"
    assert isinstance(reported.value, ImportError)
    declared = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'{extra} = ["{package}' in declared


def test_estimators_without_scikit_learn_name_the_extra() -> None:
    names = ("NaiveBayes", "TextNaiveBayes", "Mixture", "HiddenMarkov")
    code = f"""
import sys
sys.modules["sklearn"] = None
import likely
for name in {names}:
    try:
        getattr(likely, name)
    except ImportError as error:
        print(error)
"""
    env = {**os.environ, "PYTHONPATH": str(Path(likely.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=300)
    remedy = "needs scikit-learn, which is not installed: pip install 'likely[sklearn]'"
    assert done.stdout.splitlines() == [f"likely.{name} {remedy}" for name in names]


def test_a_fault_inside_an_optional_module_is_not_mistaken_for_a_missing_one(tmp_path, monkeypatch) -> None:
    (tmp_path / "broken_module.py").write_text("import a_library_that_is_not_there\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="a_library_that_is_not_there") as reported:
        import_optional("broken_module", "this", library="sklearn")
    assert not isinstance(reported.value, MissingDependencyError)
