"""Write docs/api.md from the docstrings of the public names, so that the reference cannot drift from the code."""

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import likely
from likely.distributions import Distribution
from likely.families import Family
from likely.model.model import USER_NAMES
from likely.priors._fixed_prior import FixedPrior

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"

HEAD = """\
# Python API

<!-- Made by scripts/make_api_reference.py from the docstrings; change these, not this page. -->

All names are attributes of `likely`: `import likely`, then `likely.learn(...)`. Nothing is imported before it is used, and the
estimators need scikit-learn (`pip install 'likely[sklearn]'`). Every error derives from `likely.errors.LikelyError`.

The number of threads is one setting: `n_jobs` of an estimator, else the environment variable `LIKELY_THREADS` (`--threads` on
the command line), else all cores that the process may use by CPU affinity and container quota, up to 16.
"""

SECTIONS = {
    "Learn and load": ("learn", "load", "inspect", "Model", "plan", "CountingPlan"),
    "Results": ("Posterior", "Ledger", "Predictor", "ParameterCount", "ParameterTable", "ParameterPosterior", "Calibration",
                "Schema", "Column", "Tally"),
    "Evaluate": ("evaluate", "Evaluation", "curve", "LearningCurve", "compare", "compare_baselines", "Comparison",
                 "Difference", "importance", "Importance", "compare_models", "ModelComparison", "Curves", "DecisionFigures",
                 "predictive_check", "PredictiveCheck", "CheckedStatistic"),
    "Hidden labels and sequences": ("cluster", "Clusters", "sequences", "HiddenMarkovModel", "lesson"),
    "Families": ("Categorical", "Binned", "Gaussian", "Poisson", "Bernoulli", "Binomial", "Multinomial", "Joint", "Text"),
    "Priors": ("Pseudocount", "MEstimate", "Dirichlet", "NormalInverseGamma", "GammaPrior", "Spread", "ByClass", "Priors"),
    "One distribution, and Bayes' rule": ("estimate", "Estimate", "Hypotheses", "SupervisedHypotheses",
                                          "GridHypotheses", "bayes_rule", "total_probability", "sum_rule",
                                          "product_rule", "conditional", "independent", "odds", "odds_ratio",
                                          "distributions"),
    "Independence": ("independence_test", "IndependenceTest", "simpson", "Simpson"),
    "Pictures and reports": ("pictures", "report", "Report", "Svg", "EffectDisplay", "NomogramDisplay", "ExplanationDisplay",
                             "ImportanceDisplay"),
    "Bayesian networks": ("Network",),
    "scikit-learn estimators": ("NaiveBayes", "TextNaiveBayes", "Mixture", "HiddenMarkov", "NetworkClassifier"),
    "Brain images": ("brain",),
    "Errors": ("errors",),
}  # fmt: skip
# Classes whose methods users seldom call: they pass them on, or read their attributes. Their methods are one table.
VALUES = {*SECTIONS["Families"], *SECTIONS["Priors"], "Schema", "Column", "Tally", "Calibration"}
# What all families, priors and distributions offer stands once, with its parameters; their own tables have the rest.
PROTOCOLS: dict[str, tuple[str, type]] = {
    "Categorical": ("families.Family", Family), "Pseudocount": ("Prior", FixedPrior),
}  # fmt: skip
SHARED = (Family, FixedPrior, Distribution)
NOT_YET: set[str] = set()  # classes whose methods have no sections
HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w[\w.*]*(?:, \*{0,2}\w+)*)(?: : (.*))?$")


class Documented(NamedTuple):
    """A public callable: its full name, the object, its class, and the methods of base classes that document it too."""

    name: str
    thing: Any
    owner: type | None = None
    inherited: tuple[Any, ...] = ()

    @property
    def inner(self) -> bool:
        """Whether it stands inside a class."""
        return self.owner is not None


class Docstring(NamedTuple):
    """A numpydoc docstring: its text, and its sections by name."""

    text: str
    sections: dict[str, str]


