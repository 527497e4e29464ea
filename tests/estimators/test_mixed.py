"""The mixture of columns of several kinds is the stated model, whatever table its rows come in."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp

import caviar as cv

PENGUINS = cv.datasets.load_penguins()
NAMES = PENGUINS.columns
ARRAYS = {name: PENGUINS.column(name) for name in NAMES}


def in_words(name):
    if name not in PENGUINS.categories:
        return [None if value != value else float(value) for value in ARRAYS[name]]
    words = PENGUINS.categories[name]
    return [None if place != place else words[int(place)] for place in ARRAYS[name]]


ROWS = [list(row) for row in zip(*(in_words(name) for name in NAMES), strict=True)]


@pytest.fixture(scope="module")
def penguins():
    return cv.MixedMixture(3, random_state=0, tol=1e-9).fit(PENGUINS)


def stated(n_components):
    """Return the model by the language alone, under the priors that the estimator takes from the data."""
    component, obs = cv.Plate("component", n_components), cv.Plate("obs")
    weights = cv.Dirichlet("weights", np.full(n_components, 1 / n_components))
    z = cv.Categorical("z", weights, plates=obs)
    numbers = [name for name in NAMES if name not in PENGUINS.categories]
    leaves = []
    for name in numbers:
        prior = (np.nanmean(ARRAYS[name]), 1.0, len(numbers) / 2, np.nanvar(ARRAYS[name]) / 2)
        leaves.append(
            cv.Normal(name, cv.NormalGamma(f"{name}_theta", *prior, plates=component)[z], plates=obs)
        )
    for name, values in PENGUINS.categories.items():
        p = cv.Dirichlet(f"{name}_probabilities", np.ones(len(values)), plates=component)
        leaves.append(cv.Categorical(name, p[z], plates=obs))
    return cv.Model(*leaves)


def test_it_is_the_stated_model(penguins):
    expected = stated(3).fit(ARRAYS, seed=0, tol=1e-9, max_iter=500)
    assert penguins.elbo_ == pytest.approx(expected.elbo, rel=1e-10)
    np.testing.assert_allclose(penguins.weights_, expected["weights"].mean, rtol=1e-10)
    np.testing.assert_allclose(
        penguins.predict_proba(PENGUINS), expected.local(ARRAYS)["z"].probabilities, atol=1e-10
    )
    np.testing.assert_allclose(penguins.score_samples(PENGUINS), expected.log_predictive(ARRAYS), rtol=1e-10)


def as_pandas():
    return pytest.importorskip("pandas").DataFrame(ROWS, columns=NAMES)


def as_categoricals():
    return as_pandas().astype(dict.fromkeys(PENGUINS.categories, "category"))


def as_polars():
    return pytest.importorskip("polars").DataFrame(ROWS, schema=list(NAMES), orient="row")


def as_arrow():
    table = {name: in_words(name) for name in NAMES}
    return pytest.importorskip("pyarrow").table(table)


@pytest.mark.slow
@pytest.mark.parametrize("table", [as_pandas, as_categoricals, as_polars, as_arrow, lambda: ROWS])
def test_every_table_with_the_same_rows_gives_the_same_fit(penguins, table):
    rows = table()
    found = cv.MixedMixture(3, random_state=0, tol=1e-9).fit(rows)
    assert found.elbo_ == pytest.approx(penguins.elbo_, rel=1e-12)
    assert found.kinds_ == penguins.kinds_
    assert list(found.categories_.values()) == list(penguins.categories_.values())
    np.testing.assert_allclose(found.predict_proba(rows), penguins.predict_proba(PENGUINS), atol=1e-12)
    if hasattr(rows, "columns"):
        assert list(found.feature_names_in_) == list(NAMES)


def test_a_column_may_be_called_categories():
    frame = pytest.importorskip("pandas").DataFrame(
        {"values": [1.0, 2.0, 3.0], "categories": ["a", "b", "a"]}
    )
    assert cv.MixedMixture(1).fit(frame).categories_ == {"categories": ("a", "b")}


def test_counts_and_yes_or_no_have_their_exact_density():
    """Of one component all is conjugate: the evidence is a product of closed forms."""
    visits, answers = np.array([0.0, 3.0, 2.0, 7.0]), [True, False, True, True]
    rows = [list(row) for row in zip(visits, answers, strict=True)]
    found = cv.MixedMixture(1, kinds={0: "count"}).fit(rows)
    assert found.kinds_ == ("count", "category")
    assert found.categories_ == {"x1": (False, True)}
    # Gamma(1, 1 / mean) and Poisson; Beta(1, 1) and Bernoulli
    rate, total = 1 / visits.mean(), visits.sum()
    poisson = np.log(rate) + np.log(np.arange(1, total + 1)).sum() - (1 + total) * np.log(rate + 4)
    poisson -= np.log([1, 6, 2, 5040]).sum()
    bernoulli = np.log(6 * 1 / 120)
    assert found.elbo_ == pytest.approx(poisson + bernoulli, rel=1e-12)
    predictive = stats.nbinom(1 + total, (rate + 4) / (rate + 5)).logpmf(visits)
    predictive += np.log(np.where(answers, 4 / 6, 2 / 6))
    np.testing.assert_allclose(found.score_samples(rows), predictive, rtol=1e-10)


@pytest.mark.slow
def test_a_weight_of_two_is_the_row_twice():
    doubled = cv.MixedMixture(2, random_state=0).fit(ROWS[:60] + ROWS[:20])
    weighed = cv.MixedMixture(2, random_state=0).fit(ROWS[:60], sample_weight=[2.0] * 20 + [1.0] * 40)
    assert weighed.elbo_ == pytest.approx(doubled.elbo_, rel=1e-9)


def test_priors_can_be_given():
    data = {"a": [0.1, 0.2, 4.0, 4.1], "b": [0, 1, 5, 6]}
    pandas = pytest.importorskip("pandas")
    found = cv.MixedMixture(
        2, kinds={"b": "count"}, number_prior={"a": (1.0, 0.5, 2.0, 3.0)}, count_prior=(2.0, 0.5),
        weight_concentration_prior=[1.0, 2.0], random_state=0,
    ).fit(pandas.DataFrame(data))  # fmt: skip
    model = cv.models.mixed_mixture(
        2,
        numbers=["a"],
        counts=["b"],
        concentration=[1.0, 2.0],
        number_prior=(1.0, 0.5, 2.0, 3.0),
        count_prior=(2.0, 0.5),
    )
    assert found.elbo_ == pytest.approx(model.fit(data, seed=0, tol=1e-6).elbo, rel=1e-10)


@pytest.mark.usefixtures("figures_of_factors")
def test_rows_that_are_read_in_blocks_give_the_same_fit(tmp_path):
    rows = np.column_stack([ARRAYS[name] for name in ("bill_length_mm", "body_mass_g", "year")])
    cv.data.write_table(tmp_path / "p.parquet", dict(zip("abc", rows.T, strict=True)))
    arguments = {"n_components": 2, "kinds": {2: "count"}, "random_state": 0}
    lazy = cv.MixedMixture(**arguments).fit(cv.scan(tmp_path / "p.parquet"))
    assert lazy.elbo_ == pytest.approx(cv.MixedMixture(**arguments).fit(rows).elbo_, rel=1e-12)
    with pytest.raises(cv.DataError, match="a column of categories needs all 344 rows in memory"):
        cv.MixedMixture(2, kinds={2: "category"}).fit(cv.scan(tmp_path / "p.parquet"))


def test_what_was_not_seen_counts_as_missing_and_is_told(penguins):
    odd, gap = list(ROWS[0]), list(ROWS[0])
    odd[0], gap[0] = "Emperor", None
    frame = pytest.importorskip("pandas").DataFrame([odd], columns=NAMES)
    with pytest.warns(
        cv.CaviarWarning, match=r"species has values .*\(in 1 row\): Emperor; the fit had Adelie, Chin"
    ):
        found = penguins.predict_proba(frame)
    np.testing.assert_array_equal(found, penguins.predict_proba(frame.assign(species=[None])))


@pytest.mark.usefixtures("figures_of_factors")
def test_a_column_is_predicted_from_the_others(penguins):
    told = penguins.predict_columns(PENGUINS, ["species", 5])
    rest = {name: ARRAYS[name] for name in NAMES if name not in ("species", "body_mass_g")}
    expected = penguins.posterior_.predict(rest)
    np.testing.assert_allclose(told["species"].mean, expected["species"].mean, rtol=1e-12)
    np.testing.assert_allclose(told["body_mass_g"].mean, expected["body_mass_g"].mean, rtol=1e-12)
    kinds = np.array(penguins.categories_["species"])[told["species"].mean.argmax(axis=1)]
    assert np.mean(kinds == in_words("species")) > 0.95


def test_draws_have_the_density_of_a_new_row(penguins):
    """The expected log density of draws is minus the entropy, which draws of another kind give as well."""
    rows, labels = penguins.sample(20_000, random_state=0)
    species = [np.mean(rows[:, 0] == name) for name in penguins.categories_["species"]]
    p, weights = penguins.posterior_["species_probabilities"].mean, penguins.weights_
    np.testing.assert_allclose(species, weights @ p, atol=4 * 0.5 / np.sqrt(20_000))
    np.testing.assert_allclose(np.bincount(labels) / 20_000, weights, atol=4 * 0.5 / np.sqrt(20_000))
    theta = penguins.posterior_["body_mass_g_theta"]
    scale = np.sqrt(theta.rate * (theta.mean_precision + 1) / (theta.shape * theta.mean_precision))
    for k in range(3):
        own = rows[labels == k, NAMES.index("body_mass_g")].astype(float)
        test = stats.kstest(own, stats.t(2 * theta.shape[k], theta.mean[k], scale[k]).cdf)
        assert test.pvalue > 1e-3
    again, _ = penguins.sample(20_000, random_state=0)
    assert np.array_equal(rows, again)


def test_the_density_of_a_row_is_the_sum_over_its_components(penguins):
    row = [*ROWS[0][:2], *[None] * 4, ROWS[0][6], None]
    columns = {name: row[j] for j, name in enumerate(NAMES)}
    p = {name: penguins.posterior_[f"{name}_probabilities"].mean for name in PENGUINS.categories}
    places = {name: penguins.categories_[name].index(columns[name]) for name in p}
    logs = np.log(penguins.weights_) + sum(np.log(p[name][:, places[name]]) for name in p)
    frame = pytest.importorskip("pandas").DataFrame([row], columns=NAMES)
    assert penguins.score_samples(frame)[0] == pytest.approx(logsumexp(logs), rel=1e-10)


@pytest.mark.usefixtures("figures_of_factors")
def test_it_is_saved_and_loaded(penguins, tmp_path):
    penguins.save(tmp_path / "m.caviar")
    found = cv.load(tmp_path / "m.caviar")
    np.testing.assert_array_equal(found.predict_proba(PENGUINS), penguins.predict_proba(PENGUINS))
    np.testing.assert_array_equal(found.score_samples(PENGUINS), penguins.score_samples(PENGUINS))
    assert (found.kinds_, found.categories_) == (penguins.kinds_, penguins.categories_)
    assert list(found.feature_names_in_) == list(NAMES)


@pytest.mark.usefixtures("figures_of_factors")
def test_a_column_may_have_the_name_that_other_mixtures_give_to_rows(tmp_path):
    table = {"x": [0.0, 0.1, 5.0, 5.2], "kind": ["a", "a", "b", "b"]}
    frame = pytest.importorskip("pandas").DataFrame(table)
    mixture = cv.MixedMixture(2, random_state=0).fit(frame)
    mixture.save(tmp_path / "m.caviar")
    np.testing.assert_array_equal(cv.load(tmp_path / "m.caviar").predict(frame), mixture.predict(frame))


@pytest.mark.usefixtures("figures_of_factors")
def test_arguments_are_saved_too(tmp_path):
    """Also where columns are named by their places, which are no names in a file."""
    rows = [[1.0, True, 0.0, 3], [2.0, False, 1.0, 1], [None, True, 5.0, 3], [9.0, None, 6.0, 2]] * 5
    found = cv.MixedMixture(
        2, kinds={2: "count", -1: "category"}, number_prior={"x0": (0, 1, 1, 1)}, count_prior=(1.0, 0.5), random_state=0
    ).fit(rows)  # fmt: skip
    found.save(tmp_path / "m.caviar")
    again = cv.load(tmp_path / "m.caviar")
    assert again.kinds == {"x2": "count", "x3": "category"}
    assert again.categories_ == {"x1": (False, True), "x3": (1, 2, 3)}
    assert again.fit(rows).elbo_ == found.elbo_


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kinds_", ["number"] * 8),
        ("categories_", {"species": ["a"], "island": ["a", "b", "c"], "sex": ["a", "b"]}),
        ("categories_", {"species": [[1], 2, 3], "island": ["a", "b", "c"], "sex": ["a", "b"]}),
        ("n_features_in_", 7),
        ("feature_names_in_", np.array(["a"] * 8, dtype=object)),
    ],
)
def test_files_whose_parts_do_not_belong_together_are_refused(penguins, name, value):
    document = penguins._document(None)
    document["attributes"][name] = value
    with pytest.raises((ValueError, TypeError, LookupError, AttributeError)):
        cv.MixedMixture()._restore(document)


def test_a_posterior_becomes_an_estimator(penguins, tmp_path):
    penguins.posterior_.save(tmp_path / "p.caviar")
    found = cv.MixedMixture.from_posterior(cv.load(tmp_path / "p.caviar"))
    assert found.kinds_ == penguins.kinds_
    assert found.categories_ == penguins.categories_
    np.testing.assert_array_equal(found.predict_proba(PENGUINS), penguins.predict_proba(PENGUINS))
    other = cv.models.gaussian_mixture(2, 2).fit({"x": np.arange(8.0).reshape(4, 2)}, seed=0)
    with pytest.raises(
        cv.ParameterError, match=r"expected the posterior of a model of caviar.models.mixed_mixture"
    ):
        cv.MixedMixture.from_posterior(other)


@pytest.mark.slow
def test_components_have_intervals_of_every_kind():
    penguins = cv.MixedMixture(2, random_state=0, uncertainty="mean_field").fit(PENGUINS)
    table = cv.report.component_table(penguins, level=0.9)
    p, theta = (penguins.posterior_[f"{name}"] for name in ("sex_probabilities", "body_mass_g_theta"))
    for k, row in enumerate(table):
        a = p.concentration[k]
        male = row.probabilities[6]["male"]
        np.testing.assert_allclose((male.low, male.high), stats.beta(a[1], a[0]).interval(0.9), rtol=1e-9)
        mean, scale = row.mean[5], np.sqrt(theta.rate[k] / (theta.shape[k] * theta.mean_precision[k]))
        ends = stats.t(2 * theta.shape[k], theta.mean[k], scale).interval(0.9)
        np.testing.assert_allclose((mean.low, mean.high), ends, rtol=1e-9)
        assert row.mean[0] is None
        assert row.probabilities[5] is None


@pytest.mark.slow
def test_later_rows_are_added(penguins):
    half = cv.MixedMixture(3, random_state=0).fit(ROWS[:300])
    added = half.partial_fit(ROWS[300:])
    total = added.posterior_["weights"].concentration.sum()
    assert total == pytest.approx(344 + 1, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "rows", "error", "message"),
    [
        ({"kinds": {"a": "number"}}, ROWS, cv.ParameterError, "kinds has the column 'a'; X has x0, x1"),
        ({"kinds": {0: "word"}}, ROWS, cv.ParameterError, "'number', 'category' or 'count'; column 0 has 'word'"),
        ({"kinds": ["number"]}, ROWS, cv.ParameterError, "one for each of 8 columns; got 1"),
        ({"kinds": "number"}, ROWS, cv.ParameterError, "kinds must be a kind for each column"),
        ({"kinds": {0: "number"}}, ROWS, TypeError, "in column 'x0' a number; row 0 has 'Adelie'"),
        ({"number_prior": (1.0, 2.0)}, ROWS, cv.ParameterError, "number_prior must be 4 numbers, mean, mean_prec"),
        ({"number_prior": {"x0": (0, 1, 1, 1)}}, ROWS, cv.ParameterError, "the column 'x0', which is none of the num"),
        ({"count_prior": (1.0,), "kinds": {7: "count"}}, ROWS, cv.ParameterError, "count_prior must be 2 numbers"),
        ({"category_prior": 0.0}, ROWS, cv.ParameterError, "category_prior must be a finite number above 0"),
        ({}, [[None, 1.0], [None, 2.0]], cv.DataError, "column 'x0' is NaN in every row"),
        ({}, [["a", 1.0, None], ["b", 2.0, np.nan]], cv.DataError, "column 'x2' is NaN in every row"),
        ({"kinds": {0: "category"}}, [[None, 1.0], [None, 2.0]], cv.DataError, "column 'x0' has no value"),
        ({"kinds": {0: "count"}}, [[0.5, "a"], [2.0, "b"]], cv.DataError, "x0"),
        ({}, [[1.0, "a"], [np.inf, "b"]], cv.DataError, "column 'x0' has an infinity in row 1"),
        ({}, [[1.0, {}], [2.0, "b"]], TypeError, "must be a string or a number; column 'x1'"),
        ({"n_components": 0}, ROWS, cv.ParameterError, "n_components"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_words(arguments, rows, error, message):
    with pytest.raises(error, match=message):
        cv.MixedMixture(**arguments).fit(rows)


def test_columns_with_other_names_are_refused(penguins):
    table = cv.data.Table(PENGUINS.values, tuple(reversed(NAMES)), {})
    with pytest.raises(cv.DataError, match="the columns must be those of the fit"):
        penguins.predict(table)


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [("z", "weights", "z_theta"), ("weights", "weights_theta", "z"), ("z_", "z", "z__probabilities")]
)
def test_columns_may_have_the_names_of_variables_of_the_model(names, tmp_path):
    """The fit is that of the same table with other names, whatever is asked of it."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 30)
    values = np.column_stack(
        [
            rng.normal(size=60) + 4 * group,
            rng.normal(size=60) - 4 * group,
            1.0 * (rng.random(60) < 0.2 + 0.6 * group),
        ]
    )
    fits = []
    for own in (("a", "b", "c"), names):
        table = cv.data.Table(values, own, {own[2]: ("no", "yes")})
        mixture = cv.MixedMixture("auto", random_state=0).fit(table)
        path = tmp_path / f"{own[0]}.caviar"
        mixture.save(path)
        assert list(cv.load(path).feature_names_in_) == list(own)
        assert list(cv.MixedMixture.from_posterior(mixture.posterior_).feature_names_in_) == list(own)
        told = mixture.predict_columns(table, own[0])[own[0]]
        fits.append(
            (
                mixture.elbo_,
                mixture.predict_proba(table),
                mixture.weights_sd_,
                mixture.score_samples(table),
                told.mean,
                mixture.sample(5, random_state=1)[0][:, :2].astype(float),
            )
        )
    for one, other in zip(*fits, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_sentences_about_a_fit_name_columns_and_not_what_the_model_calls_their_factors():
    rows = [["a", 1.0, 2.0], ["b", 3.0, 4.0], ["a", 1.5, 2.2], ["b", 3.3, 4.1]] * 6
    model = cv.MixedMixture(2, random_state=0).fit(rows)
    told = model._in_shown_names("A mean of x1_theta moves; it does not hold for x2_theta.mean and x1_theta.")
    assert told == "A mean of x1 moves; it does not hold for x2 mean and x1."


def _tables_of_kinds():
    """Return one table as pandas with plain, nullable and Arrow types, and as Polars and Arrow have it."""
    generator = np.random.default_rng(1)
    group = generator.integers(0, 2, 60)
    plain = pd.DataFrame(
        {
            "size": group * 4 + generator.normal(size=60),
            "is_wet": generator.random(60) < 0.2 + 0.5 * group,
            "count": generator.poisson(3 * group + 1),
        }
    )
    yield plain
    yield plain.convert_dtypes()
    yield plain.convert_dtypes(dtype_backend="pyarrow")
    yield pytest.importorskip("polars").from_pandas(plain)
    yield pytest.importorskip("pyarrow").Table.from_pandas(plain)


@pytest.mark.usefixtures("figures_of_factors")
def test_true_and_false_are_categories_beside_numbers_alone():
    """NumPy and scikit-learn take them for 1 and 0 in a table without texts, and the fit was one of numbers."""
    told = [cv.MixedMixture(2, random_state=0).fit(table) for table in _tables_of_kinds()]
    assert all(own.categories_ == {"is_wet": (False, True)} for own in told)
    texts = next(_tables_of_kinds()).astype({"is_wet": str})
    expected = cv.MixedMixture(2, random_state=0).fit(texts)
    assert [own.elbo_ for own in told] == pytest.approx([expected.elbo_] * 5, abs=1e-9)
    for own, table in zip(told, _tables_of_kinds(), strict=True):
        np.testing.assert_allclose(own.predict_proba(table), expected.predict_proba(texts), atol=1e-12)


def test_tables_of_numbers_alone_are_read_as_they_are():
    told = []
    for table in _tables_of_kinds():
        names = ["size", "count"]
        own = table.select(names) if hasattr(table, "select") else table[names]
        told.append(cv.MixedMixture(2, random_state=0).fit(own))
    assert all(own.kinds_ == ("number", "number") and list(own.feature_names_in_) == names for own in told)
    assert [own.elbo_ for own in told] == pytest.approx([told[0].elbo_] * 5, abs=1e-9)


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize("kind", ["Int64", "Float64"])
def test_categorical_types_are_categories(kind):
    """Beside numbers of which some may be missing they were refused by pandas; those of numbers were numbers."""
    table = next(_tables_of_kinds()).astype({"count": kind})
    texts = table.assign(is_wet=np.where(table["is_wet"], "yes", "no"))
    expected = cv.MixedMixture(2, random_state=0).fit(texts.astype({"count": float}))
    for typed in (texts, table.assign(is_wet=table["is_wet"] + 7)):
        mixture = cv.MixedMixture(2, random_state=0).fit(typed.astype({"is_wet": "category"}))
        assert mixture.elbo_ == pytest.approx(expected.elbo_, abs=1e-9)
        assert len(mixture.categories_["is_wet"]) == 2
