"""Tables and texts that ship with installed libraries, for tests on real data where the published sets are not there.

scikit-learn brings iris, wine, breast cancer, digits and diabetes; two of them are written with words for numbers, so that
categories, numbers and gaps stand beside each other. Texts are the docstrings of scikit-learn and NumPy.
"""

import ast
import functools
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets

PUBLISHED = Path(__file__).resolve().parents[2] / "shared" / "data"


def _numbers(load):
    bunch = load(as_frame=True)
    frame = bunch.data.rename(columns=lambda name: name.replace(" ", "_"))
    return frame.assign(label=[str(bunch.target_names[i]) for i in bunch.target])


def _words(values, names):
    cuts = np.quantile(values, np.arange(1, len(names)) / len(names))
    return np.array(names)[np.searchsorted(cuts, values)]


def digits():
    """Every second row of pixels in words, 32 categories."""
    bunch = datasets.load_digits(as_frame=True)
    kept = [name for i, name in enumerate(bunch.data.columns) if i // 8 % 2]
    pixels = {name: np.array(["white", "grey", "black"])[np.digitize(bunch.data[name], [4, 12])] for name in kept}
    return pd.DataFrame(pixels).assign(label=bunch.target.astype(str))


def tumours():
    """Ten means as numbers and ten errors in words, with gaps in both."""
    frame = _numbers(datasets.load_breast_cancer)
    words = {name: _words(frame[name], ["low", "middle", "high"]) for name in frame.columns[10:20]}
    mixed = frame.iloc[:, :10].assign(**words, label=frame["label"])
    rng = np.random.default_rng(0)
    for name in (*frame.columns[:3], *frame.columns[10:13]):
        mixed.loc[rng.random(len(mixed)) < 0.05, name] = None
    return mixed


def diabetes():
    """Four measurements as numbers, four in words, and how far the disease went in two classes."""
    bunch = datasets.load_diabetes(as_frame=True, scaled=False)
    frame = bunch.data[["age", "bmi", "bp", "s1"]]
    words = {name: _words(bunch.data[name], ["low", "high"]) for name in ("s2", "s3", "s5", "s6")}
    far = np.where(bunch.target > bunch.target.median(), "far", "near")
    return frame.assign(sex=bunch.data["sex"].map({1: "f", 2: "m"}), **words, label=far)


TABLES = {
    "iris.csv": functools.partial(_numbers, datasets.load_iris),
    "wine.csv": functools.partial(_numbers, datasets.load_wine),
    "breast_cancer.parquet": functools.partial(_numbers, datasets.load_breast_cancer),
    "digits_in_words.parquet": digits,
    "tumours_in_words.parquet": tumours,
    "diabetes_in_words.parquet": diabetes,
}


def write(folder):
    """The tables as files, and what an index says of each."""
    index = {}
    for name, make in TABLES.items():
        frame, path = make(), folder / name
        frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path, index=False)
        about = {"rows": len(frame), "n_classes": frame["label"].nunique()}
        index[name] = about | {"kind": "table", "target": "label", "ignore": "", "split_column": ""}
    return index


@functools.cache
def docstrings():
    """Docstrings of scikit-learn and NumPy, each under the name of the package it stands in."""
    import sklearn

    found = []
    for package in (sklearn, np):
        root = Path(package.__file__).parent
        for path in sorted(root.rglob("*.py")):
            if "tests" in path.parts:
                continue
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            reported = (ast.get_docstring(n) for n in nodes if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef))
            label = f"{package.__name__}.{path.relative_to(root).parts[0].removesuffix('.py')}"
            found.extend((text, label) for text in reported if text)
    return found
