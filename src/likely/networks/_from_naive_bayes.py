"""A plain naive Bayes model as a network."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.errors import UsageError
from likely.model.model import Model
from likely.networks.graph import Graph
from likely.networks.network import Network
from likely.networks.network_parameters import LinearGaussian, NetworkParameters
from likely.schema import CATEGORY, NUMBER, Column


def network_of(model: Any) -> Network:
    """The network in which the class is the parent of every column; it predicts what the model predicts.

    Columns must be categorical or Gaussian, without weights or calibration: `learn(..., plain=True)`.
    """
    if not isinstance(model, Model):
        model = getattr(model, "model_", model)
    if not isinstance(model, Model) or model.calibration is not None or model.stages or model.average:
        raise UsageError("only a plain model is a naive Bayes network: learn it with plain=True")
    target = model.schema.target.name
    columns: dict[str, Column] = {target: Column(target, CATEGORY, tuple(model.classes))}
    empty = model.posterior([dict.fromkeys(model.schema.by_name)])
    tables: dict[str, Any] = {target: np.exp(empty.log_joint[0] - np.logaddexp.reduce(empty.log_joint[0]))}
    gaussians = {}
    for block, parameters in zip(model.blocks, model.block_parameters, strict=True):
        gaussian = parameters.likelihood.moments()
        held = gaussian is not None or model.schema.by_name[block.columns[0]].kind == CATEGORY
        if len(block.columns) != 1 or not held:
            raise UsageError(
                f"column {block.name!r} is {block.family.name}: a network holds categorical and Gaussian columns "
                f"(families={{{block.name!r}: 'categorical'}})"
            )
        name = block.columns[0]
        if gaussian is not None:
            mean, covariance = gaussian
            columns[name] = Column(name, NUMBER)
            gaussians[name] = LinearGaussian(mean[:, 0].copy(), np.zeros((len(mean), 0)), covariance[:, 0, 0].copy())
        else:
            values = model.schema.by_name[name].values
            columns[name] = Column(name, CATEGORY, values)
            logs = model.posterior([{**dict.fromkeys(model.schema.by_name), name: value} for value in values]).log_joint
            shares = np.exp(logs - empty.log_joint).T
            tables[name] = shares / shares.sum(1, keepdims=True)
    nodes = (target, *(name for name in columns if name != target))
    graph = Graph(nodes, {name: () if name == target else (target,) for name in nodes})
    return Network.from_parameters(graph, columns, NetworkParameters(tables, gaussians))
