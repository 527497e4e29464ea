"""Hidden Markov models on the command line: what the estimator says, by the names of columns and sequences."""

import json

import numpy as np
import pytest

import caviar as cv
from caviar.data import read_table, write_table

PATH = np.arange(60) // 10 % 2
X = np.random.default_rng(0).normal(4.0 * PATH, 1.0)
LENGTHS = [30, 30]


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Return a table with two subjects, numbers and words."""
    path = tmp_path_factory.mktemp("tables") / "days.csv"
    words = np.array(["dry", "wet"])[PATH]
    write_table(path, {"subject": np.repeat(["ann", "bob"], 30), "x": X, "weather": words})
    return path


@pytest.fixture(scope="module")
def model(run, days):
    path = days.parent / "m.caviar"
    arguments = ("--model", "hmm", "--columns", "x", "--sequence", "subject", "--stickiness", 2, "--seed", 0)
    result = run("fit", days, *arguments, "-o", path, "--json", "-q")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["sequences"] == 2
    assert "--model hmm --sequence subject --stickiness 2.0 --seed 0" in told["command"]
    return path


@pytest.mark.slow
def test_the_fit_is_that_of_the_estimator(model):
    mine = cv.HiddenMarkovModel(2, stickiness=2.0, random_state=0).fit(X[:, None], lengths=LENGTHS)
    loaded = cv.load(model)
    assert loaded.elbo_ == pytest.approx(mine.elbo_, abs=1e-9)
    np.testing.assert_allclose(loaded.transition_, mine.transition_)


def test_predictions_are_paths_and_probabilities_by_sequence(run, model, days, tmp_path):
    assert run("predict", model, days, "-o", tmp_path / "out.csv").exit_code == 0
    written, hmm = read_table(tmp_path / "out.csv"), cv.load(model)
    rows = pytest.importorskip("pandas").DataFrame({"x": X})
    expected = [
        hmm.predict(rows, LENGTHS),
        hmm.predict_proba(rows, LENGTHS),
        hmm.score_samples(rows, LENGTHS),
    ]
    assert written.columns == ("state", "probability_0", "probability_1", "log_density")
    np.testing.assert_allclose(written.values, np.column_stack(expected))


def test_steps_ahead(run, model, days, tmp_path):
    assert run("predict", model, days, "--ahead", 3, "-o", tmp_path / "out.csv").exit_code == 0
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0].replace('"', "").split(",")[:4] == ["sequence", "step", "probability_0", "probability_1"]
    assert [line.replace('"', "").split(",")[:2] for line in lines[3:5]] == [["ann", "3"], ["bob", "1"]]
    found = cv.load(model).forecast(pytest.importorskip("pandas").DataFrame({"x": X}), 3, LENGTHS)
    sql = f"SELECT x_mean, x_sd, x_lower FROM '{tmp_path / 'out.csv'}'"
    written = read_table(sql=sql).values
    np.testing.assert_allclose(written, np.column_stack([found.mean, found.sd, found.interval()[0]]))


def test_show_and_sample(run, model):
    shown = run("show", model).stdout
    assert "hidden Markov model of Gaussian rows, 2 states, 60 rows in 2 sequences" in shown
    assert "steps it lasts" in shown
    told = json.loads(run("show", model, "--json").stdout)
    np.testing.assert_allclose(told["transition"], cv.load(model).transition_)
    drawn = run("sample", model, "-n", 3, "--seed", 1, "--with-component").stdout.splitlines()
    assert drawn[0].replace('"', "") == "x,state"
    assert len(drawn) == 4


@pytest.mark.usefixtures("figures_of_factors")
def test_a_column_of_words(run, days, tmp_path):
    arguments = (
        "--model",
        "hmm",
        "--emission",
        "categorical",
        "--columns",
        "weather",
        "--sequence",
        "subject",
    )
    assert run("fit", days, *arguments, "-o", tmp_path / "w.caviar", "--seed", 0, "-q").exit_code == 0
    hmm = cv.load(tmp_path / "w.caviar")
    assert hmm.categories_ == ("dry", "wet")
    result = run("predict", tmp_path / "w.caviar", days, "--ahead", 1, "-o", "-")
    assert result.stdout.splitlines()[0].endswith(
        '"weather","weather_probability_dry","weather_probability_wet"'
    )


@pytest.mark.slow
def test_a_report(run, model, tmp_path):
    result = run("report", model, "-o", tmp_path / "r.html", "--json")
    assert result.exit_code == 0


@pytest.mark.slow
def test_a_report_on_rows(run, model, days, tmp_path):
    assert run("report", model, days, "-o", tmp_path / "r.html", "--draws", 100).exit_code == 0
    page = (tmp_path / "r.html").read_text()
    assert "Hidden Markov model" in page
    assert "Pareto k of 100 draws" in page
    # what is advised can be typed
    assert "--restarts 10" in page
    for python in ("theta", "posterior.diagnose", "n_init", "n_draws"):
        assert python not in page


def test_draws_of_a_report_without_data_are_refused(run, model):
    result = run("report", model, "--draws", 200)
    assert result.exit_code == 2
    assert (
        "--draws compares a fit with the exact posterior given its data; give the data, too" in result.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sequence", "subjet"), "--sequence: there is no column 'subjet'"),
        (("--emission", "categorical"), "takes one column"),
        (("--variance", "1"), "--variance belongs to --model known-variance"),
    ],
)
def test_what_is_refused(run, days, arguments, message):
    result = run("fit", days, "--model", "hmm", *arguments, "-q")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_rows_of_a_sequence_that_do_not_follow_each_other_are_refused(run, days):
    query = "SELECT * FROM data ORDER BY x"
    result = run(
        "fit", days, "--sql", query, "--model", "hmm", "--columns", "x", "--sequence", "subject", "-q"
    )
    assert result.exit_code == 2
    assert "must follow each other; sort them" in result.stderr


@pytest.mark.usefixtures("figures_of_factors")
def test_other_models_have_no_steps_ahead(run, days, tmp_path):
    run("fit", days, "--columns", "x", "-o", tmp_path / "m.caviar", "-q")
    result = run("predict", tmp_path / "m.caviar", days, "--ahead", 2, "-o", "-")
    assert result.exit_code == 2
    assert "--ahead belongs to hidden Markov models" in result.stderr
    result = run("fit", days, "--columns", "x", "--sequence", "subject", "-q")
    assert result.exit_code == 2
    assert "--sequence belongs to --model hmm" in " ".join(result.stderr.replace("│", " ").split())


def test_a_column_that_counts_the_steps_is_remarked_before_the_fit(run, days, tmp_path):
    steps = np.tile(np.arange(30), 2)
    write_table(tmp_path / "days.csv", {"subject": np.repeat(["ann", "bob"], 30), "day": steps, "x": X})
    found = run("fit", tmp_path / "days.csv", "--model", "hmm", "--sequence", "subject", "--seed", 0, "-q")
    assert found.exit_code == 0
    assert "warning: column day seems to number the rows" in found.stderr
    assert "column x seems" not in found.stderr
