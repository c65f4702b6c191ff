"""The public surface: typed, importable, documented parameter by parameter, and no larger than users need."""

import ast
import dataclasses
import importlib
import inspect
import tomllib
import typing
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import likely
from scripted import script

ROOT = Path(__file__).resolve().parents[2]
RETURNED = (
    "Binned", "Calibration", "HiddenMarkovModel", "Clusters", "Column", "Comparison", "Difference", "Estimate", "Evaluation",
    "CheckedStatistic", "Curves", "DecisionFigures", "LearningCurve", "Ledger", "Model", "ParameterCount",
    "ParameterPosterior", "ParameterTable", "Posterior", "PredictiveCheck", "Predictor", "Priors", "Schema", "Tally",
)  # fmt: skip
# Public names of the API page that a model has today.
MODEL_NAMES = {
    "classes", "schema", "predict", "predict_proba", "posterior", "explain", "parameters", "parameter_count", "relearn",
    "update", "forget", "save", "without_rows", "log_marginal_likelihood", "sample", "draw_parameters", "parameter_posterior",
}  # fmt: skip


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return script("make_api_reference")


def test_lint_has_a_type_checker_accept_the_public_names_and_reject_misspelt_ones() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert settings["strict"]
    assert "typed_program" in settings["modules"]
    program = (ROOT / "tests" / "house" / "typed_program.py").read_text(encoding="utf-8").splitlines()
    names = {line.split("  #")[0] for line in program if "# type: ignore[attr-defined]" in line}
    assert {'likely.lern("x")', 'likely.learn("x").predct("y")', "likely.NaiveBayes().fitt", "likely.Mixture().means"} <= names
    assert 'likely.load("x").predct  # type: ignore[union-attr]' in program
    keywords = {line.split("  #")[0] for line in program if "# type: ignore[call-arg]" in line}
    assert {f'likely.{verb}("x", taget="y")' for verb in ("evaluate", "compare", "curve", "plan", "inspect")} <= keywords
    assert {f'likely.{verb}("x", kk=3)' for verb in ("cluster", "sequences")} <= keywords
    assert {'likely.learn("x", smothing=1)', 'model.update("x", wieghts="w")', 'likely.cluster("x", n_iit=4)'} <= keywords
    assert sum("# type: ignore" in line for line in program) == len(names) + len(keywords) + 1
    accepted = [line for line in program if line.startswith(("likely.", "model", "network", "loaded", "clustering", "hidden"))]
    assert len(accepted) - len(names) - len(keywords) > 25


def keywords_of(function: Callable[..., Any]) -> set[str]:
    """Names of the keyword arguments of a function, and of those that a type checker accepts for its `**`."""
    known = inspect.signature(function).parameters
    rest = next((name for name, one in known.items() if one.kind is one.VAR_KEYWORD), None)
    own = set(known) - {"self", rest}
    if rest is None:
        return own
    unpacked = eval(function.__annotations__[rest], inspect.unwrap(function).__globals__)
    assert typing.get_origin(unpacked) is typing.Unpack, function
    return own | set(typing.get_args(unpacked)[0].__annotations__)


