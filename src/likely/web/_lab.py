"""The lab: small problems of the page, solved by the library after each change."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

import msgspec
import numpy as np

from likely.bayes import Hypotheses
from likely.latent.mixtures import cluster
from likely.learning.learn import learn
from likely.networks.network import Network
from likely.web._messages import HttpError, Request, decoded, plain

Number = Annotated[float, msgspec.Meta(ge=-1e6, le=1e6)]
Word = Annotated[str, msgspec.Meta(max_length=60)]
BAGS = {"h1": 1.0, "h2": 0.75, "h3": 0.5, "h4": 0.25, "h5": 0.0}  # share of cherry candies
PRIOR = {"h1": 0.1, "h2": 0.2, "h3": 0.4, "h4": 0.2, "h5": 0.1}
GRID = 40


class Candy(msgspec.Struct, forbid_unknown_fields=True):
    """Candies drawn so far."""

    draws: Annotated[list[Word], msgspec.Meta(max_length=200)] = []


class PointsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Points to cluster."""

    points: Annotated[list[tuple[Number, Number]], msgspec.Meta(min_length=2, max_length=300)]
    k: Annotated[int, msgspec.Meta(ge=1, le=6)] = 2


class SurfaceBody(msgspec.Struct, forbid_unknown_fields=True):
    """Points with a class each, in the unit square."""

    points: Annotated[list[tuple[Number, Number, Word]], msgspec.Meta(min_length=2, max_length=300)]
    family: str = "gaussian"


class Tennis(msgspec.Struct, forbid_unknown_fields=True):
    """Rows of the table, and the day to predict."""

    rows: Annotated[list[dict[Word, Word]], msgspec.Meta(max_length=200)] | None = None
    day: dict[Word, Word | None] = {}
    smoothing: Annotated[float, msgspec.Meta(ge=0, le=100)] = 1.0


class EvidenceBody(msgspec.Struct, forbid_unknown_fields=True):
    """Observed nodes."""

    evidence: dict[Word, Word] = {}


CANDY, POINTS, SURFACE, TENNIS, EVIDENCE = (
    msgspec.json.Decoder(kind) for kind in (Candy, PointsBody, SurfaceBody, Tennis, EvidenceBody)
)


