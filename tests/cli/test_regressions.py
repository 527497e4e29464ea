"""Mixed models on the command line: what the estimator says, and new groups; saved models are shown and used."""

import json

import numpy as np
import pytest

import caviar as cv
from caviar.data import read_columns, read_table, write_table

FORMULA = "y ~ x + (1 | school)"
RNG = np.random.default_rng(0)
SCHOOL = np.repeat(["Adams", "Lincoln", "Taft"], 15)
X = RNG.normal(size=45)
COLUMNS = {
    "y": 1 + 2 * X + np.repeat([-1.0, 0.0, 1.0], 15) + RNG.normal(size=45),
    "x": X,
    "school": SCHOOL,
    "passed": (X + RNG.normal(size=45) > 0).astype(int),
    "missed": RNG.poisson(np.exp(0.5 * X)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table of pupils, and one of new pupils, of whom one is in another school."""
    folder = tmp_path_factory.mktemp("tables")
    write_table(folder / "pupils.csv", COLUMNS)
    write_table(folder / "new.csv", {"x": [0.0, 0.5], "school": ["Taft", "Washington"]})
    return folder


@pytest.fixture(scope="module")
def model(run, folder):
    path = folder / "m.caviar"
    result = run("fit", folder / "pupils.csv", "--formula", FORMULA, "--seed", 0, "-q", "-o", path)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{FORMULA}, family gaussian\n45 rows; groups: 3 of school")
    assert "residual standard deviation" in result.stdout
    return path


@pytest.fixture(scope="module")
def mine():
    return cv.MixedModel(FORMULA, random_state=0).fit(COLUMNS)


def test_the_fit_is_that_of_the_estimator(run, model, mine):
    told = json.loads(run("show", model, "--json").stdout)
    assert told["elbo"] == pytest.approx(mine.elbo_, abs=1e-9)
    assert told["command"].endswith(f"--model mixed --formula '{FORMULA}' --seed 0")
    assert told["groups"] == {"school": 3}
    for own, expected in zip(told["entries"], mine.summary(level=0.95).rows, strict=True):
        assert (own["part"], own["name"]) == (expected.part, expected.name)
        assert own["mean"] == pytest.approx(expected.mean)
        assert own["upper"] == pytest.approx(expected.upper)
    shown = run("show", model).stdout
    assert f"fitted to {model.parent / 'pupils.csv'}" in shown


def test_rows_are_predicted_and_new_groups_told(run, model, mine, folder, tmp_path):
    result = run("predict", model, folder / "new.csv", "-o", tmp_path / "out.csv")
    assert result.exit_code == 0
    assert "averaged over all groups: school Washington" in result.stderr
    written = read_table(tmp_path / "out.csv")
    assert written.columns == ("y_mean", "y_sd", "y_lower", "y_upper")
    told = mine.predict({"x": [0.0, 0.5], "school": ["Taft", "Washington"]})
    np.testing.assert_allclose(written.values, np.column_stack([told.mean, told.sd, *told.interval()]))
    assert written.values[1, 1] > written.values[0, 1]
    run("predict", model, folder / "new.csv", "--interval", 0.5, "-o", tmp_path / "out.csv", "-q")
    np.testing.assert_allclose(read_table(tmp_path / "out.csv").values[:, 2:].T, told.interval(0.5))


def test_dates_as_texts_are_refused_with_a_query_that_counts_days(run, tmp_path):
    """Each date was a category, without a word."""
    days = [f"2024-01-{day:02d}" for day in range(3, 28)]
    write_table(
        tmp_path / "days.csv", {"y": np.arange(25.0) + 0.1 * np.cos(np.arange(25)), "day": np.array(days)}
    )
    fit = ("fit", tmp_path / "days.csv", "--formula")
    result = run(*fit, "y ~ day", "-q")
    assert result.exit_code == 2
    assert "'day' has dates as texts, such as '2024-01-03'" in result.stderr
    query = result.stderr.split('--sql "')[1].split('"')[0].replace("\n", " ")
    counted = run(*fit, "y ~ days", "--sql", query, "--seed", 0, "-q", "--json")
    slope = next(own for own in json.loads(counted.stdout)["entries"] if own["name"] == "days")
    assert slope["mean"] == pytest.approx(1, abs=0.01)


@pytest.mark.usefixtures("figures_of_factors")
def test_the_response_is_drawn_beside_the_known_columns(run, model, mine, folder, tmp_path):
    many = {"x": np.zeros(4000), "school": ["Taft"] * 4000}
    write_table(tmp_path / "many.csv", many)
    run("sample", model, tmp_path / "many.csv", "--seed", 1, "-o", tmp_path / "out.parquet")
    drawn = read_columns(tmp_path / "out.parquet")
    assert drawn.column_names == ["x", "school", "y"]
    told, y = mine.predict({"x": [0.0], "school": ["Taft"]}), drawn.column("y").to_numpy()
    assert abs(y.mean() - told.mean[0]) < 5 * told.sd[0] / np.sqrt(4000)
    assert y.std() == pytest.approx(told.sd[0], rel=0.06)
    for arguments, words in (
        (("sample", model), "give them as DATA"),
        (("sample", model, folder / "new.csv", "-n", 3), "leave -n out"),
    ):
        assert words in run(*arguments).stderr


def test_models_are_compared_by_the_density_of_the_same_rows(run, model, mine, folder):
    result = run("compare", folder / "pupils.csv", "--model", model, "--json")
    (row,) = json.loads(result.stdout)["rows"]
    assert row["held_out"] == pytest.approx(mine.score(COLUMNS))
    assert row["elbo"] == pytest.approx(mine.elbo_)


def test_of_a_binary_response_the_mean_is_its_probability(run, folder, tmp_path):
    path = tmp_path / "m.caviar"
    options = ("--formula", "passed ~ x", "--family", "bernoulli", "--seed", 0, "-q")
    assert run("fit", folder / "pupils.csv", *options, "-o", path).exit_code == 0
    run("predict", path, folder / "new.csv", "-o", tmp_path / "out.csv", "-q")
    written = read_table(tmp_path / "out.csv")
    assert written.columns == ("passed_mean", "passed_sd")
    mine = cv.MixedModel("passed ~ x", family="bernoulli", random_state=0).fit(COLUMNS)
    np.testing.assert_allclose(written.values[:, 0], mine.predict({"x": [0.0, 0.5]}).mean)


def test_of_counts_intervals_are_written_and_their_score_is_compared(run, folder, tmp_path):
    path = tmp_path / "m.caviar"
    options = ("--formula", "missed ~ x", "--family", "negative_binomial", "--seed", 0, "-q")
    assert run("fit", folder / "pupils.csv", *options, "-o", path).exit_code == 0
    assert run("predict", path, folder / "new.csv", "-o", tmp_path / "out.csv", "-q").exit_code == 0
    written = read_table(tmp_path / "out.csv")
    assert written.columns == ("missed_mean", "missed_sd", "missed_lower", "missed_upper")
    mine = cv.load(path)
    np.testing.assert_array_equal(written.values[:, 2:].T, mine.predict({"x": [0.0, 0.5]}).interval(0.95))
    result = run("compare", folder / "pupils.csv", "--model", path, "--json")
    (row,) = json.loads(result.stdout)["rows"]
    assert row["held_out"] == pytest.approx(mine.score(COLUMNS))


def test_the_order_of_categories_is_said(run, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    rating = np.array(["poor", "fair, or so", "good"])[np.searchsorted([-0.5, 0.8], x + rng.normal(size=60))]
    table, path = tmp_path / "wines.csv", tmp_path / "m.caviar"
    table.write_text("\n".join(["x,rating", *(f'{a},"{b}"' for a, b in zip(x, rating, strict=True))]))
    options = ("--formula", "rating ~ x", "--family", "ordinal", "-q")
    refused = run("fit", table, *options)
    assert refused.exit_code == 2
    assert "say --categories with 'fair, or so', 'good', 'poor', the lowest first" in refused.stderr
    assert run("fit", table, *options, "--categories", 'poor,"fair, or so",good', "-o", path).exit_code == 0
    categories = ["poor", "fair, or so", "good"]
    mine = cv.MixedModel("rating ~ x", family="ordinal", categories=categories).fit(
        {"x": x, "rating": rating}
    )
    assert cv.load(path).categories_ == categories
    assert cv.load(path).elbo_ == pytest.approx(mine.elbo_)
    assert run("predict", path, table, "-o", tmp_path / "out.csv", "-q").exit_code == 0


def test_a_report_is_written_beside_the_model(run, model):
    assert run("report", model, "-q").exit_code == 0
    assert "common effects" in model.with_suffix(".html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_report_with_data_has_residuals_and_predictive_checks(run, model, folder, tmp_path):
    """A response that is moved by 40 is outside all intervals; that of the fit is inside nearly all of them."""
    write_table(tmp_path / "moved.csv", {**COLUMNS, "y": COLUMNS["y"] + 40.0})
    told = {}
    for name, table in (("same", folder / "pupils.csv"), ("moved", tmp_path / "moved.csv")):
        out = tmp_path / f"{name}.html"
        result = run("report", model, table, "-o", out, "--json", "-q")
        assert result.exit_code == 0
        told[name] = {finding["title"]: finding["text"] for finding in json.loads(result.stdout)["findings"]}
        page = out.read_text(encoding="utf-8")
        assert table.name in page
        assert "Residuals" in page
    assert told["moved"]["Predictions are off"].startswith("0.0% of 45 observations of y")
    assert "Predictions are off" not in told["same"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--model", "mixed"), "it needs --formula"),
        (("--formula", FORMULA, "-k", 3), "it has no components"),
        (("--formula", FORMULA, "--checkpoint", "m.ckpt"), "it keeps no checkpoint"),
        (("--formula", FORMULA, "--non-numeric", "drop"), "columns of texts are categories and groups"),
        (("--formula", FORMULA, "--model", "em"), "--formula belongs to --model mixed, not to --model em"),
        (("--formula", "y ~ z"), "z"),
        (("--formula", "y"), "formula must have one ~"),
        (("--formula", FORMULA, "--family", "poison"), "family must be"),
        (("--formula", FORMULA, "--categories", "a,b"), "only --family ordinal has categories"),
        (("--categories", "a,b"), "--categories belongs to --model mixed"),
    ],
)
def test_what_mixed_models_do_not_have_is_refused(run, folder, monkeypatch, options, words):
    monkeypatch.chdir(folder)
    result = run("fit", "pupils.csv", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "missing", "output"), [("predict", "x", "out.csv"), ("report", "y", "out.html")]
)
def test_a_missing_column_is_named_with_its_file_and_the_model(
    run, model, folder, tmp_path, command, missing, output
):
    write_table(folder / "other.csv", {"a": [1.0, 2.0], "school": ["Taft", "Taft"]})
    result = run(command, model, folder / "other.csv", "-o", tmp_path / output)
    assert result.exit_code == 2
    assert f"{folder / 'other.csv'} has no column '{missing}', which {model} needs; it has" in result.stderr


def test_a_word_of_the_formula_that_is_no_column_is_named_with_its_file(run, folder):
    result = run("fit", folder / "pupils.csv", "--formula", "y ~ xx", "-q")
    assert result.exit_code == 2
    assert f"error: {folder / 'pupils.csv'} has no column 'xx'; it has" in result.stderr


@pytest.mark.usefixtures("figures_of_factors")
def test_codes_with_zeros_in_front_are_groups_of_their_own(run, tmp_path, monkeypatch):
    """Ids 007 and 7 were one group, called 7."""
    monkeypatch.chdir(tmp_path)
    ids = np.repeat(["007", "07", "7"], 10)
    y = np.repeat([0.0, 5.0, 10.0], 10) + RNG.normal(size=30)
    rows = [f"{own},{value}" for own, value in zip(ids, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["id,y", *rows]))
    fit = run("fit", "t.csv", "--formula", "y ~ 1 + (1 | id)", "--seed", 0, "-q", "-o", "m.caviar")
    assert fit.exit_code == 0, fit.stderr
    assert cv.load("m.caviar").groups_ == {"id": ["007", "07", "7"]}
    run("predict", "m.caviar", "t.csv", "-q", "--keep", "id", "-o", "p.csv")
    assert read_columns("p.csv").column("id").to_pylist() == ids.tolist()


def test_the_query_for_numbers_that_are_texts_can_be_pasted(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{number:03},{number**1.5}" for number in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["a b,y", *rows]))
    given = ("fit", "t.csv", "--formula", "y ~ `a b`", "--seed", 0, "-q")
    told = run(*given).stderr
    assert "'a b' has numbers as texts, such as '000'" in told
    assert """make them numbers, by --sql 'SELECT * REPLACE ("a b"::DOUBLE AS "a b") FROM data';""" in told
    assert run(*given, "--sql", 'SELECT * REPLACE ("a b"::DOUBLE AS "a b") FROM data').exit_code == 0


def test_the_query_for_numbers_with_decimal_commas_can_be_pasted(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{number / 8:.3f};{number**1.5:.3f}".replace(".", ",") for number in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["x;y", *rows]))
    given = ("fit", "t.csv", "--formula", "y ~ x", "--seed", 0, "-q")
    told = run(*given).stderr
    query = """SELECT * REPLACE (replace("y", ',', '.')::DOUBLE AS "y") FROM data"""
    assert '--sql "' + query.replace('"', '\\"') + '"' in told
    told = run(*given, "--sql", query).stderr
    assert "'x' has numbers as texts" in told
    both = query.replace("REPLACE (", """REPLACE (replace("x", ',', '.')::DOUBLE AS "x", """)
    assert run(*given, "--sql", both).exit_code == 0


def test_the_query_for_a_response_of_two_texts_can_be_pasted(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{number},{'yes' if number % 3 else 'no'}" for number in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["x,passed", *rows]))
    given = ("fit", "t.csv", "--formula", "passed ~ x", "--family", "bernoulli", "--seed", 0, "-q")
    query = """SELECT * REPLACE (("passed" = 'yes')::INTEGER AS "passed") FROM data"""
    assert '--sql "' + query.replace('"', '\\"') + "\" makes 'yes' a 1" in run(*given).stderr
    assert run(*given, "--sql", query).exit_code == 0


@pytest.mark.usefixtures("figures_of_factors")
def test_groups_of_numbers_are_only_new_if_the_fit_had_none_of_them(run, tmp_path, monkeypatch):
    """Read as 1.0, group 1 was told to be new, though its effect was used."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{number % 4},{number % 4 + RNG.normal()}" for number in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["g,y", *rows]))
    fit = run("fit", "t.csv", "--formula", "y ~ 1 + (1 | g)", "--seed", 0, "-q", "-o", "m.caviar")
    assert fit.exit_code == 0, fit.stderr
    (tmp_path / "new.csv").write_text("g,x\n1,0\n7,0\n,0\n")
    told = run("predict", "m.caviar", "new.csv", "-o", "p.csv").stderr
    assert "averaged over all groups: g 7\n" in told
