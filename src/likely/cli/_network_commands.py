"""The commands of Bayesian networks: learn, query and draw."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likely.cli import _inputs as inputs
from likely.cli import _options as options
from likely.cli import _outputs as outputs
from likely.cli import _writers as writers
from likely.cli._entry_point import CommandGroup
from likely.cli._options import FILE, ignore_option, json_option, reading_options, weights_option
from likely.cli._spark_commands import check_engine, network_engine_options, spark_source
from likely.cli._terminal import Terminal, standard_output
from likely.errors import UsageError

if TYPE_CHECKING:
    from likely.networks.network import Network
    from likely.sources import ReadOptions

METHODS = ["hill-climb", "chow-liu", "tan", "k-dependence", "naive-bayes"]


@click.group(cls=CommandGroup, short_help="Learn, query and draw Bayesian networks.")
def network() -> None:
    """Bayesian networks: arcs declared or learned, tables counted, queries answered exactly."""


@network.command(short_help="Learn a Bayesian network from a table.")
@click.argument("data", type=FILE)
@click.option("--arcs", metavar="TEXT", help="The arcs, as 'A -> B, B -> C'; by default they are learned.")
@click.option("--method", type=click.Choice(METHODS), default="hill-climb", show_default=True, help="Structure learning.")
@click.option("--target", metavar="COLUMN", help="The class, for tan, k-dependence and naive-bayes.")
@click.option("--parents", "k", type=click.IntRange(min=0), default=2, show_default=True,
              help="Maximum number of parent columns of a column, for k-dependence.")  # fmt: skip
@click.option("--criterion", "--score", "criterion", type=click.Choice(["qnml", "bdeu", "bic", "aic", "k2"]), default="qnml",
              show_default=True, help="Score that hill climbing maximises.")  # fmt: skip
@click.option("--required", metavar="ARCS", default="", help="Arcs that the network must have.")
@click.option("--forbidden", metavar="ARCS", default="", help="Arcs that the network must not have.")
@click.option("--max-parents", type=click.IntRange(min=0), help="Maximum number of parents of a node.")
@click.option("--hidden", multiple=True, metavar="NODE=N", help="A latent node and its number of values (fitted by EM).")
@click.option("--smoothing", multiple=True, metavar="N|COL=N",
              help="Pseudocount for each cell; by default one pseudo-row for each table.")  # fmt: skip
@click.option("-o", "--output", type=FILE, metavar="MODEL", help="File to write: .likely, or .bif for the tables only.")
@click.option("--picture", type=FILE, metavar="OUT.svg", help="Picture to write.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the search and of EM.")
@ignore_option()
@weights_option
@network_engine_options
@click.option("--missing", multiple=True, metavar="TOKEN", help="A missing-value token, as for learn.")
@options.iteration_options(0.01, " of EM", most=500)
@reading_options
@json_option
@click.pass_obj
def learn(terminal: Terminal, /, data: str, arcs: str | None, output: str | None, picture: str | None, master: str | None,
          **given: Any) -> None:  # fmt: skip
    """Learn a network from DATA: count the tables of given arcs, or learn the arcs as well.

    With missing cells or hidden nodes, the tables are fitted by EM.
    """
    _check(data, output, picture)
    with_spark = check_engine(given["engine"], master)
    with contextlib.nullcontext(data) if with_spark else inputs.as_file(data, terminal) as path:
        source, reading = spark_source(path, master, given) if with_spark else inputs.opened_with(path, given)
        with terminal.progress("network"):
            found = _learned(source, arcs, given, reading)
        terminal.list_rejects(reading.rejects)
    engine, _, reason = found.engine.partition(": ")
    report = _report(found) | {"data": data, "engine": {"name": engine, "reason": reason}}
    if output:
        if Path(output).suffix.lower() == ".bif":
            found.to_bif(output)
        else:
            report["digest"] = found.save(output)
        report["model"] = output
    if picture:
        writers.write_page(picture, found.svg(Path(data).stem if data != "-" else "", given["target"]))
        report["picture"] = picture
    terminal.result(report, lambda: _show(terminal, found, report))


def _check(data: str, output: str | None, picture: str | None) -> None:
    if "-" in (output, picture):
        raise UsageError("-o and --picture need the name of a file")
    if picture is not None and Path(picture).suffix.lower() != ".svg":
        raise UsageError(f"--picture {picture!r} is an SVG picture: use the extension .svg")
    outputs.check({"-o": output, "--picture": picture}, [data])
    if output is not None and Path(output).suffix.lower() != ".bif":
        outputs.check_model("-o", output)


def _learned(source: Any, arcs: str | None, given: dict[str, Any], reading: ReadOptions) -> Network:
    from likely.networks.network import Network

    numbers = dict(_hidden_node(text) for text in given["hidden"])
    shared = {name: given[name] for name in ("weights", "seed", "max_iter", "tol", "engine")}
    how = {name: getattr(reading, name) for name in ("missing", "decimal", "thousands", "dates", "memory_limit")}
    shared |= {name: value for name, value in how.items() if value is not None}
    smoothing = options.smoothing(given["smoothing"])
    if arcs is not None:
        _refuse_beside_arcs(given)
        made = Network(arcs, hidden=numbers, smoothing=smoothing)
        made.graph.check([] if given["target"] is None else [given["target"]], "--target: node")
        return made.fit(source, **shared)
    if numbers:
        raise UsageError("--hidden needs --arcs: arcs of hidden nodes cannot be learned")
    settings = {name: given[name] for name in ("method", "target", "k", "criterion", "required", "forbidden", "max_parents",
                                               "ignore")}  # fmt: skip
    return Network.learn_structure(source, smoothing=smoothing, **settings, **shared)


def _hidden_node(text: str) -> tuple[str, int]:
    """A latent node and its number of values."""
    name, given = options.pair(text, "--hidden", "NODE=2")
    number = options.number(given, "--hidden")
    if number != int(number):
        raise UsageError(f"--hidden {text!r} is not understood: a node has a whole number of values, such as {name}=2")
    return name, int(number)


def _refuse_beside_arcs(given: dict[str, Any]) -> None:
    """Refuse options of structure learning where the arcs are given: they would have no effect."""
    meant = {"--required": given["required"], "--forbidden": given["forbidden"], "--ignore": given["ignore"],
             "--max-parents": given["max_parents"] is not None, "--method": given["method"] != METHODS[0]}  # fmt: skip
    useless = next((name for name, there in meant.items() if there), None)
    if useless is not None:
        raise UsageError(f"{useless} has no effect with --arcs, which name all nodes and arcs: leave one of the two out")


def _report(found: Network) -> dict[str, Any]:
    nodes = [
        {"name": name, "kind": found.columns[name].kind, "values": list(found.columns[name].values),
         "parents": list(found.graph.parents[name]), "hidden": name in found.hidden}
        for name in found.nodes
    ]  # fmt: skip
    report: dict[str, Any] = {"nodes": nodes, "arcs": [list(arc) for arc in found.arcs]}
    if found.tally is not None:
        report |= {"rows": found.tally.rows, "rounds": len(found.trace), "converged": found.converged}
    return report


def inspect_network(terminal: Terminal, found: Network, file: dict[str, Any], nodes: Sequence[str]) -> None:
    """Show a network file: its nodes and arcs, or the tables of some nodes."""
    found.graph.check(nodes, "--column: node")
    tables = {name: _parameters(found, name) for name in nodes}
    report = _report(found) | file | {"tables": tables}

    def show() -> None:
        for table in tables.values():
            terminal.table(list(table[0]), [list(row.values()) for row in table], [len(table[0]) - 1], most=None)
            terminal.line()
        if not tables:
            counted = f", {report['rows']:,.0f} rows counted" if "rows" in report else ""
            terminal.line(f"Bayesian network: {len(found.nodes)} nodes, {len(found.arcs)} arcs{counted}")
            _show_nodes(terminal, found, report)
            terminal.line(f"size    {report['bytes']:,} bytes")
            terminal.line(f"sha256  {report['digest']}")

    terminal.result(report, show)


def _parameters(found: Network, name: str) -> list[dict[str, Any]]:
    """The parameters of a node, a row for each configuration of its parents and each value or coefficient."""
    import numpy as np

    from likely.networks.family_counts import categorical_parents, numeric_parents
    from likely.schema import CATEGORY

    if found.columns[name].kind == CATEGORY:
        parents = found.graph.parents[name]
        return [{**dict(zip(parents, key, strict=True)), name: value, "probability": p}
                for key, row in found.table(name).items() for value, p in row.items()]  # fmt: skip
    some = categorical_parents(found.graph, found.columns, name)
    gaussian = found.parameters.gaussians[name]
    slopes = numeric_parents(found.graph, found.columns, name)
    rows = []
    for at in np.ndindex(gaussian.intercept.shape):
        key = {p: found.columns[p].values[i] for p, i in zip(some, at, strict=True)}
        terms = {"intercept": gaussian.intercept[at], **dict(zip(slopes, gaussian.slopes[at], strict=True)),
                 "variance": gaussian.variance[at]}  # fmt: skip
        rows += [{**key, "term": term, name: float(value)} for term, value in terms.items()]
    return rows


def _show_nodes(terminal: Terminal, found: Network, report: dict[str, Any]) -> None:
    if found.trace:
        terminal.line(f"EM: {len(found.trace)} iterations, log-likelihood with prior {found.trace[-1]:,.2f}")
    terminal.line()
    rows = [[n["name"], n["values"] or "numbers", n["parents"]] for n in report["nodes"]]
    terminal.table(["node", "values", "parents"], rows)


def _show(terminal: Terminal, found: Network, report: dict[str, Any]) -> None:
    terminal.line(f"{len(found.nodes)} nodes, {len(found.arcs)} arcs from {report['rows']:,.0f} rows of {report['data']}")
    _show_nodes(terminal, found, report)
    for what, key in (("Network", "model"), ("Picture", "picture")):
        if key in report:
            terminal.line(f"{what} written to {report[key]}")


def _load(path: str) -> Network:
    from likely.networks.network import Network

    return Network.from_bif(path) if _is_bif(path) else Network.load(path)


def _is_bif(path: str) -> bool:
    return path.lower().endswith((".bif", ".bif.gz"))


def _assigned(found: Network, given: Sequence[str], option: str) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not value:
            raise UsageError(f"{option} {text!r} is not understood: write it as NODE=VALUE")
        found.graph.check([name], f"{option}: node")
        written = value[0] in "{[" and value not in found.columns[name].values
        pairs[name] = _several(text, value, option) if written else value
    return pairs


def _several(text: str, value: str, option: str) -> Any:
    """Likelihoods of values, possible values or an interval, written as JSON."""
    try:
        held = json.loads(value)
        listed = list(held.values()) if isinstance(held, dict) else held
        if any(isinstance(each, (list, dict)) for each in listed) or (option == "--do" and isinstance(held, list)):
            raise ValueError("it holds lists")
    except ValueError as error:
        shape = 'NODE={"VALUE": NUMBER, …}' + ("" if option == "--do" else " or NODE=[VALUE, …]")
        raise UsageError(f"{option} {text!r} is not understood ({error}): write it as {shape}") from None
    return held


@network.command(short_help="Query a Bayesian network.")
@click.argument("model", type=FILE)
@click.argument("nodes", nargs=-1)
@click.option("--given", multiple=True, metavar="NODE=VALUE", help="Observed value of a node; once for each node. "
              'Likelihoods of its values as {"VALUE": NUMBER, …}, '
              'possible values as ["VALUE", …], an interval of numbers as [LOW, HIGH].')
@click.option("--do", "do", multiple=True, metavar="NODE=VALUE", help="Intervention on a node; once for each node. "
              'Probabilities of its values as {"VALUE": NUMBER, …}.')
@click.option("--most-probable", is_flag=True, help="Print the most probable values of all nodes, or of NODES.")
@click.option("--samples", type=click.IntRange(min=1), help="Estimate from this number of samples instead of exactly.")
@json_option
@click.pass_obj
def query(terminal: Terminal, model: str, nodes: tuple[str, ...], given: tuple[str, ...], do: tuple[str, ...],
          most_probable: bool, samples: int | None) -> None:  # fmt: skip
    """Print the posterior of each of NODES in MODEL (.likely or .bif) given the observed values."""
    found = _load(model)
    observed, done = _assigned(found, given, "--given"), _assigned(found, do, "--do")
    found = found.do(done) if done else found
    if most_probable:
        best = found.most_probable(observed, list(nodes) or None)
        report: dict[str, Any] = {"given": observed, "do": done, "most_probable": best}
        terminal.result(report, lambda: terminal.table(["node", "value"], [[n, v] for n, v in best.items()], most=None))
        return
    if not nodes:
        raise UsageError("name the nodes to query, or use --most-probable")
    answers = {name: found.query(name, observed, samples=samples) for name in nodes}
    report = {"given": observed, "do": done, "log_evidence": found.log_evidence(observed) if samples is None else None}
    report["posterior"] = {name: _plain(answer) for name, answer in answers.items()}
    terminal.result(report, lambda: _answers(terminal, answers))


def _plain(answer: Any) -> Any:
    if isinstance(answer, dict):
        return answer
    low, high = answer.interval()
    return {"mean": answer.mean, "variance": answer.variance, "interval": [low, high]}


def _answers(terminal: Terminal, answers: dict[str, Any]) -> None:
    for name, answer in answers.items():
        if isinstance(answer, dict):
            terminal.table([name, "probability"], [[value, p] for value, p in answer.items()], [1], most=None)
        else:
            terminal.line(f"{name}: {answer}")
        terminal.line()


@network.command(short_help="Draw a Bayesian network as SVG.")
@click.argument("model", type=FILE)
@click.option("-o", "--output", type=FILE, default="-", show_default=True, metavar="OUT.svg", help="Picture to write.")
@click.option("--title", default="", help="Title of the picture.")
@click.option("--target", metavar="NODE", help="Node to highlight.")
@json_option
@click.pass_obj
def draw(terminal: Terminal, model: str, output: str, title: str, target: str | None) -> None:
    """Draw MODEL (.likely or .bif), or a plain naive Bayes model, as a layered graph."""
    outputs.check({"-o": output}, [model])
    to_stdout = outputs.stdout_is_taken(output, terminal, "picture")
    found, own = _drawable(model)
    svg = found.svg(title or Path(model).name.split(".")[0], target or own)
    if to_stdout:
        standard_output().write(svg)
        return
    writers.write_page(output, svg)
    report = {"picture": output, "nodes": len(found.nodes), "arcs": len(found.arcs)}
    terminal.result(report, lambda: terminal.line(f"{report['nodes']} nodes and {report['arcs']} arcs drawn to {output}"))


def _drawable(path: str) -> tuple[Network, str | None]:
    """A network and the node to highlight; a plain naive Bayes model is converted to a network."""
    from likely.learning.load import load_model, load_with_digest
    from likely.networks.network import Network

    found = _load(path) if _is_bif(path) else load_with_digest(path)[0]
    if isinstance(found, Network):
        return found, None
    model = load_model(path)
    return Network.of_naive_bayes(model), model.schema.target.name
