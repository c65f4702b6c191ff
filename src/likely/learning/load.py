"""Load a model file: a model, a clustering, a hidden Markov model or a Bayesian network.

Never: writing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from likely.errors import ModelFileError, UsageError
from likely.model import model_file
from likely.model.model import Model
from likely.model.serialization import from_file
from likely.model.serialization.latent_part import MIXTURE, moves_of

if TYPE_CHECKING:
    from likely.latent.clusters import Clusters
    from likely.learning._loaded import Loaded

NETWORK = "network"  # the kind of a file that `likely.networks` reads; models have none


def load(path: str | Path) -> Loaded | Any:
    """Read a model file; a damaged or changed one is refused.

    Parameters
    ----------
    path : str or Path
        The file, as written by `save` or by a command of `likely`.

    Returns
    -------
    Model, Clusters, HiddenMarkovModel or Network
        What was saved.
    """
    found: Loaded | Any = load_with_digest(path)[0]
    return found


def load_with_digest(path: str | Path) -> tuple[Any, str]:
    """The object that was saved in a file, and the digest of the file."""
    header, arrays, digest = model_file.read(path)
    if header.get("kind") == NETWORK:
        from likely.networks import network_file

        return network_file.from_parts(header, arrays, path), digest
    try:
        tally, prior, settings, stages, calibration = from_file(header, arrays)
        model = Model(tally, prior, **settings, stages=stages, calibration=calibration)
        written = header.get("latent")
        if written is None:
            return model, digest
        return _fitted_by_em(model, written, arrays), digest
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ModelFileError(f"{str(path)!r} is no model: {error}") from None


def _fitted_by_em(model: Model, written: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The clustering or hidden Markov model of a file; EM is imported only for these."""
    from likely.latent.clusters import Clusters
    from likely.latent.hidden_markov_model import HiddenMarkovModel
    from likely.latent.latent_file import summary_in, tried_in

    summary, tried = summary_in(written["summary"]), tried_in(written)
    if written["kind"] == MIXTURE:
        return Clusters(model, summary, tried)
    counts = moves_of(arrays)
    return HiddenMarkovModel(model, counts["starts"], counts["moves"], written["pseudocount"], summary, tried)


def load_changeable(path: str | Path) -> tuple[Model | Clusters, str]:
    """A model or a clustering, which can be updated and merged, and the digest of its file."""
    found, digest = load_with_digest(path)
    if isinstance(found, Model):
        return found, digest
    from likely.latent.clusters import Clusters
    from likely.latent.hidden_markov_model import HiddenMarkovModel

    if isinstance(found, HiddenMarkovModel):
        raise UsageError(
            f"{str(path)!r} holds a hidden Markov model, which this command cannot use: its rows depend on their order; "
            "`likely sequences DATA --apply MODEL` decodes rows with it"
        )
    if not isinstance(found, Clusters):
        raise UsageError(
            f"{str(path)!r} holds a Bayesian network, which this command cannot use: likely.Network.load and "
            "`likely network query` read it"
        )
    return found, digest


def load_model(path: str | Path) -> Model:
    """The model of a file: of a clustering, the model whose classes are the components."""
    found = load_changeable(path)[0]
    return found if isinstance(found, Model) else found.model