def test_type_checkers_accept_the_keywords_that_functions_take_at_run_time() -> None:
    from likely.brain._searchlight_map import searchlight, searchlight_pairs
    from likely.evaluation.cross_validation import SETTINGS
    from likely.networks.structure import StructureSettings
    from likely.sources import READ_KEYWORDS, ReadOptions

    reading = {"missing", *READ_KEYWORDS}
    assert set(READ_KEYWORDS) < {each.name for each in dataclasses.fields(ReadOptions)}
    assert keywords_of(likely.learn) >= {*READ_KEYWORDS, "reading"}
    assert keywords_of(likely.learn) - keywords_of(likely.plan) == {"engine", "in_database"}
    assert keywords_of(likely.plan) <= keywords_of(likely.learn)
    model, network = likely.Model, likely.Network
    own = {likely.evaluate: "model folds holdout groups folds_by seed progress costs threshold",
           likely.curve: "sizes seeds holdout progress",
           likely.compare: "baselines quick folds seed limit progress"}  # fmt: skip
    for function, names in own.items():
        assert keywords_of(function) == {"data", "target", *SETTINGS, *names.split()}
    assert set(SETTINGS) <= keywords_of(likely.learn)
    assert keywords_of(model.predict) == keywords_of(model.posterior) | {"costs", "threshold"}
    assert keywords_of(model.predict_proba) == keywords_of(model.posterior) == {"rows", "absent", "reading", *reading}
    assert keywords_of(model.update) == keywords_of(model.forget) == keywords_of(model.count)
    for name in ("predict", "predict_proba", "posterior", "explain", "update", "forget", "relearn"):
        assert keywords_of(getattr(likely.Clusters, name)) == keywords_of(getattr(model, name)), name
    assert keywords_of(likely.Clusters.with_log_likelihood) == {"data", *reading}
    hidden = likely.HiddenMarkovModel
    for method in (hidden.predict, hidden.decode, hidden.posterior, hidden.log_evidence, hidden.with_log_likelihood):
        assert keywords_of(method) == keywords_of(hidden.opened) - {"data"} | {"rows"}, method
    for function in (likely.cluster, likely.sequences, likely.inspect, likely.report, likely.predictive_check, network.fit,
                     network.update, network.predict, network.log_likelihoods, network.complete, model.explain):  # fmt: skip
        assert keywords_of(function) >= reading, function
    fields = {each.name for each in dataclasses.fields(StructureSettings)}
    assert keywords_of(network.learn_structure) == {"data", *fields, *reading}
    assert keywords_of(searchlight_pairs) == keywords_of(searchlight)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda data: likely.learn(data, "y", encodin="utf-8"), "did you mean 'encoding'"),
        (lambda data: likely.cluster(data, n_iit=4), "a file is read by encoding"),
        (lambda data: likely.sequences(data, kk=4), "a file is read by encoding"),
        (lambda data: likely.evaluate(data, "y", smothing=1), "did you mean 'smoothing'"),
        (lambda data: likely.compare(data, "y", smothing=1), "did you mean 'smoothing'"),
        (lambda data: likely.curve(data, "y", smothing=1), "did you mean 'smoothing'"),
        (lambda data: likely.plan(data, "y", dimal=","), "did you mean 'decimal'"),
        (lambda data: likely.learn(data, "y", plain=True).predict(data, absnt="missing"), "'absnt' .* mean 'absent'"),
        (lambda data: likely.learn(data, "y", smothing=1), "did you mean 'smoothing'"),
        (lambda data: likely.cluster(data, 1).predict(data, absnt="missing"), "did you mean 'absent'"),
        (lambda data: likely.cluster(data, 1).predict(data, cost={}), "did you mean 'costs'"),
        (lambda data: likely.cluster(data, 1).explain(data, nmber=1), "did you mean 'number'"),
        (lambda data: likely.cluster(data, 1).update(data, wieghts="y"), "did you mean 'weights'"),
        (lambda data: likely.cluster(data, 1).forget(data, weights="y", absent="missing"), "setting 'absent' is not known:"),
        (lambda data: likely.sequences(data, 1).decode(data, lenghts=[1]), "did you mean 'lengths'"),
        (lambda data: likely.Network.learn_structure(data, heder=True), "did you mean 'header'"),
    ],
)
def test_a_misspelt_keyword_is_an_error_that_names_the_right_one(call: Callable[[Any], Any], meant: str) -> None:
    with pytest.raises(likely.errors.UsageError, match=meant):
        call({"a": ["u", "v"] * 10, "y": ["p", "q"] * 10})


