"""Posteriors of stated models on the command line: reports, predictions and draws are those of the library."""

import json

import numpy as np
import pytest
import scipy.stats

import caviar as cv
from caviar.data import read_table, write_table

RNG = np.random.default_rng(0)
X = np.column_stack([np.ones(80), RNG.normal(size=80)])
Y = X @ [1.0, 2.0] + 0.5 * RNG.normal(size=80)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("stated")


@pytest.fixture(scope="module")
def regression(folder):
    """Return a file with the posterior of a regression, and its rows as CSV and as NumPy's file."""
    posterior = cv.models.linear_regression(2).fit({"X": X, "y": Y}, seed=0)
    posterior.save(folder / "regression.caviar")
    write_table(folder / "rows.csv", {"y": Y, "other": Y, "X_1": X[:, 1], "X_0": X[:, 0]})
    write_table(folder / "known.csv", {"X_0": X[:, 0], "X_1": X[:, 1]})
    np.savez(folder / "rows.npz", X=X, y=Y, more=Y)
    return posterior


@pytest.fixture(scope="module")
def hidden(folder):
    """Return the posterior of a hidden Markov model whose rows had names."""
    pandas = pytest.importorskip("pandas")
    path = np.arange(200) // 20 % 2
    rows = pandas.DataFrame(RNG.normal(4.0 * path[:, None], 1.0, (200, 2)), columns=["left", "right"])
    posterior = cv.models.gaussian_hidden_markov_model(2, 2).fit({"x": rows}, seed=0, n_restarts=2)
    posterior.save(folder / "hidden.caviar")
    rows.to_csv(folder / "hidden.csv", index=False)
    return posterior, {"x": rows.to_numpy()}


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize("name", ["rows.csv", "rows.npz"])
def test_rows_are_found_by_the_names_of_arrays(run, regression, folder, tmp_path, name):
    result = run("predict", folder / "regression.caviar", folder / name, "-o", tmp_path / "out.csv")
    assert result.exit_code == 0
    assert "the values of y were not used" in result.stderr
    written = read_table(tmp_path / "out.csv")
    expected = regression.predict({"X": X})["y"]
    assert written.columns == ("y_mean", "y_sd", "y_lower", "y_upper")
    figures = [expected.mean, expected.standard_deviation, *expected.interval()]
    np.testing.assert_allclose(written.values, np.column_stack(figures))


def test_intervals_have_the_probability_that_was_asked_for(run, regression, hidden, folder, tmp_path):
    out = tmp_path / "out.csv"
    own = run(
        *("predict", folder / "regression.caviar", folder / "known.csv"),
        "--interval",
        0.8,
        "--json",
        "-o",
        out,
    )
    told = json.loads(own.stdout)
    assert told["interval"] == 0.8
    assert told["columns"] == ["y_mean", "y_sd", "y_lower", "y_upper"]
    expected = regression.predict({"X": X})["y"].interval(0.8)
    np.testing.assert_allclose(read_table(out).values[:, 2:], expected.T)
    strange = run(
        *("predict", folder / "regression.caviar", folder / "known.csv"), "--interval", 80, "-o", out
    )
    assert strange.exit_code == 2
    assert "between 0 and 1" in strange.stderr
    # states are no numbers
    states = run("predict", folder / "hidden.caviar", folder / "hidden.csv", "--interval", 0.8, "-o", out)
    assert states.exit_code == 2
    assert "--interval belongs to predicted numbers" in states.stderr


def test_what_is_absent_is_predicted_without_a_word(run, regression, folder):
    result = run("predict", folder / "regression.caviar", folder / "known.csv", "-o", "-")
    assert (result.exit_code, result.stderr) == (0, "")
    assert len(result.stdout.splitlines()) == 81


def test_hidden_states_are_predicted_under_the_names_of_the_columns(run, hidden, folder, tmp_path):
    posterior, data = hidden
    run("predict", folder / "hidden.caviar", folder / "hidden.csv", "-o", tmp_path / "out.parquet")
    written = read_table(tmp_path / "out.parquet")
    chain = posterior.local(data)["s"]
    assert written.columns == ("s", "s_probability_0", "s_probability_1")
    np.testing.assert_array_equal(written.values[:, 0], chain.mode())
    np.testing.assert_allclose(written.values[:, 1:], chain.probabilities)


