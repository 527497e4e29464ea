"""Every kind of model is drawn by --picture."""

import numpy as np
import pytest

import caviar as cv
from caviar.cli.pictures import draw_profiles, draw_variables
from caviar.data import write_table
from caviar.estimators.mixtures.components import told_by

RNG = np.random.default_rng(0)
STATED = """
import caviar as cv

def build():
    obs, kind = cv.Plate("obs"), cv.Plate("kind")
    level = cv.Normal("level", 0, 0.1, plates=kind)
    noise = cv.Gamma("precision", 1, 1)
    return cv.Model(cv.Normal("size", level[cv.Data("kind", plates=obs)], noise, plates=obs))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table for each kind of model."""
    folder = tmp_path_factory.mktemp("tables")
    write_table(folder / "days.csv", {"x": np.r_[RNG.normal(0, 1, 30), RNG.normal(6, 1, 30)]})
    write_table(
        folder / "mixed.csv",
        {
            "noise": RNG.normal(size=60),
            "size": np.r_[RNG.normal(0, 1, 30), RNG.normal(9, 1, 30)],
            "kind": ["a"] * 30 + ["b"] * 30,
            "side": ["left", "right"] * 30,
        },
    )
    (folder / "stated.py").write_text(STATED, encoding="utf-8")
    write_table(folder / "counts.csv", {"goal": [5, 4, 0, 0], "law": [0, 0, 4, 6], "vote": [0, 1, 3, 3]})
    return folder


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(6)
@pytest.mark.parametrize(
    "arguments",
    [
        ("days.csv", "--model", "hmm"),
        ("mixed.csv", "--non-numeric", "categorical"),
        ("counts.csv", "--model", "topics", "-k", 2),
        ("mixed.csv", "--model", "hmm", "--emission", "categorical", "--columns", "kind"),
        ("days.csv", "--model", "em"),
        ("mixed.csv", "--formula", "size ~ noise + (noise | kind)"),
        ("mixed.csv", "--formula", "size ~ noise"),
        ("mixed.csv", "--model", "stated.py:build"),
    ],
    ids=lambda arguments: arguments[-1],
)
def test_every_kind_of_model_has_a_picture(run, folder, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(folder)
    path = tmp_path / "m.png"
    result = run("fit", *arguments, "--seed", 0, "-q", "--picture", path)
    assert result.exit_code == 0
    assert f"plot in {path}" in result.stdout
    pixels = pytest.importorskip("matplotlib.image").imread(path)
    assert min(pixels.shape[:2]) > 150
    # something is drawn in colour
    colours = pixels[..., :3].reshape(-1, 3)
    assert (np.ptp(colours, axis=1) > 0.2).sum() > 200


def test_columns_that_tell_the_component_come_first(folder, tmp_path):
    columns = cv.data.read_columns(folder / "mixed.csv")
    mixture = cv.MixedMixture(2, random_state=0).fit(columns)
    components = cv.report.component_table(mixture)
    told = {name: told_by(components, place) for place, name in enumerate(columns.column_names)}
    assert set(sorted(told, key=lambda name: told[name])[-2:]) == {"kind", "size"}
    draw_profiles(mixture, tmp_path / "m.png")
    assert (tmp_path / "m.png").stat().st_size > 5_000


def test_variables_with_too_many_entries_for_a_plot_are_left_out(tmp_path):
    plate = cv.Plate("plate", 61)
    many, one = cv.Normal("many", 0, 1, plates=plate), cv.Normal("one", 0, 1)
    wide = cv.Model(cv.Normal("x", many, 1, plates=plate)).fit({"x": np.zeros(61)})
    both = cv.Model(cv.Normal("x", many, 1, plates=plate), cv.Normal("y", one, 1))
    draw_variables(both.fit({"x": np.zeros(61), "y": 1.0}), tmp_path / "m.png")
    assert (tmp_path / "m.png").stat().st_size > 3_000
    with pytest.raises(cv.DataError, match="up to 60 entries"):
        draw_variables(wide, tmp_path / "n.png")
    assert not (tmp_path / "n.png").exists()
