"""``caviar fit`` gives the result of the estimator that it stands for, for readers, for programs, and as a file."""

import io
import json
import shlex
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

import caviar as cv
from caviar.cli.models.mixtures import _say_moves
from caviar.data import read_table

COLUMNS = ("--columns", "eruptions,waiting")
X = cv.datasets.load_faithful().values


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        (["-k", 3], cv.BayesianGaussianMixture(3, random_state=4)),
        (
            ["--mean-precision", "independent", "--restarts", 3],
            cv.BayesianGaussianMixture(2, mean_precision_family="independent", n_init=3, random_state=4),
        ),
        (["--model", "em", "--tol", 1e-3], cv.GaussianMixture(2, tol=1e-3, random_state=4)),
        (
            ["--components", 4, "--max-iter", 3, "--threads", 1],
            cv.BayesianGaussianMixture(4, max_iter=3, random_state=4),
        ),
    ],
)
def test_a_fit_is_that_of_the_estimator(run, eruptions, options, estimator):
    result = run("fit", eruptions, *COLUMNS, *options, "--seed", 4, "--json", "-q")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(X)
    assert document["model"] == type(estimator).__name__
    assert document["elbo"] == estimator.elbo_
    assert document["elbo_trace"] == estimator.elbo_trace_.tolist()
    assert document["converged"] == estimator.converged_
    assert [c["weight"]["value"] for c in document["components"]] == estimator.weights_.tolist()
    means = [[c["mean"][name]["value"] for name in ("eruptions", "waiting")] for c in document["components"]]
    assert means == estimator.means_.tolist()


def test_known_variance_takes_one_column_and_its_own_options(run, eruptions):
    options = ("--model", "known-variance", "--seed", 0, "-q", "--json")
    own = ("--variance", 25, "--prior-mean", 70, "--prior-variance", 1000)
    result = run("fit", eruptions, "--columns", "waiting", *options, *own)
    expected = cv.KnownVarianceMixture(
        2, variance=25, prior_mean=70, prior_variance=1000, random_state=0
    ).fit(X[:, 1])
    assert json.loads(result.stdout)["elbo"] == expected.elbo_
    refused = run("fit", eruptions, *COLUMNS, *options)
    assert refused.exit_code == 2
    assert "choose it by --columns from eruptions, waiting" in refused.stderr


@pytest.mark.slow
def test_the_result_for_readers_has_the_components_heaviest_first(run, eruptions):
    result = run("fit", eruptions, *COLUMNS, "--seed", 0)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "Bayesian mixture of Gaussians, 2 components, 272 rows"
    assert lines[2].split("  ")[:2] == ["component", "weight [95% interval]"]
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(X)
    heaviest = cv.report.component_table(mixture)[mixture.weights_.argmax()]
    weight, mean = heaviest.weight, heaviest.mean[1]
    assert f"{weight.value:.3f} [{weight.low:.3f}, {weight.high:.3f}]" in lines[3]
    assert f"waiting    {mean.value:.2f} [{mean.low:.2f}, {mean.high:.2f}]" in lines[4]
    assert f"ELBO {mixture.elbo_:.4f} nats after {mixture.n_iter_} iterations" in result.stdout
    assert "converged: " in result.stdout
    assert "seed 0" in lines


def test_the_uncertainty_is_that_of_the_option(run, eruptions, tmp_path):
    path = tmp_path / "m.caviar"
    options = ("--seed", 0, "-q", "-o", path)
    result = run("fit", eruptions, *COLUMNS, *options, "--uncertainty", "mean-field")
    assert "Intervals are those of mean field" in result.stdout
    assert cv.load(path).about_["command"].endswith("--seed 0 --uncertainty mean-field")
    assert "Intervals are those of mean field" in run("show", path).stdout
    result = run("fit", eruptions, *COLUMNS, *options, "--uncertainty", "linear-response", "--model", "em")
    assert "those of linear response" in result.stdout
    assert cv.load(path).means_sd_.shape == (2, 2)
    refused = run("fit", eruptions, *COLUMNS, "--uncertainty", "laplace")
    assert refused.exit_code == 2
    assert "linear-response" in refused.stderr


@pytest.mark.slow
def test_a_fit_without_a_seed_tells_the_one_it_took(run, eruptions):
    first = json.loads(run("fit", eruptions, *COLUMNS, "-k", 4, "--json", "-q").stdout)
    again = json.loads(
        run("fit", eruptions, *COLUMNS, "-k", 4, "--json", "-q", "--seed", first["seed"]).stdout
    )
    assert again["elbo_trace"] == first["elbo_trace"]


@pytest.mark.slow
def test_csv_parquet_pattern_and_query_are_the_same_rows(run, eruptions, faithful):
    options = ("--seed", 0, "-q", "--json")
    elbos = {
        json.loads(run("fit", *source, *options).stdout)["elbo"]
        for source in (
            (eruptions, *COLUMNS),
            (faithful,),
            (faithful.parent,),
            (str(faithful.parent / "*.parquet"),),
            ("--sql", f"SELECT eruptions, waiting FROM '{faithful}'"),
            (eruptions, "--sql", "SELECT eruptions, waiting FROM data"),
        )
    }
    assert len(elbos) == 1