def _plain(document: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = plain(document)
    return made


def candy(request: Request) -> dict[str, Any]:
    """Five bags of candy: posterior and prediction after each draw."""
    asked: Candy = decoded(request, CANDY.decode)
    if odd := next((each for each in asked.draws if each not in ("cherry", "lime")), None):
        raise HttpError(422, f"a candy is 'cherry' or 'lime', not {odd!r}")
    space = Hypotheses(prior=PRIOR, likelihood={h: {"cherry": p, "lime": 1 - p} for h, p in BAGS.items()})
    steps = [space]
    for draw in asked.draws:
        steps.append(steps[-1].observe(draw))
    return {
        "bags": BAGS, "posterior": [list(map(float, each.posterior.values())) for each in steps],
        "next_lime": [float(each.predict()["lime"]) for each in steps],
        "map": str(steps[-1].map), "map_lime": float(steps[-1].predict_map()["lime"]),
    }  # fmt: skip


def em(request: Request) -> dict[str, Any]:
    """EM for a mixture of Gaussians: means and deviations after each step, and the last responsibilities."""
    asked: PointsBody = decoded(request, POINTS.decode)
    if len(asked.points) < asked.k:
        raise HttpError(422, f"{asked.k} components need at least {asked.k} points")
    x, y = zip(*asked.points, strict=True)
    table = {"x": list(map(float, x)), "y": list(map(float, y))}
    fitted = cluster(table, asked.k, families={"*": "gaussian"}, n_init=1, max_iter=60, steps=True)
    steps = []
    for step in fitted.steps:
        moments: Any = step.tally.statistics
        total = np.maximum(step.tally.classes, 1e-9)
        spread = [np.sqrt(np.maximum(each.spread / np.maximum(each.n, 1e-9), 1e-6)) for each in moments]
        steps.append({
            "log_likelihood": step.value, "weights": (total / total.sum()).tolist(),
            "mean": np.column_stack([each.mean for each in moments]).tolist(), "deviation": np.column_stack(spread).tolist(),
        })  # fmt: skip
    shares = fitted.model.posterior(table).probabilities
    return _plain({"steps": steps, "responsibilities": shares.tolist(), "converged": bool(fitted.converged)})


def surface(request: Request) -> dict[str, Any]:
    """Class probabilities over a grid of the unit square, learned from labelled points."""
    asked: SurfaceBody = decoded(request, SURFACE.decode)
    if asked.family not in ("gaussian", "binned", "joint"):
        raise HttpError(422, f"choose gaussian, binned or joint, not {asked.family!r}")
    x, y, labels = zip(*asked.points, strict=True)
    if len(set(labels)) < 2:
        raise HttpError(422, "points of two classes are needed")
    settings: dict[str, Any] = {"joint": [("x", "y")]} if asked.family == "joint" else {"families": {"*": asked.family}}
    table = {"x": list(map(float, x)), "y": list(map(float, y)), "class": list(labels)}
    model = learn(table, "class", plain=True, **settings)
    ticks = (np.arange(GRID) + 0.5) / GRID
    across, down = np.meshgrid(ticks, ticks)
    found = model.posterior({"x": across.ravel(), "y": down.ravel()}).probabilities
    own = model.posterior({"x": table["x"], "y": table["y"]})
    return _plain({
        "classes": list(model.classes), "size": GRID, "probabilities": np.round(found, 4).tolist(),
        "accuracy": float((own.labels == np.array(labels)).mean()),
    })  # fmt: skip


@cache
def _tennis() -> list[dict[str, str]]:
    text = files("likely").joinpath("data/tennis.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def tennis(request: Request) -> dict[str, Any]:
    """The table of fourteen days, as edited: counts, and the explanation of one day."""
    asked: Tennis = decoded(request, TENNIS.decode)
    rows = asked.rows if asked.rows is not None else _tennis()
    target = "PlayTennis"
    if len({row.get(target) for row in rows}) < 2 or any(target not in row for row in rows):
        raise HttpError(422, "the table needs days of both classes")
    model = learn(rows, target, plain=True, smoothing=asked.smoothing, families={"*": "categorical"})
    names = [column.name for column in model.schema.columns]
    values = {column.name: list(column.values) for column in model.schema.columns}
    day = {name: asked.day.get(name) or values[name][0] for name in names}
    ledger = model.explain(day)
    return _plain({"rows": rows, "columns": values, "day": day, "target": target, "explanation": ledger.to_dict()
                  | {"probabilities": list(ledger.probabilities)}})  # fmt: skip


@cache
def _sprinkler() -> Network:
    """The network of the wet lawn."""
    cells = {
        "Cloudy": [0.5, 0.5], "Sprinkler": [[0.1, 0.9], [0.5, 0.5]], "Rain": [[0.8, 0.2], [0.2, 0.8]],
        "Wet": [[[0.99, 0.01], [0.9, 0.1]], [[0.9, 0.1], [0.0, 1.0]]],
    }  # fmt: skip
    values = ("yes", "no")
    tables = {name: np.array(table) for name, table in cells.items()}
    arcs = "Cloudy -> Sprinkler, Cloudy -> Rain, Sprinkler -> Wet, Rain -> Wet"
    return Network.from_tables(arcs, dict.fromkeys(cells, values), tables)


def network(request: Request) -> dict[str, Any]:
    """Marginals of every node of the wet lawn, given evidence."""
    asked: EvidenceBody = decoded(request, EVIDENCE.decode)
    net = _sprinkler()
    for name, value in asked.evidence.items():
        if name not in net.nodes or value not in ("yes", "no"):
            raise HttpError(422, f"{name!r} = {value!r} is no evidence for this network: nodes {list(net.nodes)}, yes or no")
    marginals = {}
    for name in net.nodes:
        given = asked.evidence.get(name)
        marginals[name] = {v: float(v == given) for v in ("yes", "no")} if given else net.query(name, asked.evidence)
    return _plain({"nodes": list(net.nodes), "arcs": [list(arc) for arc in net.arcs], "marginals": marginals})


ROUTES = {"candy": candy, "em": em, "surface": surface, "tennis": tennis, "network": network}
