"""Large files are read in blocks by ``caviar fit``; nothing else of the command is different."""

import json

import numpy as np
import pytest

import caviar as cv
import caviar.cli.tables.rows
from caviar.data import write_table


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3_000, 2)) + 6 * rng.integers(0, 2, (3_000, 1))
    path = tmp_path / "x.parquet"
    write_table(path, {"a": X[:, 0], "b": X[:, 1]})
    return path


def fitted(run, path, *options):
    result = run("fit", path, "--seed", 0, "--json", "-q", *options)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def about(model):
    return cv.load(model).about_


@pytest.mark.usefixtures("figures_of_factors")
def test_the_same_fit(run, table, tmp_path, monkeypatch):
    expected = fitted(run, table, "-o", tmp_path / "small.caviar")
    scanned = []
    monkeypatch.setattr(caviar.cli.tables.rows, "LARGE", 1)
    monkeypatch.setattr(cv, "scan", lambda *a, _scan=cv.scan, **k: scanned.append(a) or _scan(*a, **k))
    found = fitted(run, table, "-o", tmp_path / "large.caviar", "--picture", tmp_path / "x.png")
    assert len(scanned) == 1
    assert found["elbo_trace"] == expected["elbo_trace"]
    ours, theirs = about(tmp_path / "large.caviar"), about(tmp_path / "small.caviar")
    for name, own in theirs.pop("column_summary").items():
        for figure, value in own.items():
            assert ours["column_summary"][name][figure] == pytest.approx(value, rel=1e-12)
    del ours["column_summary"]
    assert ours == theirs
    assert (tmp_path / "x.png").stat().st_size > 1_000


@pytest.mark.slow
def test_what_needs_all_rows_has_them(run, table, tmp_path, monkeypatch):
    monkeypatch.setattr(caviar.cli.tables.rows, "LARGE", 1)
    fitted(run, table, "-k", "auto")
    gaps = {"a": np.r_[np.nan, np.arange(30.0)], "b": np.arange(31.0)}
    write_table(tmp_path / "gaps.parquet", gaps)
    fitted(run, tmp_path / "gaps.parquet", "-o", tmp_path / "gaps.caviar")
    assert about(tmp_path / "gaps.caviar")["missing_entries"] == 1