@pytest.mark.usefixtures("figures_of_factors")
def test_a_saved_model_is_the_fit(run, eruptions, tmp_path):
    result = run("fit", eruptions, *COLUMNS, "--seed", 0, "-o", tmp_path / "m.caviar")
    assert f"saved in {tmp_path / 'm.caviar'}" in result.stdout
    loaded = cv.load(tmp_path / "m.caviar")
    table = cv.data.Table(X, ("eruptions", "waiting"))
    np.testing.assert_array_equal(
        loaded.predict_proba(table), cv.BayesianGaussianMixture(2, random_state=0).fit(X).predict_proba(X)
    )
    about = loaded.about_
    assert about["columns"] == ["eruptions", "waiting"]
    assert (about["rows"], about["seed"], about["source"]) == (272, 0, str(eruptions))
    assert about["column_summary"]["waiting"]["max"] == 96.0


@pytest.mark.slow
def test_a_picture_is_drawn(run, eruptions, tmp_path):
    result = run("fit", eruptions, *COLUMNS, "--picture", tmp_path / "m.png")
    assert f"plot in {tmp_path / 'm.png'}" in result.stdout
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_names_with_commas_stand_in_quotes(run, tmp_path):
    table = tmp_path / "hostile.csv"
    hostile = '"a, b","c""d","[red]\x1b[2J"\n' + "".join(f"{i},{i * i % 7},{-i}\n" for i in range(30))
    table.write_text(hostile)
    result = run("fit", table, "--columns", '"a, b","c""d"', "--json", "-q")
    assert json.loads(result.stdout)["columns"] == ["a, b", 'c"d']
    shown = run("fit", table, "-q", "--seed", 0).stdout
    assert "[red]\\x1b[2J" in shown
    assert "\x1b" not in shown, "a name must not command the terminal"


def test_a_fit_that_does_not_settle_is_told(run, eruptions):
    result = run("fit", eruptions, *COLUMNS, "-k", 5, "--max-iter", 2, "--tol", 0, "--seed", 0, "-q")
    assert result.exit_code == 0
    assert "warning: the fit has not converged after 2 iterations; raise --max-iter or --tol" in result.stderr
    assert "max_iter: " in result.stdout


@pytest.mark.usefixtures("figures_of_factors")
def test_a_constant_column_is_told(run, tmp_path):
    cv.data.write_table(
        tmp_path / "t.csv", {"a": np.random.default_rng(0).normal(size=30), "b": np.full(30, 7.0)}
    )
    result = run("fit", tmp_path / "t.csv", "-q", "--seed", 0)
    assert result.exit_code == 0
    assert result.stderr == (
        "warning: column b is constant, so it does not distinguish rows; leave it out by --columns\n"
    )


@pytest.mark.thinned(4)
@pytest.mark.parametrize("non_numeric", [(), ("--non-numeric", "categorical")])
@pytest.mark.parametrize("is_large", [False, True])
def test_a_column_that_numbers_the_rows_is_told(run, tmp_path, monkeypatch, non_numeric, is_large):
    if is_large:
        monkeypatch.setattr("caviar.cli.tables.rows.LARGE", 0)
    rng = np.random.default_rng(0)
    table = tmp_path / "t.csv"
    columns = {"id": np.arange(1.0, 61), "shuffled": rng.permutation(60) + 0.0, "a": rng.normal(size=60)}
    cv.data.write_table(table, columns)
    result = run("fit", table, *non_numeric, "-q", "--seed", 0, "-k", 1, "-o", tmp_path / "m.caviar")
    assert result.exit_code == 0
    assert result.stderr == "".join(
        f"warning: column {name} seems to number the rows; an index holds no information, so leave it out by --columns "
        f"if it is one\n"
        for name in ("id", "shuffled")
    )
    for data in ((), (table,)):
        told = run("report", tmp_path / "m.caviar", *data, "-o", tmp_path / "r.html", "--json")
        remarks = {column["name"]: column["remarks"] for column in json.loads(told.stdout)["quality"]}
        number = ["it seems to number the rows: an index holds no information, and is better left out"]
        assert remarks == {"id": number, "shuffled": number, "a": []}


@pytest.mark.slow
def test_one_row_is_one_row(run, tmp_path):
    (tmp_path / "one.csv").write_text("a,b\n1,2\n")
    shown = run("fit", tmp_path / "one.csv", "-k", 1, "-q", "--seed", 0, "-o", tmp_path / "m.caviar").stdout
    assert "1 component, 1 row\n" in shown
    told = run("predict", tmp_path / "m.caviar", tmp_path / "one.csv", "-o", tmp_path / "out.csv").stdout
    assert told == f"1 row in {tmp_path / 'out.csv'}\n"


