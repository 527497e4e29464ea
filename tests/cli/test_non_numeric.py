"""Columns without numbers are refused, left out, or turned into 0 and 1, as the user says; never in silence."""

import json

import numpy as np
import pytest

import caviar as cv
from caviar.data import numeric_query, read_table, write_table

pytestmark = pytest.mark.usefixtures("figures_of_factors")

X = cv.datasets.load_faithful().values
# a search for the number of components goes on and on where a density has no bound
TWO_OF_INDICATORS = ("-k", 2, "--non-numeric", "one-hot", "--covariance")


def test_by_default_they_are_refused_and_the_choices_are_named(run, eruptions):
    result = run("fit", eruptions)
    assert result.exit_code == 2
    assert "column 'kind' does not hold numbers" in result.stderr
    assert "--non-numeric categorical (best for a mixture" in result.stderr


def test_dropped_columns_are_named(run, eruptions):
    result = run("fit", eruptions, "--non-numeric", "drop", "--json", "--seed", 0)
    assert json.loads(result.stdout)["columns"] == ["eruptions", "waiting"]
    assert "left out, because not all entries are numbers: kind" in result.stderr


@pytest.mark.slow
def test_quiet_does_not_hide_that_columns_were_left_out(run, eruptions):
    result = run("fit", eruptions, "--non-numeric", "drop", "--seed", 0, "-q")
    assert result.stderr == "warning: left out, because not all entries are numbers: kind\n"


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("covariance", "is_told"), [("full", True), ("diag", True), ("unit", False)])
def test_indicators_in_a_mixture_of_gaussians_are_warned_of(run, eruptions, covariance, is_told):
    """Their variance within a component tends to 0, so that its density has no bound."""
    result = run("fit", eruptions, *TWO_OF_INDICATORS, covariance, "--seed", 0, "-q", "--json")
    assert result.exit_code == 0
    assert ("the columns of 0 and 1 of kind are not Gaussian" in result.stderr) == is_told
    assert ("--non-numeric categorical" in result.stderr) == is_told
    if is_told:
        # what the warning is about: no such spread is in the data
        spreads = [own["standard_deviation"]["kind=long"] for own in json.loads(result.stdout)["components"]]
        assert min(spreads) < 0.01


@pytest.mark.slow
def test_a_comparison_warns_of_indicators_too(run, eruptions):
    result = run("compare", eruptions, "-k", "1,2", "--non-numeric", "one-hot", "--quiet", "--json")
    assert "the columns of 0 and 1 of kind are not Gaussian" in result.stderr


def test_one_hot_columns_are_the_indicators_of_the_values(run, eruptions, tmp_path):
    result = run("fit", eruptions, *TWO_OF_INDICATORS, "diag", "-o", tmp_path / "m.caviar")
    assert result.exit_code == 0
    assert "column kind became 2 columns of 0 and 1: long, short" in result.stderr
    about = cv.load(tmp_path / "m.caviar").about_
    assert about["columns"] == ["kind=long", "kind=short", "eruptions", "waiting"]
    expected = np.column_stack([X[:, 0] >= 3, X[:, 0] < 3, X])
    for name, values in zip(about["columns"], expected.T, strict=True):
        assert about["column_summary"][name]["mean"] == pytest.approx(values.mean())


def test_new_rows_are_turned_into_the_same_columns(run, eruptions, tmp_path):
    run("fit", eruptions, *TWO_OF_INDICATORS, "diag", "-q", "-o", tmp_path / "m.caviar")
    # in this table there is only one of the values, and one that the model does not know
    new = {"waiting": X[:3, 1], "kind": ["short", "middling", None], "eruptions": X[:3, 0]}
    write_table(tmp_path / "new.parquet", new)
    result = run("predict", tmp_path / "m.caviar", tmp_path / "new.parquet", "-o", tmp_path / "out.csv")
    assert result.exit_code == 0
    rows = np.array([[0, 1, *X[0]], [np.nan, np.nan, *X[1]], [np.nan, np.nan, *X[2]]])
    model = cv.load(tmp_path / "m.caviar")
    expected = model.score_samples(cv.data.Table(rows, tuple(model.feature_names_in_)))
    np.testing.assert_allclose(read_table(tmp_path / "out.csv").values[:, -1], expected)


@pytest.mark.slow
def test_the_command_of_a_model_keeps_the_choice(run, eruptions, tmp_path):
    run("fit", eruptions, "--non-numeric", "drop", "-q", "-o", tmp_path / "m.caviar")
    assert "--non-numeric drop" in cv.load(tmp_path / "m.caviar").about_["command"]


def test_nothing_is_said_where_all_columns_hold_numbers(run, faithful):
    result = run("fit", faithful, "--non-numeric", "drop", "--max-iter", 500, "-q", "--json")
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_comparison_takes_the_choice_too(run, eruptions):
    result = run("compare", eruptions, "-k", "1,2", "--non-numeric", "drop", "--json")
    assert result.exit_code == 0
    assert "left out" in result.stderr


def test_names_and_values_are_quoted():
    hostile = "SELECT 1.0 AS a, 'x''); DROP TABLE t; --' AS \"k\"\"ind\""
    found = numeric_query(None, "one-hot", sql=hostile)
    assert found.columns == ("a", "k\"ind=x'); DROP TABLE t; --")
    np.testing.assert_array_equal(read_table(sql=found.sql).values, [[1.0, 1.0]])


def test_too_many_values_are_refused():
    with pytest.raises(cv.DataError, match="more than 50 different values"):
        numeric_query(None, "one-hot", sql="SELECT 1 AS a, 'v' || range AS name FROM range(60)")


def test_a_table_without_any_number_is_refused():
    with pytest.raises(cv.DataError, match="no column holds numbers; its columns are a"):
        numeric_query(None, "drop", sql="SELECT 'x' AS a")
    with pytest.raises(cv.ParameterError, match="'drop', 'one-hot' or 'categorical'"):
        numeric_query(None, "keep", sql="SELECT 1 AS a")
