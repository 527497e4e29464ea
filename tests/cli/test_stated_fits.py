"""``caviar fit --model FILE.py:FUNCTION`` fits a model that is stated in Python; ``report`` writes beside the model."""

import json
import subprocess
import sys

import numpy as np
import pytest

import caviar as cv
from caviar.data import write_table

STATED = """
import caviar as cv

def build():
    obs, school = cv.Plate("obs"), cv.Plate("school")
    level = cv.Normal("level", 0, 0.1, plates=school)
    return cv.Model(cv.Normal("y", level[cv.Data("school", plates=obs)], 1.0, plates=obs))

def other():
    return 3

def wrong():
    raise ValueError("no")
"""
SCHOOLS = np.array(["Elm", "Oak", "Elm", "Oak", "Oak"])
Y = np.array([1.0, 4.0, 1.5, 3.5, 4.5])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(STATED)
    write_table(tmp_path / "pupils.csv", {"school": SCHOOLS, "y": Y, "note": SCHOOLS})
    return tmp_path


def test_the_fit_is_that_of_python(run, folder):
    result = run(
        "fit", "pupils.csv", "--model", "model.py:build", "-o", "m.caviar", "--seed", 0, "--json", "-q"
    )
    assert result.exit_code == 0
    assert "running the Python code of model.py; use only files that you trust" in result.stderr
    found = cv.load("m.caviar")
    assert found.names.plate("school") == ("Elm", "Oak")
    sums = np.array([2.5, 12.0]) / (0.1 + np.array([2, 3]))
    np.testing.assert_allclose(found["level"].mean, sums)
    told = json.loads(result.stdout)
    assert told["saved"] == "m.caviar"
    assert told["command"] == "caviar fit pupils.csv --model model.py:build --seed 0"
    assert told["versions"] == cv.report.versions() == found.data_summary["about"]["versions"]
    told_of_report = cv.report.gather(found)
    assert told_of_report["fit"]["fitted_with"] == cv.report.versions()
    assert told["elbo"] == pytest.approx(found.elbo)
    assert [entry["at"] for entry in told["entries"]] == ["school Elm", "school Oak"]


@pytest.mark.parametrize("stated", ["", ', names=["0", "1", "10", "2"]'])
def test_names_that_look_like_numbers_are_not_taken_for_positions(run, folder, stated):
    """Predictions took the place of a name for a name: '2', which is in place 3, was refused or was that of '3'."""
    (folder / "model.py").write_text(STATED.replace('cv.Plate("school")', f'cv.Plate("school"{stated})'))
    names, y = np.array(["0", "1", "10", "2"] * 3), np.array([0.0, 1.0, 10.0, 2.0] * 3)
    write_table("t.parquet", {"school": names, "y": y})
    write_table("t.csv", {"school": names, "y": y})
    for file in ("t.parquet", "t.csv") if stated else ("t.parquet",):
        fit = run("fit", file, "--model", "model.py:build", "-o", "m.caviar", "--seed", 0, "-q")
        assert fit.exit_code == 0, fit.stderr
        predicted = run("predict", "m.caviar", file, "-o", "p.csv", "-q")
        assert predicted.exit_code == 0, predicted.stderr
        np.testing.assert_allclose(cv.data.read_table("p.csv", columns=["y_mean"]).values[:, 0], y * 3 / 3.1)
        assert "is true of these rows" in run("check", "m.caviar", file, "-q").stdout


def test_a_fit_that_has_not_converged_says_so_and_show_tells_its_origin(run, folder):
    result = run(
        "fit", "pupils.csv", "--model", "model.py:build", "-o", "m.caviar", "--max-iter", 1, "--seed", 0
    )
    assert "warning: the fit has not converged after 1 iteration; raise --max-iter or --tol" in result.stderr
    assert run("show", "m.caviar").stdout.endswith("fitted to pupils.csv\nseed 0\n")


