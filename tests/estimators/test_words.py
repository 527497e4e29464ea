"""Words in a table: refused by name where numbers are needed; identifiers are no categories."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import caviar as cv

pytestmark = pytest.mark.first_guess

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")


def table(n_rows: int = 60):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.normal(40, 5, n_rows),
            "city": rng.choice(["Basel", "Genf"], n_rows),
            "income": rng.normal(9, 1, n_rows),
        }
    )


@pytest.mark.parametrize("kind", [cv.BayesianGaussianMixture, cv.GaussianMixture])
def test_a_mixture_of_gaussians_names_the_column_of_words(kind):
    X = table()
    told = "column 'city' of X does not contain numbers: it has '.*' in row 0; choose .* age, income, or use Mixed"
    with pytest.raises(cv.DataError, match=told):
        kind(2, random_state=0).fit(X)
    polars = pytest.importorskip("polars")
    with pytest.raises(cv.DataError, match=told):
        kind(2, random_state=0).fit(polars.DataFrame(X.to_dict("list")))
    fitted = kind(2, random_state=0).fit(X[["age", "income"]])
    with pytest.raises(
        cv.DataError, match="column 'age' of X does not contain numbers: it has 'old' in row 3"
    ):
        fitted.predict(X[["age", "income"]].astype(object).assign(age=[1, "2", 3, "old", *range(56)]))


def test_texts_that_are_numbers_are_no_words():
    X = table()[["age", "income"]].map(str)
    assert cv.BayesianGaussianMixture(2, random_state=0).fit(X).n_features_in_ == 2


@pytest.mark.slow
def test_a_column_of_identifiers_is_no_category_unless_the_user_says_so():
    X = table().assign(joined=pd.date_range("2024-01-01", periods=60).astype(str))
    with pytest.raises(cv.DataError, match="column 'joined' has more than 50 different values"):
        cv.MixedMixture(2, random_state=0).fit(X)
    told = cv.MixedMixture(2, random_state=0, kinds={"joined": "category"}).fit(X)
    assert len(told.categories_["joined"]) == 60
    cv.MixedMixture(2, random_state=0).fit(X[:50])


@pytest.mark.slow
def test_a_column_that_numbers_the_rows_is_remarked():
    X = table().assign(id=np.arange(1, 61))
    with pytest.warns(cv.CaviarWarning, match="column id seems to number the rows"):
        fitted = cv.MixedMixture(2, random_state=0).fit(X)
    fitted.predict(X)  # of new rows nothing is said: a warning is an error here


def test_words_are_labels_and_no_numbers():
    model = cv.models.varying_coefficients(1, 2)
    data = {"y": [1.0, 2.0], "X": [[1.0], [1.0]]}
    places, _ = pd.factorize(pd.Series(["S01", "S02"]))
    by_name = model.fit({**data, "group": ["S01", "S02"]}, seed=0)
    assert by_name.elbo == model.fit({**data, "group": places}, seed=0).elbo
    with pytest.raises(
        cv.DataError, match=r"the data of 'y' must be numbers; got 'no'.* Only labels of a Categorical"
    ):
        model.fit({**data, "group": places, "y": ["no", "yes"]})


def test_a_mixture_of_gaussians_names_the_column_of_an_array_of_words():
    with pytest.raises(cv.DataError, match="column 1 of X does not contain numbers: it has 'a' in row 0"):
        cv.GaussianMixture(2).fit(np.array([["1", "a"], ["2", "b"], ["3", "b"]]))


@pytest.mark.parametrize("emission", ["gaussian", "poisson"])
def test_a_hidden_markov_model_of_texts_is_told_its_own_emission(emission):
    words = pd.DataFrame({"count": [1.0, 2.0, 1.0] * 10, "kind": ["u", "v", "w"] * 10})
    says = "'u' in row 0; .*give emission='categorical', which takes one column of categories$"
    with pytest.raises(cv.DataError, match=says):
        cv.HiddenMarkovModel(2, emission=emission).fit(words)
    cv.HiddenMarkovModel(2, emission="categorical", random_state=0).fit(words[["kind"]])


TABLE = cv.data.Table(cv.datasets.load_faithful().values, ("eruptions", "waiting"))


@pytest.mark.parametrize("table", [TABLE, cv.datasets.load_faithful()], ids=["read", "shipped"])
@pytest.mark.parametrize(
    "estimator",
    [cv.GaussianMixture(2), cv.MixedMixture(2), cv.HiddenMarkovModel(2)],
    ids=lambda own: type(own).__name__,
)
def test_a_table_of_caviar_has_names_as_a_frame_has(estimator, table):
    fit = clone(estimator).set_params(random_state=0, max_iter=100).fit(table)
    assert fit.feature_names_in_.tolist() == ["eruptions", "waiting"]
    frame = pd.DataFrame(table.values, columns=list(table.columns))
    of_frame = clone(estimator).set_params(random_state=0, max_iter=100).fit(frame)
    assert fit.elbo_ == of_frame.elbo_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(fit.predict(table), fit.predict(frame))
        # and an array of the fit without names takes the table
        bare = clone(estimator).set_params(random_state=0, max_iter=100).fit(table.values)
        bare.predict(TABLE)
    for names in (("waiting", "eruptions"), ("eruptions", "wait")):
        with pytest.raises(
            cv.DataError, match="the columns must be those of the fit, eruptions, waiting; got"
        ):
            fit.predict(cv.data.Table(TABLE.values, names))
    with pytest.raises(cv.DataError, match="the fit had 2 columns; got 1, eruptions"):
        bare.predict(cv.data.Table(TABLE.values[:, :1], ("eruptions",)))


def test_a_table_of_caviar_with_words_is_refused_by_what_takes_numbers():
    table = cv.data.Table(np.array([[1.0, 0.0], [2.0, 1.0], [2.5, 1.0]]), ("a", "kind"), {"kind": ("x", "y")})
    with pytest.raises(
        cv.DataError,
        match=r"column 'kind' of X does not contain numbers: it has 'x' in row 0; .*MixedMixture",
    ):
        cv.BayesianGaussianMixture(1).fit(table)


@pytest.mark.parametrize("make", [pd.DataFrame, pa.Table.from_pydict], ids=["pandas", "arrow"])
@pytest.mark.parametrize("held_out", [None, 0.2])
def test_the_best_of_a_comparison_has_the_names_of_the_frame(make, held_out):
    table = make(dict(zip(TABLE.columns, TABLE.values.T, strict=True)))
    found = cv.compare_mixtures(table, 1, "full", held_out=held_out, random_state=0, n_init=1)
    assert found.best.feature_names_in_.tolist() == ["eruptions", "waiting"]
    of_array = cv.compare_mixtures(TABLE.values, 1, "full", held_out=held_out, random_state=0, n_init=1)
    assert found.best.elbo_ == of_array.best.elbo_
