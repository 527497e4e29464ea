"""Models that were fitted on the command line, loaded in Python: they know the names of their columns."""

import warnings

import numpy as np
import pandas as pd
import pytest

import caviar as cv

pytestmark = pytest.mark.usefixtures("figures_of_factors")

FAITHFUL = cv.datasets.load_faithful().to_frame()
PENGUINS = cv.datasets.load_penguins().to_frame()[["bill_length_mm", "species", "body_mass_g"]]
KINDS = {
    "bayesian": (FAITHFUL, ["--components", "2"]),
    "em": (FAITHFUL, ["--components", "2", "--model", "em"]),
    "known-variance": (FAITHFUL[["waiting"]], ["--model", "known-variance", "--components", "2"]),
    "mixed": (PENGUINS, ["--non-numeric", "categorical", "--components", "2"]),
    "hmm": (FAITHFUL, ["--components", "2", "--model", "hmm", "--covariance", "diag"]),
    "hmm-of-words": (
        PENGUINS[["species"]],
        ["--components", "2", "--model", "hmm", "--emission", "categorical"],
    ),
}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_of_the_command_line_is_that_of_a_frame(run, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    frame, options = KINDS[kind]
    frame.to_csv("rows.csv", index=False)
    fit = run("fit", "rows.csv", *options, "--seed", "0", "--max-iter", "20", "-o", "m.caviar", "--quiet")
    assert fit.exit_code == 0, fit.stderr
    model = cv.load(tmp_path / "m.caviar")
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.n_features_in_ == len(frame.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = model.predict(frame)
    predicted = run("predict", "m.caviar", "rows.csv", "-o", "labels.csv")
    assert predicted.exit_code == 0
    assert predicted.stderr == ""
    told = pd.read_csv("labels.csv").iloc[:, 0]
    assert np.array_equal(labels, told)
    for other in (frame.iloc[:, ::-1], frame.iloc[:, 1:], frame.assign(more=1.0)):
        if other.shape[1] and list(other.columns) != list(frame.columns):
            with pytest.raises(ValueError, match=r"feature names should match|columns must be those"):
                model.predict(other)


def test_the_best_of_a_comparison_knows_its_columns(run, tmp_path, eruptions):
    found = run(
        "compare", eruptions, "--columns", "waiting,eruptions", "-k", "1,2", "-o", tmp_path / "best.caviar"
    )
    assert found.exit_code == 0, found.stderr
    assert cv.load(tmp_path / "best.caviar").feature_names_in_.tolist() == ["waiting", "eruptions"]