def test_arrays_of_a_numpy_file(run, folder):
    np.savez(folder / "a.npz", y=Y, school=SCHOOLS)
    assert run("fit", "a.npz", "--model", "model.py:build", "-o", "m.caviar", "-q").exit_code == 0
    assert cv.load("m.caviar")["level"].mean.shape == (2,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.py:nothing"], "has no function 'nothing'; it has build, other, wrong"),
        (["model.py:other"], "must return a caviar.Model; it returned 'int'"),
        (["model.py:wrong"], "wrong() of model.py fails: ValueError: no"),
        (["gone.py:build"], "there is no file gone.py"),
        (["model.py:build", "-k", "3"], "--components does not belong to --model model.py:build"),
        (["model.py:build", "--covariance", "diag"], "--covariance does not belong"),
    ],
)
def test_what_is_refused(run, folder, arguments, message):
    result = run("fit", "pupils.csv", "-q", "--model", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_report_is_beside_its_model(run, folder):
    run("fit", "pupils.csv", "--model", "model.py:build", "-o", "m.caviar", "-q")
    result = run("report", "m.caviar")
    assert result.stdout.startswith("report in m.html")
    assert (folder / "m.html").exists()


@pytest.mark.usefixtures("figures_of_factors")
def test_models_of_all_kinds_are_compared_by_their_densities(run, folder):
    write_table(folder / "steps.csv", {"x": np.tile([0.0, 0.1, 5.0, 5.1], 10)})
    run("fit", "steps.csv", "-o", "mixture.caviar", "-q", "--seed", 0)
    run("fit", "steps.csv", "--model", "hmm", "-o", "hmm.caviar", "-q", "--seed", 0)
    result = run("compare", "steps.csv", "--model", "mixture.caviar", "--model", "hmm.caviar", "--json")
    rows = json.loads(result.stdout)["rows"]
    table = cv.data.read_table("steps.csv")
    assert [row["held_out"] for row in rows] == [
        pytest.approx(cv.load("mixture.caviar").score(table)),
        pytest.approx(cv.load("hmm.caviar").score(table)),
    ]


def test_a_missing_file_is_told_before_anything_is_imported(folder):
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom caviar.cli.app import app\n"
        "for command in (['show', 'gone.caviar'], ['report', 'gone.caviar']):\n"
        "    result = CliRunner().invoke(app, command)\n"
        "    assert result.exit_code == 2 and 'there is no file gone.caviar' in result.stderr, result.stderr\n"
        "assert not {'numpy', 'sklearn', 'scipy'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_columns_of_a_vector_without_names_are_asked_for_in_words_of_the_command_line(run, folder):
    (folder / "line.py").write_text(
        "import caviar as cv\nimport numpy as np\n\ndef build():\n    obs = cv.Plate('obs')\n"
        "    b = cv.MultivariateNormal('b', np.zeros(2), np.eye(2))\n"
        "    return cv.Model(cv.Normal('y', cv.dot(cv.Data('X', plates=obs), b), 1.0, plates=obs))\n"
    )
    write_table(folder / "line.csv", {"X_0": Y, "X_1": Y**2, "y": Y})
    result = run("fit", "line.csv", "--model", "line.py:build", "-q")
    assert result.exit_code == 2
    assert "where the entries of 'X' are stated, or give the arrays as a NumPy .npz file" in result.stderr
    assert "mapping" not in result.stderr


def test_columns_of_texts_are_named(run, folder):
    """The message was about the column 'values' of an Arrow table, which the user does not have."""
    write_table(folder / "texts.csv", {"school": SCHOOLS, "y": np.array(["a", "b", "a", "b", "b"])})
    result = run("fit", "texts.csv", "-q", "--model", "model.py:build")
    assert result.exit_code == 2
    assert "the data of 'y' must be numbers; got the type string, first 'a'" in result.stderr


CLASSES = """
import caviar as cv

def build():
    return cv.models.latent_class_analysis({"smokes": 2, "drink": 3}, 2)
"""


@pytest.mark.thinned(2)
@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    "smokes", [np.array(["no", "yes"]), np.array([False, True])], ids=["texts", "truths"]
)
def test_classes_of_texts_and_truths_know_the_values_of_new_rows(run, folder, kind, smokes):
    """All of them counted as missing: a posterior of classes was opened with places, not names, for its categories."""
    (folder / "model.py").write_text(CLASSES)
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, 60)
    data = {
        "smokes": smokes[(rng.random(60) < 0.1 + 0.8 * hidden).astype(int)],
        "drink": np.array(["beer", "tea", "wine"])[np.where(hidden, rng.integers(0, 2, 60), 2)],
    }
    write_table(f"t.{kind}", data)
    assert (
        run("fit", f"t.{kind}", "--model", "model.py:build", "-o", "m.caviar", "--seed", 0, "-q").exit_code
        == 0
    )
    predicted = run("predict", "m.caviar", f"t.{kind}", "-o", "p.csv", "-q")
    assert predicted.exit_code == 0
    assert "warning" not in predicted.stderr
    found = cv.data.read_table("p.csv", columns=["probability_0"]).values[:, 0]
    wanted = (
        cv.load("m.caviar")
        .local(
            {
                "smokes": (data["smokes"] == smokes[1]).astype(float),
                "drink": np.searchsorted(["beer", "tea", "wine"], data["drink"]).astype(float),
            }
        )["z"]
        .probabilities[:, 0]
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert "is true of these rows" in run("check", "m.caviar", f"t.{kind}", "-q").stdout
    if smokes[0] == "no":
        drawn = run("sample", "m.caviar", "-n", 5, "--seed", 0, "-q").stdout
        assert set(drawn.split()[1].split(",")) <= {'"no"', '"yes"', '"beer"', '"tea"', '"wine"'}
