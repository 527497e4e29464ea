"""Every command tells its result as one JSON document with --json, whatever the kind of model."""

import json

import numpy as np
import pytest

from caviar.cli.app import app
from caviar.data import write_table

RNG = np.random.default_rng(0)
STATED = """
import caviar as cv

def build():
    obs, kind = cv.Plate("obs"), cv.Plate("kind")
    level = cv.Normal("level", 0, 0.1, plates=kind)
    return cv.Model(cv.Normal("x", level[cv.Data("kind", plates=obs)], 1.0, plates=obs))
"""
FITS = {
    "mixture": ("rows.csv", "--columns", "x", "-k", 2),
    "mixed mixture": ("rows.csv", "--columns", "x,kind", "--non-numeric", "categorical", "-k", 2),
    "hmm": ("rows.csv", "--columns", "x", "--model", "hmm", "-k", 2),
    "topics": ("counts.csv", "--model", "topics", "-k", 2),
    "mixed": ("rows.csv", "--formula", "x ~ z + (1 | kind)"),
    "stated": ("rows.csv", "--columns", "x,kind", "--model", "stated.py:build"),
}
DEMO = "demo"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stated.py").write_text(STATED, encoding="utf-8")
    x = np.r_[RNG.normal(0, 1, 20), RNG.normal(6, 1, 20)]
    write_table(tmp_path / "rows.csv", {"x": x, "z": RNG.normal(size=40), "kind": ["a", "b"] * 20})
    write_table(tmp_path / "new.csv", {"z": [0.0, 1.0], "kind": ["a", "b"]})
    write_table(tmp_path / "counts.csv", {"goal": [5, 4, 0, 0], "law": [0, 0, 4, 6], "vote": [0, 1, 3, 3]})
    return tmp_path


def told(run, *arguments):
    """Return the document that a command prints; nothing else is on its standard output."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert isinstance(document, dict)
    assert document
    return document


@pytest.mark.thinned(6)
@pytest.mark.parametrize("kind", [pytest.param("mixture", marks=pytest.mark.slow), *list(FITS)[1:]])
def test_every_command_tells_its_result_as_json(run, folder, kind):
    table = FITS[kind][0]
    new = "new.csv" if kind in ("mixed", "stated") else table
    done = {"fit": told(run, "fit", *FITS[kind], "--seed", 0, "-o", "m.caviar")}
    done["show"] = told(run, "show", "m.caviar")
    done["report"] = told(run, "report", "m.caviar", "-o", "r.html")
    done["predict"] = told(run, "predict", "m.caviar", new, "-o", "p.csv")
    known = (new,) if new != table else ("-n", 5)
    done["sample"] = told(run, "sample", "m.caviar", *known, "-o", "s.csv", "--seed", 0)
    if kind == "mixture":
        done["compare"] = told(run, "compare", table, "--model", "m.caviar", "--model", "m.caviar")
        done["check"] = told(run, "check", "m.caviar", table, "--rows", 20)  # others: test_checks.py
    assert done["fit"]["elbo"] == pytest.approx(done["show"]["elbo"])
    assert {"verdict", "report"} <= set(done["report"])
    everywhere = {command.callback.__name__ for command in app.registered_commands} - {DEMO}
    assert set(done) == everywhere if kind == "mixture" else set(done) < everywhere


@pytest.mark.slow
def test_the_demo_tells_its_files_as_json(run, folder):
    document = told(run, DEMO, "--output-dir", folder / "out")
    assert {"picture", "model", "data"} <= set(document)
