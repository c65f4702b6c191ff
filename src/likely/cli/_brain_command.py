"""The command brain: classification and searchlight maps of fMRI images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likely.cli import _options as options
from likely.cli._options import FILE, json_option
from likely.cli._terminal import Terminal
from likely.errors import UsageError

if TYPE_CHECKING:
    from likely.brain import BrainReport, Dataset

TIES = {"none": None, "class": "class", "column": "column", "both": "both"}


@click.command(short_help="Searchlight accuracy maps of brain images.")
@click.argument("data", type=FILE)
@click.option("--labels", type=FILE, required=True, metavar="FILE", help="Text file: label and run of each volume.")
@click.option("--mask", type=FILE, metavar="FILE", help="3-D mask image: voxels that are not 0 are used.")
@click.option("-o", "--output", type=FILE, required=True, metavar="FOLDER", help="Folder for maps, pictures and report.")
@click.option("--classes", metavar="A,B", help="Use only these labels.")
@click.option("--rest", default="rest", show_default=True, metavar="LABEL", help="Label of rest volumes (not classified).")
@click.option("--detrend/--no-detrend", default=True, show_default=True, help="Subtract a linear trend within each run.")
@click.option(
    "--standardize",
    type=click.Choice(["auto", "rest", "run", "none"]),
    default="auto",
    show_default=True,
    help="Standardise each voxel within each run, by its rest volumes or by all; auto: by rest if every run has some.",
)
@click.option("--radius", type=click.IntRange(min=0), default=1, show_default=True, help="Radius of the cubes in voxels.")
@click.option("--sphere", type=click.FloatRange(min=0, min_open=True), metavar="MM", help="Radius of spheres instead of cubes.")
@click.option(
    "--model",
    type=click.Choice(["auto", "gaussian", "lda"]),
    default="auto",
    show_default=True,
    help="Classifier of all voxels: Gaussian naive Bayes, LDA, or the best of both on the training runs.",
)
@click.option(
    "--tie",
    type=click.Choice(list(TIES)),
    default="none",
    show_default=True,
    help="Tying of variances in naive Bayes: none, across classes, across voxels, or both.",
)
@click.option(
    "--permutations",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    metavar="N",
    help="Number of permutations of labels within runs, for p-values; 0: none.",
)
@click.option(
    "--exchange",
    type=click.Choice(["blocks", "volumes"]),
    default="blocks",
    show_default=True,
    help="Unit that keeps its label in a permutation.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the permutations.")
@json_option
@click.pass_obj
def brain(terminal: Terminal, /, data: str, labels: str, mask: str | None, output: str, **given: Any) -> None:
    """Classify the volumes of a 4-D image by leave-one-run-out, and map the accuracy around every voxel (searchlight).

    DATA is a NIfTI image. Writes into FOLDER: the accuracy, p-value, mean and evidence maps as NIfTI images, pictures of
    their slices, summary.json, and report.html with all of it. Needs nibabel: pip install 'likely[brain]'.
    """
    from likely.brain import save

    _check_folder(output)
    dataset, prepared, unit = _loaded(data, labels, mask, given)
    found = _report(terminal, dataset, name=Path(data).name, prepared=prepared, unit=unit, given=given)
    names = save(found, output)
    document = found.to_dict() | {"data": data, "output": output, "files": names}
    terminal.result(document, lambda: _show(terminal, found, output, names))


def _check_folder(output: str) -> None:
    path = Path(output)
    if path.exists() and not path.is_dir():
        raise UsageError(f"-o {output!r} is a file: name a folder")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"-o {output!r}: there is no folder {str(path.parent)!r}")


def _loaded(data: str, labels: str, mask: str | None, given: dict[str, Any]) -> tuple[Dataset, str, str]:
    """The data set without rest volumes, a description of the preprocessing, and the unit of the values."""
    from likely.brain import load, read_labels

    y, runs = read_labels(labels)
    rest, how = given["rest"], given["standardize"]
    if how == "auto":
        how = "rest" if all((y[runs == run] == rest).sum() > 1 for run in set(runs.tolist())) else "run"
    wanted = None if how == "none" else how
    full = load(data, y, runs=runs, mask=mask, detrend=given["detrend"], standardize=wanted, rest=rest)
    trend = "a line in time was subtracted" if given["detrend"] else ""
    by = {"rest": f"voxels were standardised by {rest!r} volumes", "run": "voxels were standardised", "none": ""}[how]
    done = " and ".join(part for part in (trend, by) if part)
    unit = {"rest": "standard deviations of rest", "run": "standard deviations", "none": "units of the image"}[how]
    return full.without(rest), f"Within each run {done}." if done else "Values are those of the image.", unit


def _report(terminal: Terminal, dataset: Dataset, *, name: str, prepared: str, unit: str, given: dict[str, Any]) -> BrainReport:
    from likely.brain import report

    classes = options.names(given["classes"]) if given["classes"] else None
    settings = {key: given[key] for key in ("model", "radius", "sphere", "permutations", "exchange", "seed")}
    with terminal.progress("runs and permutations", "done") as progress:
        named: dict[str, Any] = {"title": name, "prepared": prepared, "unit": unit}
        return report(dataset, **named, classes=classes, tie=TIES[given["tie"]], progress=progress, **settings)


def _show(terminal: Terminal, found: BrainReport, output: str, names: list[str]) -> None:
    made, light = found.classification, found.map
    terminal.line(f"{light.volumes:,} volumes, {len(light.runs)} runs, {len(light):,} voxels; {found.prepared}")
    terminal.line()
    terminal.table(["class", "volumes", "recall", "precision"], [
        [row["class"], row["rows"], row["recall"], row["precision"]] for row in made.evaluation.per_class
    ])  # fmt: skip
    terminal.line()
    models = ", ".join(f"{name} ({made.chosen.count(name)} runs)" for name in dict.fromkeys(made.chosen))
    terminal.line(f"All voxels: accuracy {made.accuracy:.4f}, chance {light.chance:.4f}; {models}")
    best = found.to_dict()["searchlight"]["best_place"]
    most, mean = light.accuracy.max(), light.accuracy.mean()
    terminal.line(f"Searchlight, {found.neighbourhood}: best {most:.4f} at {tuple(best)}, mean {mean:.4f}")
    if light.test is not None:
        inside = light.significant()
        terminal.line(
            f"{inside.sum()} of {len(inside)} voxels ({100 * inside.mean():.1f} %) have p < 0.05 corrected for all voxels: "
            f"accuracy above {light.test.threshold():.4f}, {light.test.permutations:,} permutations of {light.test.exchange}"
        )
    terminal.line()
    terminal.line(f"{len(names)} files written to {output}: see {Path(output) / 'report.html'}")
