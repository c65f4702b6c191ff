"""Pictures of a network: nodes with their kinds, and their distributions as tooltips."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likely.plots.network_drawing import DrawnNode, counted, network_svg
from likely.schema import NUMBER

if TYPE_CHECKING:
    from likely.networks.network import Network

MOST_LINES = 16  # of a tooltip


def picture(network: Network, title: str = "", target: str | None = None) -> str:
    """The network as SVG; the target, if there is one, stands out."""
    if target is not None:
        network.graph.check([target], "target")
    nodes = [DrawnNode(name, tooltip(network, name), _look(network, name, target)) for name in network.nodes]
    rows = f", {network.tally.rows:,.0f} rows" if network.tally is not None else ""
    subtitle = f"{counted(len(network.nodes), 'node')}, {counted(len(network.arcs), 'arc')}{rows}"
    return network_svg(nodes, network.arcs, title or "Bayesian network", subtitle)


def _look(network: Network, name: str, target: str | None) -> str:
    if name == target:
        return "class"
    if name in network.hidden:
        return "hidden"
    return "number" if network.fitted and network.columns[name].kind == NUMBER else "node"


def tooltip(network: Network, name: str) -> str:
    """The distribution of a node given its parents, in a few lines."""
    parents = network.graph.parents[name]
    head = f"P({name} | {', '.join(parents)})" if parents else f"P({name})"
    if not network.fitted:
        return head
    if network.columns[name].kind == NUMBER:
        found = network.parameters.gaussians[name]
        if found.intercept.size > 1 or found.slopes.size:
            return f"{head}\nlinear Gaussian, {found.intercept.size} configurations"
        return f"{head}\nnormal, mean {float(found.intercept):.4g}, variance {float(found.variance):.4g}"
    lines = [head]
    table = network.table(name)
    for key, shares in list(table.items())[:MOST_LINES]:
        given = ", ".join(f"{p}={v}" for p, v in zip(parents, key, strict=True))
        shown = ", ".join(f"{value} {share:.3g}" for value, share in list(shares.items())[:8])
        lines.append(f"{given}: {shown}" if given else shown)
    if len(table) > MOST_LINES:
        lines.append(f"… and {len(table) - MOST_LINES:,} more rows")
    return "\n".join(lines)