@pytest.mark.usefixtures("figures_of_factors")
def test_groups_and_hidden_numbers_are_predicted(run, tmp_path):
    rows = np.concatenate([RNG.normal(m, 1, (60, 3)) for m in (-4, 4)])
    pca = cv.models.probabilistic_pca(3, 1).fit({"x": rows}, seed=0, max_iter=50)
    pca.save(tmp_path / "pca.caviar")
    np.savez(tmp_path / "rows.npz", x=rows)
    run("predict", tmp_path / "pca.caviar", tmp_path / "rows.npz", "-o", tmp_path / "out.csv")
    z = pca.local({"x": rows})["z"]
    found = read_table(tmp_path / "out.csv").values
    sd = np.sqrt(z.covariance[:, 0, 0])
    ends = z.mean[:, 0] + sd * scipy.stats.norm.ppf([[0.025], [0.975]])
    np.testing.assert_allclose(found, np.column_stack([z.mean[:, 0], sd, *ends]))
    mixture = cv.models.gaussian_mixture(3, 2).fit({"x": rows}, seed=0)
    mixture.save(tmp_path / "mixture.caviar")
    run("predict", tmp_path / "mixture.caviar", tmp_path / "rows.npz", "-o", tmp_path / "groups.csv")
    found = read_table(tmp_path / "groups.csv")
    assert found.columns == ("z", "z_probability_0", "z_probability_1")
    np.testing.assert_allclose(found.values[:, 1:], mixture.local({"x": rows})["z"].probabilities)


def test_where_nothing_is_left_to_predict_it_is_said(run, tmp_path):
    p = cv.Beta("p", 1, 1)
    cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs"))).fit({"x": [1, 1, 0]}).save(
        tmp_path / "coin.caviar"
    )
    write_table(tmp_path / "rows.csv", {"x": np.array([0, 1])})
    result = run("predict", tmp_path / "coin.caviar", tmp_path / "rows.csv", "-o", tmp_path / "out.csv")
    assert result.exit_code == 2
    assert "there is nothing to predict: the rows have every observed variable (x)" in result.stderr
    assert not (tmp_path / "out.csv").exists()


