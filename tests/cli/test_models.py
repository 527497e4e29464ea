"""``caviar report``, ``sample``, ``compare`` and ``check``: what follows a fit, and the choice of one."""

import io
import json

import numpy as np
import pytest

import caviar as cv
from caviar.data import read_table, write_table

pd = pytest.importorskip("pandas")

X = cv.datasets.load_faithful().values
ABOUT = {"columns": ["eruptions", "waiting"], "rows": 272, "source": "eruptions.csv", "seed": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def model(folder):
    cv.BayesianGaussianMixture(2, n_init=3, random_state=0).fit(X).save(folder / "m.caviar", about=ABOUT)
    return folder / "m.caviar"


@pytest.fixture(scope="module")
def em(folder):
    cv.GaussianMixture(2, random_state=0).fit(X).save(folder / "em.caviar", about=ABOUT)
    return folder / "em.caviar"


@pytest.mark.usefixtures("figures_of_factors")
def test_a_report_of_model_and_data(run, model, eruptions, tmp_path):
    result = run("report", model, eruptions, "-o", tmp_path / "r.html")
    assert (result.exit_code, result.stdout) == (0, f"report in {tmp_path / 'r.html'}\n")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "272 rows of" in text
    assert "Nothing that was tested speaks against this fit." in text


def test_a_report_without_data_says_so(run, model, tmp_path):
    result = run("report", model, "-o", tmp_path / "r.html")
    assert "without DATA it shows no rows" in result.stdout
    assert "No data were given" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_programs_are_told_what_a_report_says(run, model, eruptions, tmp_path, monkeypatch):
    from caviar.report.html import page

    gathered, parts = page._gathered, []
    monkeypatch.setattr(page, "_gathered", lambda *given: parts.append(given) or gathered(*given))
    found = json.loads(run("report", model, eruptions, "-o", tmp_path / "r.html", "--json").stdout)
    assert len(parts) == 1
    assert found["report"] == str(tmp_path / "r.html")
    assert found["verdict"]["level"] == "good"
    assert found["rows"]["n"] == 272
    labels = json.loads(run("predict", model, eruptions, "-o", tmp_path / "out.csv", "--json").stdout)
    assert labels == {
        "rows": 272,
        "output": str(tmp_path / "out.csv"),
        "columns": ["label", "probability_0", "probability_1", "log_density"],
    }


def test_a_report_is_a_page(run, model, tmp_path):
    result = run("report", model, "-o", tmp_path / "r.png")
    assert result.exit_code == 2
    assert "its name must end with .html" in result.stderr


@pytest.mark.usefixtures("figures_of_factors")
def test_a_report_shows_the_command_that_fits_the_same_again(run, eruptions, tmp_path):
    options = ["--columns", "waiting,eruptions", "-k", "3", "--covariance", "diag", "-q"]
    run("fit", eruptions, *options, "-o", tmp_path / "m.caviar")
    first = cv.load(tmp_path / "m.caviar")
    command = first.about_["command"]
    run("report", tmp_path / "m.caviar", "-o", tmp_path / "r.html")
    assert command in (tmp_path / "r.html").read_text(encoding="utf-8")
    words = command.split()
    assert words[:2] == ["caviar", "fit"]
    run(*words[1:], "-q", "-o", tmp_path / "again.caviar")
    again = cv.load(tmp_path / "again.caviar")
    assert again.elbo_ == first.elbo_
    assert again.about_["columns"] == ["waiting", "eruptions"]
    assert first.about_["versions"]["caviar"] == cv.__version__


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_sample_is_that_of_the_estimator_under_the_names_of_the_columns(run, model, tmp_path, name):
    result = run("sample", model, "-n", 50, "--seed", 3, "-o", tmp_path / name)
    assert result.exit_code == 0
    written = read_table(tmp_path / name)
    assert written.columns == ("eruptions", "waiting")
    np.testing.assert_array_equal(written.values, cv.load(model).sample(50, random_state=3)[0])


def test_a_sample_goes_to_standard_output_and_into_the_next_command(run, model):
    sampled = run("sample", model, "-n", 20, "--seed", 1, "--with-component")
    assert sampled.stdout.splitlines()[0] == '"eruptions","waiting","component"'
    assert len(sampled.stdout.splitlines()) == 21
    labelled = run("predict", model, "-", "-o", "-", input=sampled.stdout)
    assert (labelled.exit_code, labelled.stderr) == (0, "")
    drawn = [int(line.rsplit(",", 1)[1]) for line in sampled.stdout.splitlines()[1:]]
    told = [int(line.split(",", 1)[0]) for line in labelled.stdout.splitlines()[1:]]
    assert np.mean(np.equal(drawn, told)) > 0.9


@pytest.mark.usefixtures("figures_of_factors")
def test_parquet_comes_by_standard_input_too(run, faithful):
    result = run("fit", "-", "-q", "--json", "--seed", 0, input=faithful.read_bytes())
    document = json.loads(result.stdout)
    assert (document["rows"], document["source"]) == (272, "standard input")


def test_empty_standard_input_is_refused(run, model):
    result = run("predict", model, "-", "-o", "-", input="")
    assert result.exit_code == 2
    assert "expected a table on standard input; it is empty" in result.stderr


@pytest.mark.usefixtures("figures_of_factors")
def test_a_column_of_the_model_is_not_overwritten_by_its_component(run, tmp_path):
    fitted = cv.BayesianGaussianMixture(1, random_state=0).fit(X)
    fitted.save(tmp_path / "m.caviar", about={"columns": ["component", "b"]})
    result = run("sample", tmp_path / "m.caviar", "--with-component")
    assert result.exit_code == 2
    assert "already has a column 'component'" in result.stderr


@pytest.mark.usefixtures("figures_of_factors")
def test_a_comparison_is_that_of_the_library(run, eruptions, tmp_path):
    result = run(
        "compare", eruptions, "--columns", "eruptions,waiting", "-k", "1-2", "--covariance", "full,tied",
        "--held-out", 0.25, "--json", "-o", tmp_path / "best.caviar", "-q",
    )  # fmt: skip
    found = json.loads(result.stdout)
    expected = cv.compare_mixtures(X, (1, 2), ("full", "tied"), held_out=0.25, random_state=0)
    assert [row["elbo"] for row in found["rows"]] == [row.elbo for row in expected.rows]
    assert [row["held_out"] for row in found["rows"]] == [row.held_out for row in expected.rows]
    assert expected.rows[found["best"]] is expected.best_row
    assert cv.load(tmp_path / "best.caviar").elbo_ == expected.best.elbo_


def test_a_comparison_is_a_table_with_the_highest_elbo_first(run, faithful):
    lines = run("compare", faithful, "-k", "1,2").stdout.splitlines()
    assert lines[0].split()[:2] == ["components", "covariance"]
    assert lines[1].split()[0] == "2"
    assert "<- highest ELBO" in lines[1]


def test_objectives_that_mean_different_things_are_not_ranked(run, model, em, faithful):
    result = run("compare", faithful, "--model", model, "--model", em)
    assert "highest" not in result.stdout
    assert "cannot be compared" in result.stdout
    found = json.loads(run("compare", faithful, "--model", model, "--model", em, "--json").stdout)
    assert found["best"] is None
    assert [row["held_out"] for row in found["rows"]] == [cv.load(path).score(X) for path in (model, em)]
    assert found["rows"][0]["corrected"] == pytest.approx(cv.load(model).elbo_ + np.log(2))
    assert found["rows"][1]["corrected"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-k", "3-1"], "expected numbers such as 1-8"),
        (["-k", "0"], "expected numbers such as 1-8"),
        (["--covariance", "full,round"], "'round' is not one of full"),
        (["--model", "m.caviar", "-o", "best.caviar"], "--output saves a new fit"),
    ],
)
def test_what_cannot_be_compared_is_refused(run, faithful, options, message):
    result = run("compare", faithful, *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.usefixtures("figures_of_factors")
def test_errors_and_warnings_of_a_comparison_name_the_model(run, model, tmp_path):
    # a second model of the same name, of a column of words besides
    penguins = {"waiting": X[:60, 1], "kind": np.where(X[:60, 0] < 3, "short", "long").tolist()}
    other = tmp_path / "m.caviar"
    cv.MixedMixture(2, random_state=0).fit(pd.DataFrame(penguins)).save(other)
    write_table(
        tmp_path / "both.csv", {"waiting": X[:3, 1], "eruptions": X[:3, 0], "kind": ["long", "short", "huge"]}
    )
    told = run("compare", tmp_path / "both.csv", "--model", model, "--model", other)
    assert told.exit_code == 0
    assert told.stderr.startswith(
        f"warning: {other}: column kind has values that the model was not fitted to"
    )
    write_table(tmp_path / "less.csv", {"waiting": X[:3, 1], "kind": ["long", "short", "long"]})
    refused = run("compare", tmp_path / "less.csv", "--model", other, "--model", model)
    assert refused.exit_code == 2
    assert refused.stderr.startswith(
        f"error: {tmp_path / 'less.csv'} has no column 'eruptions', which {model} needs; its columns are"
    )
    write_table(tmp_path / "words.csv", {"waiting": ["a", "b"], "eruptions": [1.0, 2.0]})
    unread = run("compare", tmp_path / "words.csv", "--model", model, "--model", other)
    assert unread.stderr.startswith(f"error: {model}: {tmp_path / 'words.csv'}: column 'waiting'")


@pytest.mark.slow
def test_a_check_passes_in_words(run, model, faithful):
    result = run("check", model, faithful, "--rows", 60)
    assert result.exit_code == 0
    passed = [line for line in result.stdout.splitlines() if line.startswith("passed")]
    assert len(passed) == 4
    assert all(len(line.split()) > 6 for line in passed), "the name of a check, and no claim"
    assert "What the fit reports is true of these rows." in result.stdout


@pytest.mark.usefixtures("figures_of_factors")
def test_a_check_leaves_out_rows_with_missing_entries_and_says_so(run, model, tmp_path):
    rows = X.copy()
    rows[:72, 0] = np.nan
    write_table(
        tmp_path / "gaps.csv",
        {"eruptions": np.where(np.isnan(rows[:, 0]), None, rows[:, 0]), "waiting": rows[:, 1]},
    )
    result = run("check", model, tmp_path / "gaps.csv", "--json", "--rows", 40)
    assert json.loads(result.stdout)["rows"] == 40
    assert "72 rows with missing entries are left out" in result.stderr


def test_a_check_that_fails_has_status_1(run, model, faithful, monkeypatch):
    failed = cv.testing.VerificationReport((cv.testing.Check("elbo", 3.0, 0.1, False, "off"),))
    monkeypatch.setattr(cv.testing, "check_model", lambda *arguments, **keywords: failed)
    result = run("check", model, faithful)
    assert result.exit_code == 1
    assert "FAILED  The ELBO that was reported" in result.stdout


@pytest.mark.parametrize(
    "command", ["fit", "predict", "show", "report", "sample", "compare", "check", "demo"]
)
def test_every_help_text_teaches_by_example(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"caviar {command} " in result.stdout
    assert "Examples:" in result.stdout


def test_the_shell_can_complete_commands(run):
    assert "--install-completion" in run("--help").stdout


def test_a_file_that_is_none_of_ours_is_refused_everywhere(run, tmp_path, faithful):
    (tmp_path / "bad.caviar").write_bytes(b"nothing")
    for command in (["report", "X", "-o", tmp_path / "r.html"], ["sample", "X"], ["check", "X", faithful]):
        words = [tmp_path / "bad.caviar" if word == "X" else word for word in command]
        result = run(*words)
        assert result.exit_code == 2
        assert len(result.stderr.strip().splitlines()) <= 2


@pytest.mark.slow  # tests/cli/test_checks.py has other posteriors
def test_posteriors_of_stated_models_are_checked(run, tmp_path, faithful):
    x = cv.Normal("x", cv.Normal("mean", 0, 1), cv.Gamma("tau", 2, 2), plates=cv.Plate("obs"))
    cv.Model(x).fit({"x": X[:, 0]}, seed=0).save(tmp_path / "p.caviar")
    result = run("check", tmp_path / "p.caviar", "--sql", f"SELECT eruptions AS x FROM '{faithful}'")
    assert result.exit_code == 0, result.stderr


def test_the_seed_that_is_told_gives_the_same_rows(run, model, tmp_path):
    told = run("sample", model, "-n", 20, "-o", tmp_path / "a.csv", "--json")
    seed = json.loads(told.stdout)["seed"]
    run("sample", model, "-n", 20, "--seed", seed, "-o", tmp_path / "b.csv")
    run("sample", model, "-n", 20, "--seed", seed + 1, "-o", tmp_path / "c.csv")
    first, same, other = ((tmp_path / f"{name}.csv").read_text() for name in "abc")
    assert first == same != other


def test_standard_output_holds_nothing_but_the_table(run, model):
    table = run("sample", model, "-n", 3, "--seed", 0).stdout
    numbers = np.genfromtxt(io.StringIO(table), delimiter=",", skip_header=1)
    assert numbers.shape == (3, 2)
