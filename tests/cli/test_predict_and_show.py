"""``caviar predict`` writes what the estimator predicts, row by row; ``caviar show`` says what was saved."""

import json

import numpy as np
import pytest

import caviar as cv
from caviar.data import read_table, write_table

X = cv.datasets.load_faithful().values


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return a model that was fitted to columns with names."""
    path = tmp_path_factory.mktemp("models") / "m.caviar"
    mixture = cv.BayesianGaussianMixture(3, random_state=0).fit(X)
    mixture.save(
        path, about={"columns": ["eruptions", "waiting"], "rows": 272, "source": "eruptions.csv", "seed": 0}
    )
    return path


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_predictions_are_those_of_the_estimator_in_the_order_of_the_rows(
    run, model, eruptions, tmp_path, name
):
    result = run("predict", model, eruptions, "-o", tmp_path / name)
    assert result.exit_code == 0
    assert result.stdout == f"272 rows in {tmp_path / name}\n"
    written = read_table(tmp_path / name)
    assert written.columns == ("label", "probability_0", "probability_1", "probability_2", "log_density")
    mixture = cv.load(model)
    expected = np.column_stack([mixture.predict(X), mixture.predict_proba(X), mixture.score_samples(X)])
    np.testing.assert_array_equal(written.values, expected)


def test_columns_are_found_by_name_not_by_place(run, model, tmp_path):
    write_table(tmp_path / "swapped.csv", {"waiting": X[:, 1], "other": X[:, 1], "eruptions": X[:, 0]})
    run("predict", model, tmp_path / "swapped.csv", "-o", tmp_path / "out.csv")
    np.testing.assert_array_equal(read_table(tmp_path / "out.csv").values[:, 0], cv.load(model).predict(X))


def test_a_missing_column_is_named(run, model, tmp_path):
    write_table(tmp_path / "other.csv", {"eruptions": X[:, 0], "wait": X[:, 1]})
    result = run("predict", model, tmp_path / "other.csv", "-o", tmp_path / "out.csv")
    assert result.exit_code == 2
    assert (
        f"other.csv has no column 'waiting', which {model} needs; its columns are eruptions, wait"
        in result.stderr
    )
    assert "Did you mean 'wait'?" in result.stderr
    assert not (tmp_path / "out.csv").exists()


def test_a_column_that_the_rows_do_not_have_is_predicted_from_the_rest(run, model, tmp_path):
    write_table(tmp_path / "half.csv", {"waiting": X[:5, 1], "other": X[:5, 0]})
    result = run("predict", model, tmp_path / "half.csv", "-o", tmp_path / "out.csv")
    assert (result.exit_code, result.stdout) == (0, f"5 rows in {tmp_path / 'out.csv'}\n")
    assert result.stderr == "predicted from the rest, as the rows do not have them: eruptions\n"
    written, mixture = read_table(tmp_path / "out.csv"), cv.load(model)
    assert written.columns[-3:] == ("log_density", "eruptions_mean", "eruptions_sd")
    half = np.column_stack([np.full(5, np.nan), X[:5, 1]])
    np.testing.assert_allclose(written.values[:, 1:4], mixture.predict_proba(half))
    # the marginal density of what is there, and the conditional mean of what is not
    marginal = [mixture.predictive_.marginal([1]).log_density(row[None, 1:])[0] for row in half]
    np.testing.assert_allclose(written.values[:, 4], marginal)
    means = [mixture.condition({1: row[1]}).mean[0] for row in half]
    np.testing.assert_allclose(written.values[:, 5], means)
    run("predict", model, tmp_path / "half.csv", "--interval", 0.8, "-o", tmp_path / "out.csv", "-q")
    told = mixture.predict_columns(half, 0, level=0.8)
    np.testing.assert_allclose(read_table(tmp_path / "out.csv").values[:, -2:].T, [told.lower, told.upper])


def test_a_query_gives_the_rows(run, model, eruptions, tmp_path):
    query = "SELECT waiting, eruptions FROM data WHERE waiting > 80 ORDER BY waiting"
    run("predict", model, eruptions, "--sql", query, "-o", tmp_path / "out.csv", "-q")
    chosen = X[X[:, 1] > 80]
    assert len(read_table(tmp_path / "out.csv").values) == len(chosen)


def test_a_model_without_names_takes_columns_by_their_place(run, tmp_path, faithful):
    cv.GaussianMixture(2, random_state=0).fit(X).save(tmp_path / "m.caviar")
    run("predict", tmp_path / "m.caviar", faithful, "-o", tmp_path / "out.csv")
    assert len(read_table(tmp_path / "out.csv").values) == 272
    write_table(tmp_path / "three.csv", dict(zip("abc", np.eye(3), strict=True)))
    refused = run("predict", tmp_path / "m.caviar", tmp_path / "three.csv", "-o", tmp_path / "no.csv")
    assert refused.exit_code == 2
    assert "fitted to 2 columns without names; the data have 3: a, b, c" in refused.stderr


@pytest.mark.usefixtures("figures_of_factors")
def test_a_model_fitted_to_a_data_frame_knows_its_columns(run, tmp_path, eruptions):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["eruptions", "waiting"])
    cv.BayesianGaussianMixture(2, random_state=0).fit(frame).save(tmp_path / "m.caviar")
    result = run("predict", tmp_path / "m.caviar", eruptions, "-o", tmp_path / "out.csv")
    assert (result.exit_code, result.stderr) == (0, "")


def test_show_says_what_was_saved(run, model):
    lines = run("show", model).stdout.splitlines()
    assert lines[0] == "Bayesian mixture of Gaussians, 3 components, 272 rows"
    assert "fitted to eruptions.csv" in lines
    assert "seed 0" in lines
    assert any(line.startswith(f"ELBO {cv.load(model).elbo_:.4f} nats") for line in lines)


def test_columns_that_name_the_rows_are_kept(run, model, eruptions, tmp_path):
    query = "SELECT *, 'row ' || (row_number() OVER () - 1) AS name, DATE '2024-01-31' AS day FROM data"
    run("predict", model, eruptions, "--sql", query, "--keep", "name,day", "-o", tmp_path / "out.parquet")
    run("predict", model, eruptions, "-o", tmp_path / "bare.parquet")
    kept, bare = (cv.data.read_columns(tmp_path / name) for name in ("out.parquet", "bare.parquet"))
    assert kept.column_names == ["name", "day", *bare.column_names]
    assert kept.column("name").to_pylist() == [f"row {i}" for i in range(len(X))]
    assert str(kept.schema.field("day").type) == "date32[day]"
    assert kept.select(bare.column_names).equals(bare)
    for given, words in (
        (["--keep", "names"], "--keep names: there is no such column; there are kind, eruptions, waiting"),
        (["--keep", ""], "--keep needs the name of a column"),
        (["--keep", "eruptions", "--ahead", 3], "a forecast of --ahead has none"),
        (["--sql", "SELECT *, 1 AS label FROM data", "--keep", "label"], "have a column 'label', too"),
    ):
        refused = run("predict", model, eruptions, *given, "-o", tmp_path / "no.csv")
        assert refused.exit_code == 2
        assert words in " ".join(refused.stderr.split())
    assert not (tmp_path / "no.csv").exists()


def test_intervals_are_called_what_they_are(run, model, tmp_path):
    # three components for two clusters
    remark = "Means, standard deviations and intervals are those of 4,000 weighted draws (effectively "
    assert remark in " ".join(run("show", model).stdout.split())
    assert json.loads(run("show", model, "--json").stdout)["interval_remark"].startswith(remark)
    cv.GaussianMixture(2, random_state=0).fit(X).save(tmp_path / "points.caviar")
    assert "mean field" not in run("show", tmp_path / "points.caviar").stdout
    narrow = cv.BayesianGaussianMixture(2, random_state=0, uncertainty="mean_field").fit(X)
    narrow.save(tmp_path / "narrow.caviar")
    told = " ".join(run("show", tmp_path / "narrow.caviar").stdout.split())
    assert "Intervals are those of mean field, and may be too narrow." in told
    assert json.loads(run("show", tmp_path / "points.caviar", "--json").stdout)["interval_remark"] == ""


def test_show_as_json_holds_everything(run, model):
    document = json.loads(run("show", model, "--json").stdout)
    mixture = cv.load(model)
    assert document["elbo_trace"] == mixture.elbo_trace_.tolist()
    assert document["columns"] == ["eruptions", "waiting"]
    assert len(document["components"]) == 3
    low = document["components"][0]["mean"]["waiting"]["low"]
    assert low == cv.report.component_table(mixture)[0].mean[1].low


@pytest.mark.slow
def test_fit_and_show_say_the_same(run, eruptions, tmp_path):
    options = ("--columns", "eruptions,waiting", "-k", 3, "--seed", 1, "--restarts", 2, "-q", "--json")
    fitted = json.loads(run("fit", eruptions, *options, "-o", tmp_path / "m.caviar").stdout)
    assert fitted.pop("saved") == str(tmp_path / "m.caviar")
    assert json.loads(run("show", tmp_path / "m.caviar", "--json").stdout) == fitted


@pytest.fixture
def coin():
    """Return a posterior of a stated model."""
    p = cv.Beta("p", 1, 1)
    return cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs"))).fit({"x": [1, 1, 0]})


def test_a_posterior_of_a_stated_model_is_shown(run, coin, tmp_path):
    coin.save(tmp_path / "coin.caviar")
    shown = run("show", tmp_path / "coin.caviar")
    assert shown.exit_code == 0
    assert "x ~ Bernoulli(probability=Beta('p'), plates=(obs))" in shown.stdout
    assert str(coin.summary()) in shown.stdout
    assert "fitted to 3 rows" in shown.stdout
    document = json.loads(run("show", tmp_path / "coin.caviar", "--json").stdout)
    assert document["elbo"] == coin.elbo
    assert document["rows"] == 3
    assert document["entries"][0]["mean"] == pytest.approx(0.6)


def test_a_model_without_a_fit_is_shown(run, coin, tmp_path):
    coin.model.save(tmp_path / "coin.caviar")
    assert "p ~ Beta(" in run("show", tmp_path / "coin.caviar").stdout
    document = json.loads(run("show", tmp_path / "coin.caviar", "--json").stdout)
    assert document["statement"]["x"]["family"] == "Bernoulli"


@pytest.mark.thinned(2)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_large_tables_are_read_in_blocks(run, model, tmp_path, monkeypatch, suffix):
    """A table that is called large is not read as a whole, and predicted alike, missing entries among it."""
    table = X.copy()
    table[3, 0] = table[5] = np.nan
    path = tmp_path / f"large.{suffix}"
    write_table(path, {"waiting": table[:, 1], "eruptions": table[:, 0]})
    run("predict", model, path, "-o", tmp_path / "whole.parquet")
    whole = read_table(tmp_path / "whole.parquet").values
    monkeypatch.setattr("caviar.cli.tables.rows.LARGE", 1)
    monkeypatch.setattr(cv.data, "read_table", None)
    result = run("predict", model, path, "-o", tmp_path / "blocks.parquet")
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(read_table(tmp_path / "blocks.parquet").values, whole)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n3,4\n")
    refused = run("predict", model, tmp_path / "other.csv", "-o", tmp_path / "no.csv")
    assert refused.exit_code != 0
    assert "eruptions" in refused.stderr
