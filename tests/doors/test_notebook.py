"""The notebook of the documentation runs from top to bottom, and its results are shown as tables and pictures."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_notebook_runs_and_shows_tables_and_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not here: the notebook is not run")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not here: the notebook is not run")
    pytest.importorskip("ipykernel", reason="ipykernel is not here: the notebook is not run")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    folder = tmp_path / "docs"
    folder.mkdir()
    shutil.copytree(ROOT / "src" / "likely" / "data", tmp_path / "src" / "likely" / "data")
    book = nbformat.read(ROOT / "docs" / "tour.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in book.cells), "clear the outputs before committing"
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    shown = [output for cell in book.cells for output in cell.get("outputs", []) if output["output_type"] == "execute_result"]
    kinds = [kind for output in shown for kind in output["data"]]
    assert kinds.count("image/svg+xml") >= 3
    assert kinds.count("text/html") >= 5
    for output in shown:
        assert len("".join(output["data"].get("text/html", ""))) < 30_000
    assert (folder / "loans.html").stat().st_size > 50_000