def test_unusual_tables_of_results_stay_readable(run, tmp_path):
    rng = np.random.default_rng(0)
    cv.data.write_table(tmp_path / "wide.csv", {f"c{j}": rng.normal(size=60) for j in range(90)})
    lines = run(
        "fit", tmp_path / "wide.csv", "-k", 12, "-q", "--seed", 0, "--max-iter", 3
    ).stdout.splitlines()
    assert len(lines) < 220
    assert "... and 10 lighter components; --json shows all" in lines


def test_read_table_and_the_command_line_name_the_same_row(run, tmp_path):
    table = tmp_path / "gap.csv"
    table.write_text("a,b\n1,2\n3,inf\n5,6\n")
    result = run("fit", table)
    with pytest.raises(cv.DataError) as caught:
        read_table(table, missing_ok=True)
    # what to do is said in the words of each
    told, remedy = str(caught.value).split(" To leave them out, ")
    assert result.stderr.startswith(f"error: {told} To leave them out, say --sql '")
    assert remedy.startswith("read the query (sql=")
    assert "row 1, line 3" in result.stderr


@pytest.mark.slow
def test_a_structure_of_covariances_and_auto_are_passed_on(run, eruptions):
    result = run(
        "fit",
        eruptions,
        "--columns",
        "eruptions,waiting",
        "-k",
        "auto",
        "--covariance",
        "tied",
        "--seed",
        0,
        "-q",
        "--json",
    )
    expected = cv.BayesianGaussianMixture("auto", covariance_type="tied", random_state=0).fit(X)
    told = json.loads(result.stdout)
    assert told["elbo"] == expected.elbo_
    assert told["covariance_type"] == "tied"
    assert len(told["components"]) == expected.n_components_ == 3
    words = run(
        "fit",
        eruptions,
        "--columns",
        "eruptions,waiting",
        "-k",
        "auto",
        "--covariance",
        "tied",
        "--seed",
        0,
        "-q",
    ).stdout
    assert "with tied covariances, 3 components" in words
    assert "moves tried" in words


@pytest.mark.parametrize("components", ["0", "-1", "two", "1.5"])
def test_an_impossible_number_of_components_is_refused(run, eruptions, components):
    result = run("fit", eruptions, f"--components={components}")
    assert result.exit_code == 2
    assert "a whole number of at least 1, or auto" in result.stderr


@pytest.mark.usefixtures("figures_of_factors")
def test_missing_entries_are_integrated_out_and_told(run, tmp_path):
    rows = ["a,b", *(f"{a},{b}" for a, b in X[:60].tolist())]
    rows[3], rows[9] = "3.5,", ",70"
    (tmp_path / "holes.csv").write_text("\n".join(rows))
    result = run("fit", tmp_path / "holes.csv", "--seed", 0, "-q", "-o", tmp_path / "m.caviar")
    assert result.exit_code == 0
    assert "2 missing entries" in result.stdout
    table = np.array([[float(entry or "nan") for entry in row.split(",")] for row in rows[1:]])
    expected = cv.BayesianGaussianMixture(2, random_state=0).fit(table)
    assert f"ELBO {expected.elbo_:.4f}" in result.stdout
    predicted = run("predict", tmp_path / "m.caviar", tmp_path / "holes.csv", "-o", tmp_path / "out.csv")
    assert predicted.exit_code == 0


@pytest.mark.parametrize(
    ("number", "words"), [(1, "1 move tried, 1 accepted: 1 split"), (2, "2 moves tried, ")]
)
def test_moves_are_counted_in_words(number, words):
    moves = [SimpleNamespace(kind="split", accepted=True)] * number
    console = Console(file=io.StringIO(), width=80)
    _say_moves(console, moves)
    assert console.file.getvalue().startswith(words)


def test_numbers_beyond_double_precision_are_refused_without_warnings(run, tmp_path):
    table = tmp_path / "huge.csv"
    table.write_text("a,b\n1,1e300\n2,-1e300\n3,2\n")
    with warnings.catch_warnings(action="error"):
        result = run("fit", table, "-q")
    assert result.exit_code == 2
    assert "column 'b' has the standard deviation 8.16e+299" in result.stderr


def test_the_query_of_a_message_is_quoted_for_the_shell(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text('a;b\n1,5;007\n2,5;7\n"3,0";07\n')
    told = run("fit", "t.csv", "-k", 1, "-q").stderr
    quoted = told[told.index("--sql ") :]
    assert shlex.split(quoted)[1] == """SELECT * REPLACE (replace("a", ',', '.')::DOUBLE AS "a") FROM data"""
    told = run("fit", "t.csv", "--columns", "b", "-k", 1, "-q").stderr
    assert """say --sql 'SELECT * REPLACE ("b"::DOUBLE AS "b") FROM data'. No other column""" in told
