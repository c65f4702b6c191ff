"""The results as one self-contained HTML page: figures, mosaics and tables."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from likely.brain._classification import Classification
from likely.brain._dataset import Dataset
from likely.brain._figures import accuracy_mosaic, evidence_mosaic, mean_mosaic
from likely.brain._maps import Maps
from likely.brain._permutations import PermutationTest
from likely.brain._searchlight_map import SearchlightMap
from likely.model.ledger_page import by_digest, page_head
from likely.plots import mosaic
from likely.plots.mosaic import Mosaic
from likely.plots.svg import printable


@dataclass(frozen=True, eq=False)
class BrainReport:
    """All results for one data set: what the page and the files are made of.

    Parameters
    ----------
    title : str
        Title of the page.
    dataset : Dataset
        The volumes.
    prepared : str
        What was done to the data, in words.
    classification : Classification
        Predictions for the volumes of each run.
    map : SearchlightMap
        The searchlight map.
    neighbourhood : str
        Shape of a neighbourhood, in words.
    means : Maps
        Mean of each class.
    evidence : Maps
        Evidence of each voxel for the classes.
    unit : str, default=""
        Unit of the values of the volumes.
    """

    title: str
    dataset: Dataset
    prepared: str  # what was done to the data, in words
    classification: Classification
    map: SearchlightMap
    neighbourhood: str  # its shape, in words
    means: Maps
    evidence: Maps
    unit: str = ""

    @property
    def mosaics(self) -> dict[str, Mosaic]:
        """The pictures by name."""
        return {
            "searchlight": accuracy_mosaic(self.dataset, self.map),
            "means": mean_mosaic(self.dataset, self.means, self.unit),
            "evidence": evidence_mosaic(self.dataset, self.evidence),
        }

    def to_dict(self) -> dict[str, Any]:
        """The results as numbers."""
        best = self.dataset.coordinates[int(np.argmax(self.map.accuracy))].tolist()
        return {
            "title": self.title, "prepared": self.prepared, "neighbourhood": self.neighbourhood,
            "classification": self.classification.to_dict(), "searchlight": self.map.to_dict() | {"best_place": best},
        }  # fmt: skip

    def page(self, names: Sequence[str] = ()) -> str:
        """The page; `names` are the files that are saved beside it.

        Parameters
        ----------
        names : sequence of str, default=()
            Files that are saved beside the page.

        Returns
        -------
        str
            HTML.
        """
        drawn = {name: mosaic.svg(each) for name, each in self.mosaics.items()}
        style = drawn["searchlight"].split("<style>")[1].split("</style>")[0]  # the same in all mosaics
        listed = ", ".join(f"<code>{_text(name)}</code>" for name in names)
        allowed = f"img-src data:; style-src {by_digest(_css())} {by_digest(style)}"
        head = page_head(printable(self.title), allowed)
        body = [
            f"<h1>{_text(self.title)}</h1>", f"<p>{_text(self._summary())}</p>", self._cards(),
            "<h2>Where the information is</h2>", f"<p>{_text(self._about_map())}</p>",
            _figure(drawn["searchlight"]),
            "<h2>All voxels together</h2>", f"<p>{_text(self._about_model())}</p>", self._confusion(), self._runs(),
            "<h2>Mean maps</h2>", _figure(drawn["means"]),
            "<h2>Evidence</h2>", _figure(drawn["evidence"]),
            *(["<h2>Files</h2>", f"<p>{listed}</p>"] if names else []),
        ]  # fmt: skip
        scheme = f'<meta name="color-scheme" content="light dark">\n<style>{_css()}</style>\n</head>\n'
        return f'{head}{scheme}<body class="lk-brain">\n<main>\n' + "\n".join(body) + "\n</main>\n</body>\n</html>\n"

    def _summary(self) -> str:
        found = self.map
        return (
            f"{found.volumes:,} volumes in {len(found.runs)} runs, {len(found):,} voxels inside the mask, {len(found.classes)} "
            f"classes. {self.prepared}"
        )

    def _about_map(self) -> str:
        text = (
            f"Around each voxel, Gaussian Naive Bayes is trained on {self.neighbourhood} in all runs but one and tested on "
            f"that run. The share of correct volumes, averaged over the runs, is the voxel's value; chance is "
            f"{self.map.chance:.3g}."
        )
        test = self.map.test
        if test is None:
            return f"{text} Without permutations there are no p-values: ask for --permutations 1000."
        return (
            f"{text} {test.permutations:,} permutations of the labels of {test.exchange} within runs give p-values; the best "
            f"voxel of a permuted map exceeds {test.threshold():.3f} in 5 % of them. {_significant(test, 'fwe')} voxels are "
            f"significant at 5 % corrected for all voxels, {_significant(test, 'fdr')} at a false discovery rate of 5 %."
        )

    def _about_model(self) -> str:
        made = self.classification
        names = dict.fromkeys(made.chosen)
        text = ", ".join(f"{name} ({made.chosen.count(name)} runs)" for name in names)
        how = " chosen inside the training runs" if made.inner_accuracy else ""
        lda = " lda is a joint Gaussian whose covariance all classes share, shrunk by the number." if "lda" in text else ""
        return f"Each run is classified by a model of all other runs{how}: {text}.{lda}"

    def _cards(self) -> str:
        made, found = self.classification, self.map
        best = self.dataset.coordinates[int(np.argmax(found.accuracy))].tolist()
        cards = [
            ("accuracy, all voxels", f"{made.accuracy:.3f}", f"chance {found.chance:.3g}"),
            ("best neighbourhood", f"{found.accuracy.max():.3f}", f"around voxel {tuple(best)}"),
        ]
        if found.test is not None:
            inside = found.significant()
            text = f"{inside.sum()} of {len(inside)}, p < 0.05 corrected"
            cards.append(("significant voxels", f"{100 * inside.mean():.1f} %", text))
        body = "".join(f"<div><dt>{_text(a)}</dt><dd>{_text(b)}<small>{_text(c)}</small></dd></div>" for a, b, c in cards)
        return f"<dl>{body}</dl>"

    def _confusion(self) -> str:
        made = self.classification.evaluation
        shares = made.confusion / np.maximum(made.confusion.sum(1, keepdims=True), 1.0)
        rows = [[_Cell(f"{100 * share:.0f} %", min(int(share * 5 + 0.5), 4)) for share in line] for line in shares]
        names = [str(label) for label in made.classes]
        return _table("Rows: the true class; columns: the predicted one", ["", *names], names, rows)

    def _runs(self) -> str:
        made = self.classification
        rows = [[_Cell(f"{a:.3f}"), _Cell(name)] for a, name in zip(made.run_accuracy, made.chosen, strict=True)]
        return _table("Each run, by a model of the others", ["run", "accuracy", "model"], list(map(str, made.runs)), rows)


@dataclass(frozen=True)
class _Cell:
    text: str
    shade: int = 0


def _significant(test: PermutationTest, correction: str) -> int:
    """How many voxels are significant at 5 %."""
    return int(test.significant(0.05, correction).sum())


def _table(title: str, heads: Sequence[str], names: Sequence[str], rows: Sequence[Sequence[_Cell]]) -> str:
    head = "".join(f'<th scope="col">{_text(text)}</th>' for text in heads)
    body = ""
    for name, row in zip(names, rows, strict=True):
        cells = "".join(f'<td class="h{c.shade}">{_text(c.text)}</td>' if c.shade else f"<td>{_text(c.text)}</td>" for c in row)
        body += f'<tr><th scope="row">{_text(name)}</th>{cells}</tr>\n'
    label = f'tabindex="0" role="region" aria-label="{_text(title)}"'
    return (
        f'<div class="scroll" {label}><table><caption>{_text(title)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{body}</tbody></table></div>"
    )


def _figure(drawn: str) -> str:
    return f"<figure>{drawn}</figure>"


@cache
def _css() -> str:
    return files("likely.brain").joinpath("page.css").read_text(encoding="utf-8")


def _text(text: str) -> str:
    return html.escape(printable(text))
