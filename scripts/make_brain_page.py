"""Write docs/brain.md: the experiment on brain images, every figure measured by this run, and its pictures.

    python scripts/make_brain_page.py [FOLDER]

FOLDER holds haxby2001_bold.nii.gz, haxby2001_attributes.txt and haxby2001_mask.nii.gz; without it they are looked for
beside the repository, in ../shared/data. Needs nibabel and scikit-learn.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from likely import brain
from likely.brain._figures import accuracy_mosaic, evidence_mosaic, mean_mosaic
from likely.plots import mosaic

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
PERMUTATIONS = 1000
PAIR, TOOLS = ("face", "house"), ("scissors", "house")


def loaded(folder: Path) -> brain.Dataset:
    """The slice, detrended and standardised by rest within each run, without rest."""
    names = [folder / f"haxby2001_{name}" for name in ("bold.nii.gz", "attributes.txt", "mask.nii.gz")]
    return brain.load(names[0], names[1], mask=names[2], detrend=True, standardize="rest").without("rest")


def models(data: brain.Dataset) -> list[str]:
    """One line per model: accuracy with 8 classes and with two pairs."""
    ours: list[tuple[str, dict[str, Any]]] = [
        ("Gaussian Naive Bayes", {}),
        ("… variance shared by the classes", {"tie": "class"}),
        ("… variance shared by the voxels", {"tie": "column"}),
        ("… one variance", {"tie": "both"}),
        ("… tying chosen inside the training runs", {"tie": "auto"}),
        ("joint Gaussian (LDA), shrinkage by Ledoit and Wolf", {"model": "lda", "shrinkage": "ledoit-wolf"}),
        ("**all of these and LDA, chosen inside the training runs**", {"model": "auto"}),
    ]
    lines = ["| model | 8 classes | face / house | scissors / house |", "|:---|---:|---:|---:|"]
    for name, settings in ours:
        found = [brain.classify(data, classes=classes, **settings) for classes in (None, PAIR, TOOLS)]
        cells = " | ".join(f"{each.accuracy:.3f}" for each in found)
        lines.append(f"| {name} | {cells} |")
        print(lines[-1], flush=True)
        if settings.get("model") == "auto":
            counted = {model: found[0].chosen.count(model) for model in dict.fromkeys(found[0].chosen)}
            chosen = ", ".join(f"`{model}` in {count} runs" for model, count in counted.items())
    lines += [f"| scikit-learn `{name}` | {cells} |" for name, cells in _sklearn(data)]
    lines.append("| chance | 0.125 | 0.500 | 0.500 |")
    return [*lines, "", f"With 8 classes the last model of Likely chose {chosen}."]


def _sklearn(data: brain.Dataset) -> list[tuple[str, str]]:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
    from sklearn.naive_bayes import GaussianNB

    found = []
    for name, model in (
        ("GaussianNB", GaussianNB(var_smoothing=0)),
        ("LinearDiscriminantAnalysis(shrinkage='auto')", LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
    ):
        cells = []
        for classes in (None, PAIR, TOOLS):
            part = data if classes is None else data.select(classes)
            scores = cross_val_score(model, part.X, part.y, groups=part.runs, cv=LeaveOneGroupOut())
            cells.append(f"{scores.mean():.3f}")
        found.append((name, " | ".join(cells)))
        print(found[-1], flush=True)
    return found


def searchlights(data: brain.Dataset) -> list[str]:
    """One line per searchlight map, and their pictures."""
    lines = [
        "| classes | chance | mean | best cube | significant above | share of voxels, corrected | … by false discovery rate |",
        "|:---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, classes, picture in (("8 classes", None, "all"), ("face / house", PAIR, "pair")):
        found = brain.searchlight(data, classes=classes, permutations=PERMUTATIONS)
        assert found.test is not None
        shares = [f"{100 * found.significant(0.05, how).mean():.1f} %" for how in ("fwe", "fdr")]
        cells = [found.chance, found.accuracy.mean(), found.accuracy.max(), found.test.threshold()]
        lines.append(f"| {name} | {' | '.join(f'{cell:.3f}' for cell in cells)} | {' | '.join(shares)} |")
        print(lines[-1], flush=True)
        _draw(f"brain_searchlight_{picture}", accuracy_mosaic(data, found))
    return lines


def _draw(name: str, drawn: mosaic.Mosaic) -> None:
    (ROOT / "docs" / f"{name}.svg").write_text(mosaic.svg(drawn), encoding="utf-8")


def main() -> None:
    """Measure, draw and write."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED
    data = loaded(folder)
    measured = {"models": "\n".join(models(data)), "searchlights": "\n".join(searchlights(data))}
    _draw("brain_means", mean_mosaic(data, brain.mean_maps(data), "standard deviations of rest"))
    _draw("brain_evidence", evidence_mosaic(data, brain.evidence_maps(data)))
    volumes, voxels, runs = len(data.y), len(data.coordinates), len(np.unique(data.runs))
    text = (ROOT / "scripts" / "brain_page.md").read_text(encoding="utf-8")
    facts = {"volumes": volumes, "voxels": voxels, "runs": runs, "permutations": f"{PERMUTATIONS:,}"}
    for name, value in (measured | facts).items():
        text = text.replace(f"[[{name}]]", str(value))
    (ROOT / "docs" / "brain.md").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