def parsed(thing: Any) -> Docstring:
    """The docstring of a thing, cut into text and sections."""
    text = inspect.getdoc(thing) or ""
    heads = list(HEADING.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    sections = {head.group(1): text[head.end() : end].strip("\n") for head, end in zip(heads, ends, strict=False)}
    return Docstring((text[: heads[0].start()] if heads else text).strip(), sections)


def entries(section: str) -> list[tuple[str, str, str]]:
    """Name, type and meaning of every entry of a section."""
    found: list[tuple[str, str, str]] = []
    for line in section.splitlines():
        if line.startswith((" ", "\t")) and found:
            name, kind, said = found[-1]
            found[-1] = (name, kind, f"{said} {line.strip()}".strip())
        elif match := ENTRY.match(line.rstrip()):
            found.append((match.group(1), match.group(2) or "", ""))
        elif line.strip():
            found.append((line.strip(), "", ""))
    return found


def public() -> Iterator[Documented]:
    """Every public callable, in the order of the page: functions, classes, and the methods that users call."""
    for names in SECTIONS.values():
        for name in names:
            yield from _public(name, getattr(likely, name))


def _public(name: str, thing: Any) -> Iterator[Documented]:
    if name in PROTOCOLS:
        yield from _class(*PROTOCOLS[name])
    if isinstance(thing, ModuleType):
        own = getattr(thing, "__all__", None) or [key for key, value in vars(thing).items() if _is_error(value)]
        for inner in own:
            if callable(found := getattr(thing, inner)):
                plain = inspect.isfunction(found) or _is_error(found)
                yield from [Documented(f"{name}.{inner}", found)] if plain else _class(f"{name}.{inner}", found)
    elif inspect.isclass(thing):
        yield from _class(name, thing)
    else:
        yield Documented(name, thing)


def _class(name: str, kind: type) -> Iterator[Documented]:
    """A class, and its methods and properties."""
    yield Documented(name, kind)
    for inner in [] if name in NOT_YET else members(kind):
        known = [vars(base)[inner] for base in kind.__mro__ if inner in vars(base) and base.__module__.startswith("likely")]
        yield Documented(f"{name}.{inner}", known[0], kind, tuple(known[1:]))


def is_value(documented: Documented) -> bool:
    """Whether the methods of a class are one table."""
    name, _, inner = documented.name.partition(".")
    in_module = bool(inner) and isinstance(getattr(likely, name, None), ModuleType)
    return inspect.isclass(documented.thing) and documented.thing not in SHARED and (name in VALUES or in_module)


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, likely.errors.LikelyError)


def members(kind: type) -> list[str]:
    """Methods and properties of a class that users need, without those of foreign base classes."""
    own = [base for base in kind.__mro__ if base.__module__.startswith("likely")]
    names = {name: None for base in own for name, value in vars(base).items() if _shown(name, value)}
    hidden = getattr(kind, "_internal", ())
    return [name for name in names if name in USER_NAMES or not (issubclass(kind, likely.Model) or name in hidden)]


def _shown(name: str, value: Any) -> bool:
    described = inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)
    return not name.startswith("_") and (described or type(value).__name__ == "cached_property")


def parameters(thing: Any) -> list[str]:
    """Names of the parameters of a callable, with the stars that numpydoc writes; none for a property."""
    function = thing.__func__ if isinstance(thing, classmethod | staticmethod) else thing
    if not callable(function):
        return []
    if inspect.isclass(function) and issubclass(function, BaseException):
        function = function.__init__
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    found = inspect.signature(function).parameters.values()
    return [stars.get(p.kind, "") + p.name for p in found if p.name not in ("self", "cls") and p.name[0] != "_"]


def explained(thing: Any, *inherited: Any) -> set[str]:
    """Names that the docstring explains, or that of the method which it overrides; of a class, base classes count as well."""
    kinds = [base for base in thing.__mro__ if base.__module__.startswith("likely")] if inspect.isclass(thing) else [thing]
    sections = [parsed(kind).sections for kind in (*kinds, *inherited) if inspect.getdoc(kind)]
    text = "\n".join(each.get(name, "") for each in sections for name in ("Parameters", "Attributes"))
    return {name for names, _, _ in entries(text) for name in names.split(", ")}