def test_a_sample_is_that_of_the_posterior(run, regression, hidden, folder, tmp_path):
    posterior, _ = hidden
    result = run(
        "sample", folder / "hidden.caviar", "-n", 7, "--seed", 3, "-o", tmp_path / "new.csv", "--json"
    )
    assert json.loads(result.stdout) == {
        "output": str(tmp_path / "new.csv"), "rows": 7, "columns": ["left", "right"], "seed": 3,
    }  # fmt: skip
    expected = posterior.predictive({"time": 7}, seed=3)["x"][0]
    np.testing.assert_allclose(read_table(tmp_path / "new.csv").values, expected)
    # without a seed they are those of the seed of the fit, or of 0, each time
    drawn = [run("sample", folder / "hidden.caviar", "-n", 7, *own).stdout for own in ([], [], ["--seed", 0])]
    assert drawn[0] == drawn[1] == drawn[2]
    run("sample", folder / "regression.caviar", folder / "known.csv", "--seed", 3, "-o", tmp_path / "y.csv")
    expected = regression.predictive(data={"X": X}, seed=3)["y"][0]
    np.testing.assert_allclose(read_table(tmp_path / "y.csv").values[:, 0], expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sample", "regression.caviar"], "have known columns (X_0, X_1): give them as DATA"),
        (["sample", "regression.caviar", "known.csv", "-n", 3], "as many rows are drawn as DATA have"),
        (["sample", "hidden.caviar", "known.csv"], "this model has no known columns, so it takes no DATA"),
        (["sample", "hidden.caviar", "--with-component"], "belongs to mixtures"),
        (["predict", "regression.caviar", "hidden.csv", "-o", "-"], "model, y, X_0, X_1; its columns are left, right"),
        (["predict", "regression.caviar", "half.csv", "-o", "-"], "some columns of 'X', but not X_1"),
        (["predict", "regression.caviar", "y.csv", "-o", "-"], "the data lack 'X', which the model takes as known"),
        (["predict", "regression.caviar", "nope.npz", "-o", "-"], "there is no file nope.npz"),
        (["predict", "regression.caviar", "bad.npz", "-o", "-"], "bad.npz is not a NumPy file"),
        (["predict", "regression.caviar", "pickled.npz", "-o", "-"], "pickled.npz is not a NumPy file of numbers"),
        (["predict", "regression.caviar", "alone.npz", "-o", "-"], "alone.npz contains one array without a name"),
        (["predict", "regression.caviar", "strange.npz", "-o", "-"], "none of those of the model: y, X"),
        (["report", "regression.caviar", "known.csv", "-o", "r.html"], "the data lack 'y', which the model observes"),
        (["report", "plan.caviar", "-o", "r.html"], "contains a model without a fit"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_model_is_refused(
    run, regression, hidden, folder, monkeypatch, arguments, message
):
    monkeypatch.chdir(folder)
    write_table(folder / "half.csv", {"X_0": X[:, 0]})
    write_table(folder / "y.csv", {"y": Y})
    (folder / "bad.npz").write_bytes(b"PK nothing")
    with (folder / "alone.npz").open("wb") as file:
        np.save(file, X)
    np.savez(folder / "pickled.npz", X=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(folder / "strange.npz", Z=X)
    regression.model.save(folder / "plan.caviar")
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert result.stdout == ""


@pytest.mark.slow
def test_a_report_of_a_posterior_and_its_data(run, regression, folder, tmp_path):
    result = run(
        "report", folder / "regression.caviar", folder / "rows.csv", "-o", tmp_path / "r.html", "--json"
    )
    found = json.loads(result.stdout)
    assert found["verdict"]["level"] == "good"
    assert [entry["variable"] for entry in found["entries"]] == ["tau", "w", "w", "tau as sd"]
    assert found["rows"]["predictions"][0]["n"] == 80
    assert "Regression of y on X" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_densities_without_a_closed_form_are_averaged_over_draws(run, tmp_path):
    y = np.random.default_rng(0).normal(2, 1.5, 40)
    tau = cv.Gamma("tau", 2, 2)
    model = cv.Model(cv.Normal("y", cv.Normal("mu", 0, 0.01), tau, plates=cv.Plate("row")))
    posterior = model.fit({"y": y}, tol=1e-10)
    posterior.save(tmp_path / "a.caviar")
    cv.data.write_table(tmp_path / "y.csv", {"y": y})
    mixture = cv.BayesianGaussianMixture(1).fit(y[:, None])
    mixture.save(tmp_path / "b.caviar", about={"columns": ["y"], "rows": 40})
    told = run("compare", tmp_path / "y.csv", *("--model", tmp_path / "a.caviar"), "--json")
    found = json.loads(told.stdout)["rows"][0]
    mu, precision = posterior["mu"], posterior["tau"]
    means = mu.mean + np.sqrt(mu.variance) * scipy.stats.norm.ppf((np.arange(200) + 0.5) / 200)
    precisions = scipy.stats.gamma.ppf(
        (np.arange(200) + 0.5) / 200, precision.shape, scale=1 / precision.rate
    )
    grid = scipy.stats.norm.pdf(y[:, None, None], means[:, None], precisions**-0.5)
    assert found["held_out"] == pytest.approx(np.log(grid.mean(axis=(1, 2))).mean(), abs=2e-3)
    assert found["explained"] == ["y"]


@pytest.mark.usefixtures("figures_of_factors")
def test_densities_of_different_columns_are_not_compared(run, regression, folder, tmp_path):
    data = folder / "rows.csv"
    names = read_table(data).columns
    mixture = cv.BayesianGaussianMixture(1).fit(read_table(data).values)
    mixture.save(tmp_path / "b.caviar", about={"columns": list(names), "rows": len(read_table(data).values)})
    models = ("--model", folder / "regression.caviar", "--model", tmp_path / "b.caviar")
    result = run("compare", data, *models)
    assert "highest ELBO" not in result.stdout
    assert "explain different columns, so their ELBOs and densities cannot be compared" in result.stdout
    assert "regression.caviar: y;" in result.stdout
