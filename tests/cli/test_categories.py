"""Columns of words are categories of one mixture: the model is that of Python, and names come back everywhere."""

import csv
import io
import json
import re

import numpy as np
import pytest

import caviar as cv
from caviar.data import read_table, unknown_values, write_table

PENGUINS = cv.datasets.load_penguins()
NUMBERS = ("bill_length_mm", "body_mass_g")
WORDS = ("species", "sex")
ARRAYS = {name: PENGUINS.column(name) for name in (*NUMBERS, *WORDS)}


def in_words(name):
    kinds = PENGUINS.categories[name]
    return ["" if code != code else kinds[int(code)] for code in ARRAYS[name]]


@pytest.fixture(scope="module")
def penguins(tmp_path_factory):
    """Return a CSV file with missing entries of both kinds; the columns of words stand between those of numbers."""
    path = tmp_path_factory.mktemp("tables") / "penguins.csv"
    cells = {name: ["" if x != x else repr(float(x)) for x in ARRAYS[name]] for name in NUMBERS}
    cells.update({name: in_words(name) for name in WORDS})
    order = ("bill_length_mm", "species", "body_mass_g", "sex")
    lines = [",".join(order), *(",".join(row) for row in zip(*(cells[name] for name in order), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fit_command(penguins):
    return ["fit", penguins, "-k", 3, "--non-numeric", "categorical", "--seed", 0]


@pytest.fixture(scope="module")
def saved(run, fit_command, tmp_path_factory):
    """Return a file with the mixture of the penguins."""
    path = tmp_path_factory.mktemp("models") / "m.caviar"
    assert run(*fit_command, "-q", "-o", path).exit_code == 0
    return path


def stated_in_python():
    """Return the same model by the language alone: the priors are those of a mixture with diagonal covariances."""
    component, obs = cv.Plate("component", 3), cv.Plate("obs")
    z = cv.Categorical("z", cv.Dirichlet("weights", np.full(3, 1 / 3)), plates=obs)
    leaves = []
    for name in NUMBERS:
        prior = (np.nanmean(ARRAYS[name]), 1.0, len(NUMBERS) / 2, np.nanvar(ARRAYS[name]) / 2)
        theta = cv.NormalGamma(f"{name}_theta", *prior, plates=component)
        leaves.append(cv.Normal(name, theta[z], plates=obs))
    for name in WORDS:
        p = cv.Dirichlet(f"{name}_probabilities", np.ones(len(PENGUINS.categories[name])), plates=component)
        leaves.append(cv.Categorical(name, p[z], plates=obs))
    return cv.Model(*leaves)


@pytest.mark.slow
def test_the_fit_is_that_of_the_model_stated_in_python(run, fit_command):
    found = json.loads(run(*fit_command, "--uncertainty", "linear-response", "-q", "--json").stdout)
    expected = stated_in_python().fit(ARRAYS, seed=0, tol=1e-6)
    assert found["elbo"] == pytest.approx(expected.elbo, rel=1e-11)
    assert (found["rows"], found["missing_entries"], found["seed"]) == (344, 4 + 11, 0)
    weights = [own["weight"]["value"] for own in found["components"]]
    np.testing.assert_allclose(weights, expected["weights"].mean, rtol=1e-8)
    theta, p = expected["body_mass_g_theta"], expected["species_probabilities"]
    for k, own in enumerate(found["components"]):
        mean = own["mean"]["body_mass_g"]
        assert mean["value"] == pytest.approx(theta.mean[k], rel=1e-8)
        assert mean["low"] < mean["value"] < mean["high"]
        spread = own["standard_deviation"]["body_mass_g"]
        assert spread == pytest.approx(np.sqrt(theta.rate[k] / theta.shape[k]), rel=1e-8)
        told = own["probabilities"]["species"]
        assert list(told) == ["Adelie", "Chinstrap", "Gentoo"]
        np.testing.assert_allclose([each["value"] for each in told.values()], p.mean[k], rtol=1e-8)


@pytest.mark.slow
def test_of_numbers_alone_it_is_the_mixture_with_diagonal_covariances(run, penguins, tmp_path):
    """Under the same prior, which is that of the data and not learnt."""
    command = ["fit", penguins, "--columns", ",".join(NUMBERS), "-k", 3, "--seed", 0, "-q", "--json"]
    command += ["--uncertainty", "linear-response"]
    mixed = json.loads(run(*command, "--non-numeric", "categorical").stdout)
    mixture = cv.BayesianGaussianMixture(
        3,
        covariance_type="diag",
        covariance_prior="empirical",
        mean_precision_prior=1.0,
        uncertainty="linear_response",
        random_state=0,
    ).fit(np.column_stack([ARRAYS[name] for name in NUMBERS]))
    mixture.about_ = {"columns": list(NUMBERS)}
    mixture.save(tmp_path / "diagonal.caviar")
    diagonal = json.loads(run("show", tmp_path / "diagonal.caviar", "--json").stdout)
    assert mixed["elbo"] == pytest.approx(diagonal["elbo"], abs=1e-3)
    key = lambda own: own["weight"]["value"]  # noqa: E731
    for one, other in zip(
        sorted(mixed["components"], key=key), sorted(diagonal["components"], key=key), strict=True
    ):
        for name in NUMBERS:
            assert one["mean"][name]["low"] == pytest.approx(other["mean"][name]["low"], rel=1e-3)
            spread = other["standard_deviation"][name]
            assert one["standard_deviation"][name] == pytest.approx(spread, rel=1e-3)


@pytest.mark.slow
def test_of_words_alone_there_is_a_mixture_too(run, penguins):
    result = run(
        "fit", penguins, "--columns", "species,sex", "--non-numeric", "categorical", "--seed", 0, "--json"
    )
    assert json.loads(result.stdout)["columns"] == ["species", "sex"]


@pytest.mark.slow
def test_a_table_is_printed_and_shown_again(run, fit_command, saved):
    printed = run(*fit_command)
    assert "column species became 3 categories: Adelie, Chinstrap, Gentoo" in printed.stderr
    lines = printed.stdout.splitlines()
    assert lines[:2] == [
        "Bayesian mixture of mixed columns, 3 components, 344 rows",
        "15 missing entries, which were integrated out",
    ]
    first = cv.load(saved).weights_.argmax()
    rows = [line.split() for line in lines[4:8]]
    assert rows[0][0] == str(first)
    assert rows[0][-5] == "bill_length_mm"
    assert rows[2][:2] == ["species", "Adelie"]
    shown = run("show", saved).stdout.splitlines()
    assert shown[: len(lines) - 1] == lines[:-1]
    assert shown[-2:] == [f"fitted to {fit_command[1]}", "seed 0"]
    document = json.loads(run("show", saved, "--json").stdout)
    assert document["command"].endswith("--non-numeric categorical --components 3 --seed 0")
    assert document["components"] == json.loads(run(*fit_command, "-q", "--json").stdout)["components"]


@pytest.mark.usefixtures("figures_of_factors")
def test_rows_have_labels_probabilities_and_densities(run, saved, penguins, tmp_path):
    run("predict", saved, penguins, "-o", tmp_path / "out.parquet")
    written = read_table(tmp_path / "out.parquet")
    assert written.columns == (
        "label", "probability_0", "probability_1", "probability_2", "log_density",
    )  # fmt: skip
    posterior = cv.load(saved).posterior_
    expected = posterior.local(ARRAYS)["z"].probabilities
    np.testing.assert_allclose(written.values[:, 1:4], expected, atol=1e-14)
    np.testing.assert_array_equal(written.values[:, 0], expected.argmax(axis=1))
    np.testing.assert_allclose(written.values[:, 4], posterior.log_predictive(ARRAYS))


def test_unknown_values_are_told_and_count_as_missing(run, saved, tmp_path):
    columns = {"bill_length_mm": np.array([40.0, 41.0]), "body_mass_g": np.array([3500.0, 3600.0])}
    write_table(tmp_path / "new.csv", {**columns, "species": ["Emperor", "Gentoo"], "sex": ["male", "male"]})
    write_table(tmp_path / "gap.csv", {**columns, "species": ["", "Gentoo"], "sex": ["male", "male"]})
    result = run("predict", saved, tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert "column species has values that the model was not fitted to" in result.stderr
    assert "(in 1 row): Emperor; the fit had Adelie, Chinstrap, Gentoo" in result.stderr
    gap = run("predict", saved, tmp_path / "gap.csv", "-o", tmp_path / "gap-out.csv")
    assert (gap.exit_code, gap.stderr) == (0, "")
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "gap-out.csv").read_bytes()


def test_absent_columns_and_empty_ones_are_predicted_from_the_rest(run, saved):
    new = "SELECT 3300.0 AS body_mass_g, 'female' AS sex, NULL::DOUBLE AS bill_length_mm"
    result = run("predict", saved, "--sql", new, "-o", "-")
    assert "predicted from the rest, as the rows do not have them: species" in result.stderr
    header, row = csv.reader(io.StringIO(result.stdout))
    told = dict(zip(header, row, strict=True))
    posterior = cv.load(saved).posterior_
    seen = {"body_mass_g": [3300.0], "sex": [0]}
    expected = posterior.predict(seen)["species"].mean[0]
    assert told["species"] == "Adelie"
    found = [float(told[f"species_probability_{name}"]) for name in ("Adelie", "Chinstrap", "Gentoo")]
    np.testing.assert_allclose(found, expected)
    # the marginal density of the two that are there: of weight, mass and sex of each component
    theta, p, pi = (posterior[name] for name in ("body_mass_g_theta", "sex_probabilities", "weights"))
    stats = pytest.importorskip("scipy.stats")
    scale = np.sqrt(theta.rate * (theta.mean_precision + 1) / (theta.shape * theta.mean_precision))
    density = pi.mean * stats.t.pdf(3300.0, 2 * theta.shape, theta.mean, scale) * p.mean[:, 0]
    assert float(told["log_density"]) == pytest.approx(np.log(density.sum()), rel=1e-10)


def test_a_sample_has_the_names_and_can_be_read_again(run, saved, tmp_path):
    run("sample", saved, "-n", 400, "--seed", 3, "-o", tmp_path / "new.csv")
    with (tmp_path / "new.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    mixture = cv.load(saved)
    drawn, labels = mixture.sample(400, random_state=3)
    names = list(mixture.feature_names_in_)
    assert [row["species"] for row in rows] == drawn[:, names.index("species")].tolist()
    weights = drawn[:, names.index("body_mass_g")].astype(float)
    np.testing.assert_allclose([float(row["body_mass_g"]) for row in rows], weights)
    run("sample", saved, "-n", 400, "--seed", 3, "--with-component", "-o", tmp_path / "with.csv")
    with (tmp_path / "with.csv").open(encoding="utf-8") as file:
        assert [int(row["component"]) for row in csv.DictReader(file)] == labels.tolist()
    again = run("predict", saved, tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert (again.exit_code, again.stderr) == (0, "")


@pytest.mark.slow
def test_a_report_names_columns_and_categories(run, saved, penguins, tmp_path):
    told = json.loads(run("report", saved, penguins, "-o", tmp_path / "r.html", "--json").stdout)
    places = {entry["at"] for entry in told["entries"] if entry["variable"] == "species probabilities"}
    assert "Gentoo, component 0" in places
    quality = {line["name"]: line for line in told["quality"]}
    assert quality["species"]["mean"] is None
    assert quality["sex"]["missing"] == pytest.approx(11 / 344)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "--non-numeric categorical --components 3 --seed 0" in page
    assert "--restarts 10" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--covariance", "diag"], "there is no --covariance"),
        (["--mean-precision", "independent"], "there is no --mean-precision"),
        (["--variance", 3], "there is no --variance"),
        (["--model", "em"], "--model em has no categories"),
    ],
)
def test_what_it_does_not_have_is_refused(run, fit_command, options, message):
    result = run(*fit_command, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.slow
def test_saved_ones_are_compared_as_their_estimators_say(run, penguins, saved, fit_command, tmp_path):
    assert run(*fit_command, "-k", 2, "-q", "-o", tmp_path / "2.caviar").exit_code == 0
    plain = ["fit", penguins, "--non-numeric", "drop", "-q", "-o", tmp_path / "g.caviar"]
    assert run(*plain).exit_code == 0
    found = json.loads(
        run("compare", penguins, "--model", saved, "--model", tmp_path / "2.caviar", "--json").stdout
    )
    mixture = cv.load(saved)
    assert found["best"] == 0
    assert found["rows"][0]["elbo"] == mixture.elbo_
    table = {name: ARRAYS[name] for name in mixture.feature_names_in_}
    assert found["rows"][0]["held_out"] == pytest.approx(
        mixture.posterior_.log_predictive(table).mean(), rel=1e-12
    )
    # fitted to as many rows, and to other columns
    other = run("compare", "--model", saved, "--model", tmp_path / "g.caviar")
    assert "cannot be compared" in other.stdout


def test_a_check_fits_the_same_kinds_of_columns(run, penguins, saved, monkeypatch):
    seen = {}

    def check_model(model, data, **keywords):
        seen.update(model=model, data=data)
        return cv.testing.VerificationReport(())

    monkeypatch.setattr(cv.testing, "check_model", check_model)
    result = run("check", saved, penguins, "--rows", 60)
    assert "checking on 60 of 344 rows; 11 rows with missing entries are left out" in result.stderr
    own = {name: type(v).__name__ for name, v in cv.load(saved).posterior_.model.variables.items()}
    assert {name: type(v).__name__ for name, v in seen["model"].variables.items()} == own
    complete = ~np.isnan(np.stack(list(ARRAYS.values()))).any(axis=0)
    rows = set(zip(*(ARRAYS[name][complete] for name in seen["data"]), strict=True))
    assert set(zip(*seen["data"].values(), strict=True)) <= rows


@pytest.mark.slow
def test_a_check_of_the_whole_passes(run, penguins, saved):
    assert run("check", saved, penguins, "--rows", 60).exit_code == 0


@pytest.mark.slow  # the same is claimed of the estimator in tests/estimators/test_mixed.py
def test_columns_may_have_the_names_of_the_model(run, tmp_path):
    """A column ``z`` beside the label of a row, and ``weights`` beside the mixture's."""
    rows = "SELECT (range * 7) % 5 AS z, CASE WHEN range < 9 THEN 'low' ELSE 'high' END AS weights FROM range(20)"
    others = "SELECT z AS a, weights AS kind FROM (" + rows + ")"
    told = []
    for number, sql in enumerate((rows, others)):
        model = tmp_path / f"{number}.caviar"
        options = ("--non-numeric", "categorical", "--seed", 0, "-q", "--json", "-o", model)
        fit = run("fit", "--sql", sql, *options)
        assert (fit.exit_code, fit.stderr) == (0, "")
        predicted = run("predict", model, "--sql", sql, "-o", tmp_path / f"{number}.csv")
        assert (predicted.exit_code, predicted.stderr) == (0, "")
        report = run("report", model, "--sql", sql, "-o", tmp_path / "r.html", "--json")
        assert report.exit_code == 0
        names = {line["name"] for line in json.loads(report.stdout)["quality"]}
        assert names == ({"z", "weights"}, {"a", "kind"})[number]
        labels = cv.data.read_columns(tmp_path / f"{number}.csv")
        told.append((json.loads(fit.stdout)["elbo"], labels.column_names))
    assert told[0] == (pytest.approx(told[1][0], rel=1e-12), told[1][1])


def test_too_many_values_and_empty_columns(run):
    many = "SELECT range AS a, 'v' || range AS name FROM range(60)"
    result = run("fit", "--sql", many, "--non-numeric", "categorical")
    assert "has more than 50 different values, too many for categories" in result.stderr
    empty = "SELECT range AS a, NULL::VARCHAR AS name FROM range(9)"
    result = run("fit", "--sql", empty, "--non-numeric", "categorical", "-k", 1, "--json")
    assert "left out, because not all entries are numbers: name" in result.stderr
    assert json.loads(result.stdout)["columns"] == ["a"]


@pytest.mark.slow
def test_names_and_values_are_quoted(run, tmp_path):
    odd = """SELECT range AS a, CASE range % 2 WHEN 0 THEN 'x''); DROP' ELSE '[red]é,"y"' END AS "k""'ind" """
    rows = f"{odd} FROM range(20)"
    command = ["fit", "--sql", rows, "--non-numeric", "categorical", "--seed", 0, "-o", tmp_path / "m.caviar"]
    assert run(*command).exit_code == 0
    assert '[red]é,"y"' in run("show", tmp_path / "m.caviar").stdout
    again = run("predict", tmp_path / "m.caviar", "--sql", rows, "-o", tmp_path / "out.csv")
    assert (again.exit_code, again.stderr) == (0, "")
    assert unknown_values(None, {"k\"'ind": ["x'); DROP"]}, sql=rows) == {"k\"'ind": (['[red]é,"y"'], 10)}


@pytest.mark.slow
def test_the_same_command_goes_on_from_its_checkpoint(run, fit_command, tmp_path):
    command = [*fit_command, "--restarts", 2, "--threads", 1, "--json", "--checkpoint", tmp_path / "c.ckpt"]
    first, again = run(*command), run(*command)
    assert "this fit has ended; its result is taken from there" in again.stderr
    assert json.loads(first.stdout)["elbo"] == json.loads(again.stdout)["elbo"]


@pytest.mark.usefixtures("figures_of_factors")
def test_other_posteriors_are_shown_as_they_were_stated(run, tmp_path):
    data = {name: ARRAYS[name] for name in NUMBERS}
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 1.0]), plates=obs)
    prior = {"mean": 0.0, "mean_precision": 1e-4, "shape": 1.0, "rate": 1e4}
    one, two = (cv.NormalGamma(f"{name}_theta", **prior, plates=component) for name in NUMBERS)
    leaves = [cv.Normal(NUMBERS[0], one[z], plates=obs), cv.Normal(NUMBERS[1], two[z], plates=obs)]
    # the same names, but each column has the parameters of the other
    crossed = [cv.Normal(NUMBERS[0], two[z], plates=obs), cv.Normal(NUMBERS[1], one[z], plates=obs)]
    path = tmp_path / "m.caviar"
    cv.Model(*leaves).fit(data, seed=0).save(path)
    assert run("show", path).stdout.startswith("Bayesian mixture of mixed columns, 2 components")
    for model, point in ((cv.Model(*crossed), ()), (cv.Model(*leaves), ("weights",))):
        model.fit(data, seed=0, point=point).save(path)
        assert run("show", path).stdout.startswith("Model(")


@pytest.mark.slow
def test_a_mixture_of_python_reads_answers_and_numbers_that_are_categories(run, tmp_path):
    """Whatever a table writes for them: true or True, 1 or 1.0."""
    rows = [[1.0, True, 0, 3], [2.0, False, 1, 1], [None, True, 5, 3], [9.0, None, 6, 2]] * 5
    mixture = cv.MixedMixture(2, kinds={2: "count", 3: "category"}, random_state=0).fit(rows)
    mixture.save(tmp_path / "m.caviar")
    expected = mixture.predict_proba(rows[:2])
    for answers, grades in (("true", "3"), ("TRUE", "3.0"), ("'True'", "3::INTEGER")):
        first = f"SELECT 1.0 AS x0, {answers} AS x1, 0 AS x2, {grades} AS x3"
        no = "'False'" if "'" in answers else "false"
        query = f"{first} UNION ALL SELECT 2.0, {no}, 1, {grades.replace('3', '1', 1)}"
        told = run("predict", tmp_path / "m.caviar", "--sql", query, "-o", tmp_path / "out.parquet")
        assert (told.exit_code, told.stderr) == (0, "")
        np.testing.assert_allclose(read_table(tmp_path / "out.parquet").values[:, 1:3], expected, rtol=1e-12)
    shown = json.loads(run("show", tmp_path / "m.caviar", "--json").stdout)
    assert list(shown["components"][0]["probabilities"]["x3"]) == ["1", "2", "3"]
    assert set(shown["components"][0]["mean"]) == {"x0", "x2"}


def test_the_number_of_components_is_searched_for(run, tmp_path):
    rng = np.random.default_rng(0)
    columns = {"x": np.r_[rng.normal(0, 1, 60), rng.normal(9, 1, 60)], "kind": ["a"] * 60 + ["b"] * 60}
    write_table(tmp_path / "two.csv", columns)
    result = run("fit", tmp_path / "two.csv", "--non-numeric", "categorical", "-k", "auto", "--seed", 0)
    assert result.exit_code == 0
    assert "Bayesian mixture of mixed columns, 2 components, 120 rows" in result.stdout
    assert "moves tried" in result.stdout
    # a search is told by its highest bound, not by the iterations of its many fits
    assert "iteration" not in result.stderr
    rows = [[x, kind] for x, kind in zip(*columns.values(), strict=True)]
    expected = cv.MixedMixture("auto", random_state=0).fit(rows)
    told = re.search(r"searching: highest ELBO so far (\S+)", result.stderr.splitlines()[-1])
    assert float(told[1]) == pytest.approx(expected.elbo_, abs=1e-3)


def test_remarks_name_options_rather_than_arguments(run, penguins):
    result = run(
        "fit", penguins, "--non-numeric", "categorical", "-k", 3, "--uncertainty", "mean-field", "-q"
    )
    assert "linear_response" not in result.stdout


@pytest.mark.slow
def test_numbers_of_components_are_compared(run, penguins, tmp_path):
    arguments = ("--non-numeric", "categorical", "-k", "1,3", "--restarts", 1, "--held-out", 0.25)
    result = run("compare", penguins, *arguments, "-o", tmp_path / "best.caviar", "--json")
    told = json.loads(result.stdout)
    kinds = {name: PENGUINS.categories[name] for name in WORDS}
    order = ("bill_length_mm", "species", "body_mass_g", "sex")
    table = cv.data.Table(np.column_stack([ARRAYS[name] for name in order]), order, kinds)
    expected = cv.compare_mixtures(
        table, (1, 3), estimator=cv.MixedMixture(), n_init=1, random_state=0, held_out=0.25
    )
    for row, other in zip(told["rows"], expected.rows, strict=True):
        assert row["elbo"] == pytest.approx(other.elbo)
        assert row["held_out"] == pytest.approx(other.held_out)
    # a line for the end of each of the fits
    assert [line.split("  ")[0] for line in result.stderr.splitlines() if line.startswith("fit ")][
        -1
    ] == "fit 2/2"
    assert "3 components, 344 rows" in run("show", tmp_path / "best.caviar").stdout
    assert run("check", tmp_path / "best.caviar", penguins, "--rows", 40, "-q").exit_code == 0