def test_type_checkers_see_the_names_that_exist_at_run_time() -> None:
    tree = ast.parse((ROOT / "src" / "likely" / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(likely.__all__) - {"__version__"}
    assert set(dir(likely)) == set(likely.__all__)


def test_every_public_name_is_on_the_reference_page(reference: ModuleType) -> None:
    listed = {name for names in reference.SECTIONS.values() for name in names}
    assert listed == set(likely.__all__) - {"__version__"}


@pytest.mark.parametrize("name", RETURNED)
def test_a_returned_class_is_importable_and_documented(name: str, reference: ModuleType) -> None:
    kind = getattr(likely, name)
    assert inspect.isclass(kind)
    assert getattr(importlib.import_module(kind.__module__), name) is kind
    assert len(reference.parsed(kind).text) > 20
    assert set(reference.parameters(kind)) <= reference.explained(kind)


def returned_classes(thing: object) -> set[type]:
    """Classes of this package in the return annotation of a function."""
    try:
        hint = typing.get_type_hints(thing).get("return")
    except (NameError, TypeError):  # names that only type checkers import
        return set()
    parts = (hint, *typing.get_args(hint))
    return {part for part in parts if inspect.isclass(part) and part.__module__.startswith("likely")}


def test_every_class_that_a_public_function_or_method_of_a_model_returns_is_public(reference: ModuleType) -> None:
    public = {getattr(likely, name) for name in likely.__all__}
    public |= {getattr(module, name) for module in (likely.brain, likely.distributions) for name in module.__all__}
    # What families, priors and tallies return serves the rest of the package, and pages the lesson.
    values = {getattr(likely, name) for name in reference.VALUES} | set(reference.SHARED)
    every = [d for d in reference.public() if d.owner not in values and not d.name.startswith("lesson.")]
    functions = [d for d in every if inspect.isfunction(d.thing)]
    found = {f"{d.name}: {kind.__name__}" for d in functions for kind in returned_classes(d.thing) if kind not in public}
    assert len(functions) > 60
    assert found <= {"LearningCurve.line: Line"}  # plain numbers of a picture


def test_every_parameter_of_every_public_callable_is_documented(reference: ModuleType) -> None:
    documented = list(reference.public())
    lacking = {
        each.name: names
        for each in documented
        if (names := sorted(set(reference.parameters(each.thing)) - reference.explained(each.thing, *each.inherited)))
    }
    assert len(documented) > 900
    assert lacking == {}


def test_no_docstring_documents_a_parameter_that_does_not_exist(reference: ModuleType) -> None:
    odd = {}
    for each in reference.public():
        section = reference.parsed(each.thing).sections.get("Parameters", "")
        named = {name for names, _, _ in reference.entries(section) for name in names.split(", ")}
        if callable(each.thing) and (more := named - set(reference.parameters(each.thing))):
            odd[each.name] = more
    assert odd == {}


def literal(text: str) -> object:
    return float(Fraction(text)) if "/" in text else ast.literal_eval(text)


def test_every_default_that_a_docstring_names_is_the_one_in_the_signature(reference: ModuleType) -> None:
    checked, odd = 0, []
    for each in reference.public():
        if not (inspect.isfunction(each.thing) or inspect.isclass(each.thing)):
            continue
        known = inspect.signature(each.thing).parameters
        for names, kind, _ in reference.entries(reference.parsed(each.thing).sections.get("Parameters", "")):
            _, sign, default = kind.partition("default=")
            for name in names.split(", ") if sign else ():
                value = known[name].default
                checked += 1
                if literal(default) != value:
                    odd.append(f"{each.name}({name}={value!r}) is documented as {default}")
    assert checked > 100
    assert odd == []


VERBS = [
    ("learn", "NaiveBayes", "learn"), ("cluster", "Mixture", "cluster"), ("sequences", "HiddenMarkov", "sequences"),
    ("evaluate", None, "evaluate"), ("curve", None, "curve"), ("compare", None, "compare"), ("estimate", None, "estimate"),
    ("predictive_check", None, "check"),
]  # fmt: skip


def defaults(public: str) -> dict[str, Any]:
    return {name: one.default for name, one in inspect.signature(getattr(likely, public)).parameters.items()}


def number_or_text(value: Any) -> Any:
    """A default of an option, which may be written as 1/3."""
    try:
        return float(Fraction(str(value)))
    except ValueError:
        return value


@pytest.mark.parametrize(("function", "estimator", "command"), VERBS)
def test_a_setting_has_one_default_in_function_estimator_and_command(
    function: str, estimator: str | None, command: str
) -> None:
    """But for the number of clusters, which the command chooses (docs/hidden.md), and options that are off by default."""
    from likely.cli import main

    found = defaults(function)
    others = defaults(estimator) if estimator else {}
    given = {option.name: option.default for option in main.commands[command].params}
    named = {name: value for name, value in given.items() if isinstance(value, str | int | float) and value is not False}
    assert {name: value for name, value in others.items() if name in found and found[name] != value} == {}
    shared = (found.keys() & named.keys()) - ({"k"} if command == "cluster" else set())
    assert {name for name in shared if number_or_text(found[name]) != number_or_text(named[name])} == set()


def test_help_of_learn_explains_all_its_parameters() -> None:
    text = inspect.getdoc(likely.learn) or ""
    missing = [name for name in inspect.signature(likely.learn).parameters if f"\n{name} : " not in text]
    assert missing == ["how"]
    assert "\n**how\n" in text


def test_dir_of_a_model_shows_what_users_need_and_little_else() -> None:
    model = likely.learn({"a": ["u", "v"] * 4, "y": ["p", "q"] * 4}, "y", plain=True)
    shown = {name for name in dir(model) if not name.startswith("_")}
    assert shown >= MODEL_NAMES
    assert len(shown) <= 36
    assert all(hasattr(model, name) for name in shown)
    assert not shown & {"with_tally", "with_target", "read_as", "scorer", "batches", "block_parameters", "fitted", "stages"}
    clusters = likely.cluster({"x": [0.0, 0.1, 5.0, 5.1]}, 1)
    shown = {name for name in dir(clusters) if not name.startswith("_")}
    assert shown >= {"bic", "trace", "predict", "explain", "save", "model", "parameters", "with_log_likelihood"}
    assert len(shown) <= 38
    assert not shown & {"batches", "block_parameters", "posterior_of", "reading"}


def test_dir_of_a_hidden_markov_model_shows_what_users_need() -> None:
    chain = likely.sequences({"x": [0.0, 0.1, 5.0, 5.1] * 3}, 2)
    shown = {name for name in dir(chain) if not name.startswith("_")}
    assert shown >= {
        "aic", "bic", "decode", "emission", "log_evidence", "model", "posterior", "predict", "sample", "save", "start",
        "start_counts", "states", "transition", "transition_counts", "with_log_likelihood",
    }  # fmt: skip
    assert not shown & {"expectations", "forward_backward", "opened", "tally", "starts", "moves"}
    assert all(hasattr(chain, name) for name in shown)


@pytest.mark.parametrize("name", ["HiddenMarkovModel", "Clusters"])
def test_the_reference_has_the_methods_of_results_of_em(name: str, reference: ModuleType) -> None:
    found = {each.name for each in reference.public()}
    assert found >= {f"{name}.{method}" for method in ("predict", "posterior", "save", "with_log_likelihood", "aic", "bic")}
    assert not found & {f"{name}.{method}" for method in ("batches", "expectations", "opened", "posterior_of")}


def test_a_model_gives_probabilities_as_estimators_do() -> None:
    data = {"a": ["u", "v", "u", "v"] * 4, "b": ["x"] * 16, "y": ["p", "q", "p", "p"] * 4}
    model = likely.learn(data, "y", plain=True, smoothing=0)
    found = model.predict_proba([{"a": "u", "b": "x"}, {"a": "v", "b": "x"}])
    assert found == pytest.approx(np.array([[1.0, 0.0], [0.5, 0.5]]))
    assert model.predict_proba([{"b": "x"}], absent="missing") == pytest.approx(np.array([[0.75, 0.25]]))
