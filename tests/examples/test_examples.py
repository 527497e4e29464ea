"""The scripts of examples/ run as they stand, print a table and draw their picture; a table of one's own is read."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

plt = pytest.importorskip("matplotlib.pyplot")
pytest.importorskip("arviz")

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


def run(script: Path, monkeypatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
    plt.switch_backend("Agg")
    with plt.rc_context():
        runpy.run_path(str(script), run_name="__main__")
    plt.close("all")


@pytest.mark.slow
@pytest.mark.filterwarnings("default::UserWarning:arviz")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_prints_a_table_and_draws_a_picture(script, monkeypatch, tmp_path, capsys):
    run(script, monkeypatch, "--small", "--pictures", tmp_path)
    assert len(capsys.readouterr().out.splitlines()) >= 5
    (picture,) = tmp_path.iterdir()
    assert picture.name == f"{script.stem}.png"
    assert plt.imread(picture).std() > 0.05, "an empty picture"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_has_its_picture_and_stands_in_the_list(script):
    assert (EXAMPLES / "pictures" / f"{script.stem}.png").stat().st_size > 5_000
    assert f"({script.name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_cells_are_read_from_a_table(monkeypatch, tmp_path, capsys):
    pytest.importorskip("duckdb")
    rng = np.random.default_rng(0)
    cells = 150 * np.sinh(rng.normal([4, 3], 0.2, (400, 2)) + np.where(rng.random((400, 1)) < 0.3, 3, 0))
    np.savetxt(tmp_path / "cells.csv", cells, delimiter=",", header="FSC,CD4", comments="")
    script = EXAMPLES / "flow_cytometry.py"
    run(script, monkeypatch, "--data", tmp_path / "cells.csv", "--columns", "FSC,CD4", "--pictures", tmp_path)
    printed = capsys.readouterr().out
    assert printed.startswith("2 populations")
    assert "FSC" in printed
    assert "CD4" in printed