def signature(documented: Documented) -> str:
    """The call, without annotations: these stand in the table."""
    thing = documented.thing
    if not callable(thing):
        return documented.name
    if inspect.isclass(thing) and (issubclass(thing, BaseException) or not _is_made_by_users(thing)):
        return f"class {documented.name}"
    found = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in inspect.signature(thing).parameters.values()
        if p.name not in ("self", "cls")
    ]
    shown = str(inspect.Signature(found)).replace("<factory>", "{}")
    return f"{'class ' if inspect.isclass(thing) else ''}{documented.name}{shown}"


def _is_made_by_users(kind: type) -> bool:
    return "Parameters" in parsed(kind).sections or not dataclasses.is_dataclass(kind) or not dataclasses.fields(kind)


def cell(text: str) -> str:
    """One table cell: no line breaks, and bars that do not end it."""
    return " ".join(text.split()).replace("|", "\\|")


def table(heading: str, section: str) -> str:
    """A section as a table."""
    rows = [f"| `{cell(name)}` | {cell(kind)} | {cell(said)} |" for name, kind, said in entries(section)]
    return "\n".join([f"| {heading} | type | meaning |", "|---|---|---|", *rows])


def described(documented: Documented) -> str:
    """One callable: heading, signature, text, and its sections as tables."""
    if documented.inner and not callable(documented.thing):  # a property needs one line
        return f"**`{documented.name}`**: {' '.join((inspect.getdoc(documented.thing) or '').split())}"
    doc = parsed(documented.thing)
    level = "####" if documented.inner else "###"
    parts = [f"{level} {documented.name}", f"```\n{signature(documented)}\n```", doc.text]
    for name, section in doc.sections.items():
        if name == "Examples":
            parts.append(f"```pycon\n{section}\n```")
        elif name in ("Returns", "Yields"):
            parts += [f"{name} `{kind or what}`: {said}" for what, kind, said in entries(section)]
        else:
            parts.append(table(name.lower().removesuffix("s"), section))
    return "\n\n".join(part for part in parts if part)


def methods(kind: type, inner: list[Documented]) -> str:
    """Methods and properties of a value as one table; those that it only shares with others of its protocol are left out."""
    shared = {name for base in SHARED if issubclass(kind, base) for name in members(base)}
    rows = []
    for each in inner:
        short = each.name.rpartition(".")[2]
        doc = parsed(each.thing)
        if short in shared and (each.thing is inspect.getattr_static(base_of(kind), short) or not doc.text):
            continue
        named = entries(doc.sections.get("Parameters", ""))
        given = " ".join(f"`{name}`: {said}" for name, _, said in named)
        call = signature(each._replace(name=short)) if callable(each.thing) else short
        rows.append(f"| `{cell(call)}` | {cell(doc.text.split(chr(10) * 2)[0])} | {cell(given)} |")
    more = f"It has the methods of {TITLES[base_of(kind)]} as well, where their parameters are explained." if shared else ""
    table_of = "\n".join(["| method or property | meaning | parameters |", "|---|---|---|", *rows]) if rows else ""
    return "\n\n".join(part for part in (table_of, more) if part)


TITLES = {
    Family: "[families.Family](#familiesfamily)", FixedPrior: "[Prior](#prior)",
    Distribution: "[distributions.Distribution](#distributionsdistribution)",
}  # fmt: skip


def base_of(kind: type) -> type:
    """The protocol of a value; the class itself where it has none."""
    return next((base for base in SHARED if issubclass(kind, base)), kind)


def sections_of(name: str) -> Iterator[str]:
    """The text of one public name and of what is in it."""
    every = list(_public(name, getattr(likely, name)))
    for each in every:
        if not each.inner:
            yield described(each)
        if is_value(each):
            if found := methods(each.thing, [one for one in every if one.owner is each.thing]):
                yield found
        elif not each.inner and inspect.isclass(each.thing):
            yield from (described(one) for one in every if one.owner is each.thing)


def reference() -> str:
    """The complete page."""
    parts = [HEAD.rstrip()]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}")
        parts += [text for name in names for text in sections_of(name)]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Write the page, or with --check only tell whether it is current."""
    text = reference()
    if "--check" in sys.argv[1:]:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        print(f"{PAGE.name} is {'current' if current else 'stale: run make docs'}")
        return 0 if current else 1
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    print(f"{PAGE.name}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
