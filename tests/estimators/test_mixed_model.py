"""Mixed models: formulas, the stated model beside dense Gaussian algebra and lme4's figures, new groups, bad tables."""

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from scipy import stats
from scipy.special import comb, logsumexp
from sklearn.base import clone

import caviar as cv
from caviar.estimators.mixed_models.columns import Rows, levels_of
from caviar.estimators.mixed_models.formula import GroupTerm, read
from caviar.estimators.mixed_models.statement import design_of

pytestmark = pytest.mark.first_guess

pytest.importorskip("formulaic")

SLEEP = cv.datasets.load_sleepstudy()
SLEEP = pd.DataFrame(SLEEP.values, columns=SLEEP.columns)


def schools(n: int = 120, seed: int = 0) -> pd.DataFrame:
    """Return pupils of classes of schools."""
    rng = np.random.default_rng(seed)
    school, room = rng.integers(0, 6, n), rng.integers(0, 3, n)
    x, z = rng.normal(2.0, 1.5, n), rng.choice(["low", "mid", "top"], n)
    level = rng.normal(0, 1.0, 6)[school] + rng.normal(0, 0.7, (6, 3))[school, room]
    slope = 0.5 + rng.normal(0, 0.5, 6)[school]
    y = 3.0 + slope * x + (z == "top") + level + rng.normal(0, 0.8, n)
    names = np.array(["Adams", "Bell", "Curie", "Darwin", "Euler", "Fermi"])
    return pd.DataFrame(
        {"y": y, "x": x, "z": z, "school": names[school], "room": room, "seen": (y > y.mean()).astype(int)}
    )


@pytest.fixture(scope="module")
def sleep():
    return cv.MixedModel("reaction ~ days + (days | subject)", random_state=0).fit(SLEEP)


FORMULAS = {
    "y ~ x": ("x", []),
    "y ~ x * z + (1 | school)": ("x * z", [("1", ("school",), True)]),
    "y ~ 0 + x - z + (x || school)": ("0 + x - z", [("x", ("school",), False)]),
    "y ~ (x | school/room) + x": ("x", [("x", ("school",), True), ("x", ("school", "room"), True)]),
    "y ~ (1|a:b) + (1 | c + d) + I(x**2)": (
        "I(x**2)",
        [("1", ("a", "b"), True), ("1", ("c",), True), ("1", ("d",), True)],
    ),
    "y ~ (1 | g)": ("1", [("1", ("g",), True)]),
}


@pytest.mark.parametrize("text", FORMULAS)
def test_bars_are_read_as_lme4_reads_them(text):
    common, groups = FORMULAS[text]
    assert (read(text).common, read(text).groups) == (common, tuple(GroupTerm(*own) for own in groups))


BAD_FORMULAS = {
    "y": "must have one ~",
    "y ~ x +": "nothing after a +",
    "y ~ (x": "brackets of the formula do not match",
    "log(y) ~ x": "the response of a formula is the name of a column",
    "y ~ 1 | school": "need brackets",
    "y ~ x + ( | school)": "effects of groups must have the form",
    "y ~ x + (1 | log(school))": "groups must be columns",
    "y ~ x:": "cannot read",
    "y ~ __import__('os').getcwd()": "cannot read",
    "y ~ __import__('os')": "not supported",
    "y ~ I(x.__class__)": "the table has no column 'x.__class__'",
    "y ~ I(x.sum())": "not supported",
    "y ~ C(school, Treatment('zzz'))": "is not among the provided levels",
    "y ~ {open('f')}": "not supported",
    "y ~ I(x**9**9)": "not supported",
    "y ~ I(9**9 * x)": "not supported",
    "y ~ log('x')": "not supported",
    "y ~ lag(x)": "not supported",
    "y ~ 0 + (1 | school)": "no common effects",
    "y ~ x + (0 | school)": "has no effects",
}


@pytest.mark.parametrize("text", BAD_FORMULAS)
def test_bad_formulas_are_refused(text):
    with pytest.raises((cv.ParameterError, cv.DataError), match=BAD_FORMULAS[text]):
        cv.MixedModel(text).fit(schools())


BAD_TABLES = {
    "misspelt": (lambda t: t.rename(columns={"x": "xx"}), "no column 'x'.*Did you mean 'xx'"),
    "a missing number": (lambda t: t.assign(x=t["x"].where(t.index != 3)), "'x' has nan in row 3"),
    "a missing group": (lambda t: t.assign(school=t["school"].where(t.index != 4)), "no value in row 4"),
    "infinity": (lambda t: t.assign(y=t["y"].where(t.index != 5, np.inf)), "'y' has inf in row 5"),
    "texts": (lambda t: t.assign(y=t["y"].astype(str)), "the response 'y' has texts"),
    "constant": (lambda t: t.assign(x=1.0), "'x' of the formula is constant"),
    "zero": (lambda t: t.assign(x=0.0), "'x' of the formula is 0 in all rows"),
    "one group": (lambda t: t.assign(school="Adams"), "needs at least 2 groups"),
    "a group for each row": (lambda t: t.assign(school=[f"s{i}" for i in t.index]), "a separate group"),
    "constant response": (lambda t: t.assign(y=2.0), "2 in all rows"),
    "no table": (lambda t: t.to_numpy(), "expected a table with named columns"),
    "no rows": (lambda t: t.iloc[:0], "the table has no rows"),
    "response far from zero": (lambda t: t.assign(y=t["y"] + 1e7), "'y' is .* standard deviations from zero"),
    "no noise": (lambda t: t.assign(y=3 + 2 * t["x"]), "without noise"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_are_refused(case):
    changed, told = BAD_TABLES[case]
    with pytest.raises(cv.DataError, match=told):
        cv.MixedModel("y ~ x + z + (1 | school)").fit(changed(schools()))


def test_texts_in_new_rows_are_refused_by_row():
    model = cv.MixedModel("y ~ x + (1 | school)").fit(schools())
    with pytest.raises(cv.DataError, match="'x' must have numbers; got 'four' in row 0"):
        model.predict(pd.DataFrame({"x": ["four", "five"], "school": "Adams"}))


def test_a_standard_deviation_that_is_not_finite_is_a_dash_with_its_reason():
    table = schools().query("school in ('Adams', 'Lincoln')")
    table = pd.concat([table, table.assign(school=table["school"] + " 2")])
    summary = cv.MixedModel("y ~ x + (1 | school)", uncertainty="linear_response").fit(table).summary()
    assert np.isinf(summary.to_frame()["sd"]).any()
    assert "inf" not in str(summary)
    assert "use the interval" in str(summary)


def test_columns_far_from_zero_are_refused_without_an_intercept():
    """Nothing takes what a slope is measured from."""
    table = schools()
    with pytest.raises(cv.DataError, match=r"'x' is .* standard deviations from zero.*Subtract"):
        cv.MixedModel("y ~ 0 + x + (1 | school)").fit(table.assign(x=table["x"] + 1e7))


def test_columns_that_are_combinations_are_named():
    table = schools().assign(twice=lambda t: 2 * t["x"] + 1)
    with pytest.raises(cv.DataError, match=r"'twice' of the formula is a combination .*'Intercept', 'x'"):
        cv.MixedModel("y ~ x + twice").fit(table)


def test_other_arguments_are_refused():
    with pytest.raises(cv.ParameterError, match="family must be one of 'gaussian'"):
        cv.MixedModel("y ~ x", family="gamma").fit(schools())
    with pytest.raises(cv.DataError, match="must be 0 or 1"):
        cv.MixedModel("room ~ x", family="bernoulli").fit(schools())


CASES = {
    "two intercepts": "y ~ x + (1 | school) + (1 | room)",
    "correlated": "y ~ x + z + (x | school)",
    "nested": "y ~ x + (1 | school/room)",
    "uncorrelated": "y ~ x + (x || school)",
}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("case", CASES)
def test_with_known_precisions_the_bound_is_the_evidence(case):
    """The stated model as a dense Normal: its matrices are made here by hand, its priors are those of the docs."""
    table = schools(60)
    fitted = cv.MixedModel(CASES[case], random_state=0).fit(table).posterior_
    y, x, unit = table["y"].to_numpy(), table["x"].to_numpy(), table["y"].std(ddof=0)
    ones, z = np.ones(len(y)), table["z"]
    columns = [ones, x, (z == "mid") * 1.0, (z == "top") * 1.0] if "z" in CASES[case] else [ones, x]
    X = np.column_stack(columns)
    # slopes about 0, and the intercept at the means of the columns about the mean of the response
    at_means = np.concatenate([[1.0], X[:, 1:].mean(axis=0)])
    prior = np.outer(at_means, at_means) / (2.5 * unit) ** 2 + np.diag(
        [0.0, *(X[:, 1:].std(axis=0) / (2.5 * unit)) ** 2]
    )
    mean, covariance = X[:, 0] * y.mean(), X @ np.linalg.solve(prior, X.T) + np.eye(len(y)) / 1.7
    together = (table["school"] + ":" + table["room"].astype(str)).to_numpy()
    known: dict[str, object] = {"residual precision": 1.7}
    for name, groups, effects in {
        "two intercepts": [
            ("1 | school", table["school"].to_numpy(), [ones]),
            ("1 | room", table["room"].to_numpy(), [ones]),
        ],
        "correlated": [("x | school", table["school"].to_numpy(), [ones, x])],
        "nested": [("1 | school", table["school"].to_numpy(), [ones]), ("1 | school:room", together, [ones])],
        "uncorrelated": [
            ("1 | school", table["school"].to_numpy(), [ones]),
            ("x | school", table["school"].to_numpy(), [x]),
        ],
    }[case]:
        Z = np.column_stack(effects)
        own = np.array([[1.5, 0.4], [0.4, 2.0]]) if len(effects) == 2 else np.array([[0.9]])
        known[f"precision of {name}"] = own if len(effects) == 2 else 0.9
        covariance += (groups[:, None] == groups) * (Z @ np.linalg.inv(own) @ Z.T)
    evidence = stats.multivariate_normal(mean, covariance).logpdf(y)
    told = _with_known(fitted, table, CASES[case], known)
    assert told == pytest.approx(evidence, abs=1e-7)


def _with_known(fitted, table, formula, known):
    """Return the ELBO of the stated model at known precisions, without the density of these."""
    model = cv.MixedModel(formula, random_state=0).fit(table)
    data = design_of(model._encoding, Rows.of(table)).data
    hyper = {f"scale of {name}": np.ones(np.shape(value)[:1]) for name, value in known.items()}
    given = {**data, "y": table["y"].to_numpy(), **known, **hyper}
    posterior = fitted.model.fit(given, seed=0, tol=1e-12)
    own = sum(posterior.elbo_terms[name] for name in posterior.elbo_terms if name in (*known, *hyper))
    return posterior.elbo - own


def test_sleepstudy_is_that_of_lme4(sleep):
    """``lmer(Reaction ~ Days + (Days | Subject), REML = FALSE)`` of lme4 1.1-31."""
    told = sleep.summary().to_frame().set_index("name")
    for name, estimate, error in [("Intercept", 251.405105, 6.632123), ("days", 10.467286, 1.502230)]:
        assert abs(told["mean"][name] - estimate) < 0.1 * error
        assert error < told["sd"][name] < 1.16 * error
    assert abs(told["mean"]["residual standard deviation"] - 25.591907) < 0.25 * 1.52
    for name, estimate in [
        ("subject, Intercept", 23.779760),
        ("subject, days", 5.716799),
        ("subject, Intercept and days", 0.081321),
    ]:
        assert told["lower"][name] < estimate < told["upper"][name]


def test_sleepstudy_is_that_of_a_gibbs_sampler(sleep):
    """Means and standard deviations of 30,000 draws of the stated model."""
    told = sleep.summary().to_frame().set_index("name")
    for name, mean, sd in [
        ("Intercept", 251.379, 7.488),
        ("days", 10.4575, 1.7212),
        ("subject, Intercept", 27.295, 6.854),
        ("subject, days", 6.5629, 1.5164),
        ("subject, Intercept and days", 0.0623, 0.2741),
        ("residual standard deviation", 25.879, 1.546),
    ]:
        assert abs(told["mean"][name] - mean) < 0.05 * sd, name
        assert 0.96 < told["sd"][name] / sd < 1.04, name


def test_predictions_of_known_and_new_groups(sleep):
    """From the factors: known subjects have their effects; new ones the covariance of all, averaged over its factor."""
    sleep = clone(sleep).set_params(uncertainty="mean_field").fit(SLEEP)
    new = pd.DataFrame({"days": [3.0, 3.0], "subject": [308, 999]}, index=["known", "unknown"])
    told, posterior, x = sleep.predict(new), sleep.posterior_, np.array([1.0, 3.0])
    effects = posterior["days | subject"]
    assert told.mean[0] == pytest.approx(x @ (posterior["common effects"].mean + effects.mean[0]), rel=1e-9)
    assert told.mean[1] == pytest.approx(x @ posterior["common effects"].mean, rel=1e-9)
    noise = posterior["residual precision"]
    precision = posterior["precision of days | subject"]
    covariance = precision.inverse_scale / (precision.df - 3.0)
    spread = x @ (covariance + posterior["common effects"].covariance) @ x
    assert told.sd[1] ** 2 == pytest.approx(spread + noise.rate / (noise.shape - 1.0), rel=1e-6)
    assert sleep.predict(new, groups="new").sd[0] == pytest.approx(told.sd[1], rel=1e-12)
    draws = posterior.sample(40_000, seed=0)
    line = (draws["common effects"] + draws["days | subject"][:, 0]) @ x
    assert told.sd[0] ** 2 == pytest.approx(line.var() + noise.rate / (noise.shape - 1.0), rel=0.02)
    lower, upper = told.interval(0.9)
    assert (lower < told.mean).all()
    # a Normal for each value of the noise, whose precision is Gamma: the average over 20,000 quantiles of it
    of_noise = stats.gamma(noise.shape, scale=1 / noise.rate).ppf((np.arange(20_000) + 0.5) / 20_000)
    known_line = told.sd**2 - noise.rate / (noise.shape - 1.0)
    ends = (upper - told.mean)[:, None] / np.sqrt(known_line[:, None] + 1 / of_noise)
    np.testing.assert_allclose(stats.norm.cdf(ends).mean(axis=1), 0.95, atol=1e-6)
    assert (upper - lower < 2 * stats.norm.ppf(0.95) * told.sd).all()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("as_texts", [False, True])
def test_rows_without_a_group_are_averaged_over_the_population(as_texts):
    """Of nested groups those that a row has a label of have their effects; without any the columns may be missing."""
    table = schools().assign(room=np.arange(len(schools())) % 3)
    if as_texts:
        table = table.astype({"school": str, "room": str})
    model = cv.MixedModel("y ~ x + (x | school/room)").fit(table)
    row = table.iloc[[0, 0, 0, 0]].reset_index(drop=True)
    absent = None if as_texts else np.nan
    lacking = row.astype({"school": object, "room": object})
    lacking.loc[1, "room"] = lacking.loc[2, "school"] = absent
    lacking.loc[3, ["school", "room"]] = absent
    named = row.astype({"school": object, "room": object})
    named.loc[1, "room"] = named.loc[2, "school"] = "elsewhere"
    named.loc[3, ["school", "room"]] = "elsewhere"
    told, expected = model.predict(lacking), model.predict(named.astype({"school": str, "room": str}))
    np.testing.assert_allclose(told.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(told.sd, expected.sd, rtol=1e-12)
    assert told.sd[0] < told.sd[1] < told.sd[3]
    without = model.predict(row.drop(columns=["school", "room"]), groups="new")
    np.testing.assert_allclose(without.sd, told.sd[3], rtol=1e-12)
    with pytest.raises(cv.DataError, match="no column 'school'"):
        model.predict(row.drop(columns=["school"]))
    with pytest.raises(cv.DataError, match=r"has (no value|nan) in row [12]"):
        clone(model).fit(lacking.assign(y=[1.0, 2.0, 4.0, 3.0]))


def test_rooms_may_be_new_in_known_schools():
    model = cv.MixedModel("y ~ x + (1 | school/room)", uncertainty="mean_field", random_state=0).fit(
        schools()
    )
    told = model.predict({"x": [0.0] * 3, "school": ["Adams", "Adams", "Zuse"], "room": [0, 9, 0]})
    assert list(model.ranef()["1 | school:room"]["group"][:2]) == ["Adams:0", "Adams:1"]
    school, room = (model.posterior_[name].mean for name in ("1 | school", "1 | school:room"))
    start = model.posterior_["common effects"].mean[0]
    assert told.mean == pytest.approx([start + school[0] + room[0], start + school[0], start])
    assert told.sd[0] < told.sd[1] < told.sd[2]


@pytest.mark.usefixtures("figures_of_factors")
def test_tables_of_every_library_are_the_same():
    table = schools(40)
    formula = "y ~ x + z + (1 | school)"
    whole = cv.MixedModel(formula, random_state=0).fit(table)
    turned = table.iloc[:, ::-1].assign(other="not in the formula")
    for other in (
        turned,
        polars.from_pandas(table),
        pyarrow.Table.from_pandas(table),
        {name: table[name].tolist() for name in table},
    ):
        again = cv.MixedModel(formula, random_state=0).fit(other)
        assert again.elbo_ == whole.elbo_
        assert again.names_ == ["Intercept", "x", "z[T.mid]", "z[T.top]"]
        np.testing.assert_array_equal(again.predict(other).mean, whole.predict(table).mean)


@pytest.mark.usefixtures("figures_of_factors")
def test_categories_are_coded_as_in_the_fit():
    table = schools()
    model = cv.MixedModel("y ~ C(room) * z + (1 | school)", random_state=0).fit(table)
    assert model.levels_ == {"room": ["0", "1", "2"], "z": ["low", "mid", "top"]}
    whole = model.predict(table).mean
    few = table[table["z"] == "top"]
    np.testing.assert_allclose(model.predict(few).mean, whole[table["z"] == "top"], rtol=1e-12)
    with pytest.raises(cv.DataError, match=r"'z' has 'topp' in row 0.*Did you mean 'top'"):
        model.predict(table.head(2).assign(z="topp"))
    ordered = table.assign(z=pd.Categorical(table["z"], ["top", "mid", "low"]))
    assert cv.MixedModel("y ~ z").fit(ordered).names_ == ["Intercept", "z[T.mid]", "z[T.low]"]


@pytest.mark.usefixtures("figures_of_factors")
def test_a_saved_model_is_the_same(sleep, tmp_path):
    sleep.save(tmp_path / "sleep.caviar")
    again = cv.load(tmp_path / "sleep.caviar")
    new = {"days": [1.0, 2.0], "subject": ["308", "1"]}
    np.testing.assert_array_equal(again.predict(new).sd, sleep.predict(new).sd)
    assert str(again.summary()) == str(sleep.summary())
    assert again.ranef()["days | subject"].equals(sleep.ranef()["days | subject"])
    assert "<table" in again._repr_html_()
    assert "<table" not in clone(again)._repr_html_()
    assert clone(again).get_params() == sleep.get_params()


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(2)
@pytest.mark.parametrize("family", ["gaussian", "negative_binomial", "bernoulli"])
def test_a_weight_of_two_is_the_row_twice(family):
    """In the priors too, whose scales are those of the response and of the columns."""
    table = schools()
    table["y"] = {"bernoulli": table["seen"], "negative_binomial": np.floor(np.abs(table["y"]))}.get(
        family, table["y"]
    )
    weight = np.arange(len(table)) % 3
    model = cv.MixedModel("y ~ x + (x | school)", family=family, size=2.0, random_state=0)
    weighted = clone(model).fit(table, sample_weight=weight)
    repeated = clone(model).fit(table.iloc[np.repeat(np.arange(len(table)), weight)])
    assert weighted.elbo_ == pytest.approx(repeated.elbo_, abs=1e-7)
    np.testing.assert_allclose(weighted.fixef(), repeated.fixef(), rtol=1e-6)


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize("effects", ["scale(x)", "poly(x, 2)", "bs(x, 4)"])
def test_functions_of_columns_leave_out_rows_without_weight(effects):
    """Far rows without weight moved means, knots and polynomials, and with them the fit."""
    table = schools()
    weight = np.arange(len(table)) % 3
    table.loc[weight == 0, "x"] += 100.0
    model = cv.MixedModel(f"y ~ {effects} + (1 | school)", random_state=0)
    weighted = clone(model).fit(table, sample_weight=weight)
    without = clone(model).fit(table[weight > 0], sample_weight=weight[weight > 0])
    assert weighted.elbo_ == pytest.approx(without.elbo_, abs=1e-7)
    np.testing.assert_allclose(weighted.fixef(), without.fixef(), rtol=1e-6)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("n", [4, 12])
def test_predictions_of_few_rows_are_integrated_over_the_noise(n):
    """By quadrature over the noise, given which everything is Normal."""
    generator = np.random.default_rng(2)
    x = generator.normal(size=n)
    y = x + generator.normal(size=n)
    told = cv.MixedModel("y ~ x").fit({"y": y, "x": x}).predict({"x": x[:1]})
    X, scale = np.c_[np.ones(n), x - x.mean()], 2.5 * y.std()
    prior, at = np.diag([scale, scale / x.std()]) ** 2, X[0]
    sigmas = y.std() * np.exp(np.linspace(-6.0, 5.0, 301))
    logs, means, sds = np.empty((3, len(sigmas)))
    for place, sigma in enumerate(sigmas):
        marginal = stats.multivariate_normal(np.full(n, y.mean()), sigma**2 * np.eye(n) + X @ prior @ X.T)
        logs[place] = marginal.logpdf(y) + stats.t.logpdf(sigma / y.std(), 4) + np.log(sigma)
        gain = np.linalg.solve(marginal.cov_object.covariance, X @ prior @ at)
        means[place] = y.mean() + gain @ (y - y.mean())
        sds[place] = np.sqrt(at @ prior @ at - gain @ X @ prior @ at + sigma**2)
    weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    ends = np.linspace(y.mean() - 10 * y.std(), y.mean() + 10 * y.std(), 2001)
    below = stats.norm.cdf((ends[:, None] - means) / sds) @ weights
    exact = np.interp([0.025, 0.1, 0.9, 0.975], below, ends)
    width = exact[3] - exact[0]
    np.testing.assert_allclose(told.quantile([0.025, 0.1, 0.9, 0.975])[:, 0], exact, atol=0.004 * width)
    sd = np.sqrt(weights @ (sds**2 + (means - weights @ means) ** 2))
    assert told.sd[0] == pytest.approx(sd, rel=0.01)


def test_predictions_of_few_rows_with_groups_say_that_they_may_be_too_narrow():
    generator = np.random.default_rng(0)
    x, g = generator.normal(size=60), np.arange(60) % 20
    y = x + g % 3 + generator.normal(size=60)
    told = {}
    for name, n, of in (("rows", 12, g % 3), ("groups", 60, g % 4), ("neither", 60, g)):
        table = {"x": x[:n], "y": y[:n], "g": of[:n]}
        told[name] = cv.MixedModel("y ~ x + (1 | g)", uncertainty="mean_field").fit(table).predict(table)
    assert "\nThese intervals may be too narrow, because there are few rows" in str(told["rows"])
    assert "<p>These intervals may be too narrow" in told["rows"]._repr_html_()
    assert "\nThose of new groups may be too narrow" in str(told["groups"])
    assert "narrow" not in str(told["neither"])
    assert not cv.MixedModel("y ~ x").fit({"x": x[:4], "y": y[:4]}).predict({"x": [1.0]}).remark


def test_bad_weights_are_refused():
    with pytest.raises(cv.DataError, match="sample_weight must be finite and not negative"):
        cv.MixedModel("y ~ x").fit(schools(), sample_weight=-np.ones(len(schools())))


def test_an_intercept_alone_needs_no_column():
    model = cv.MixedModel("y ~ 1", random_state=0).fit(schools())
    assert model.predict({"x": [1.0, 2.0]}).mean == pytest.approx(model.fixef()["Intercept"] * np.ones(2))
    assert "Intercept" in str(model.summary())
    assert model.ranef() == {}


def test_groups_of_unlike_columns_have_unlike_names():
    """Colons in names of groups, and numbers that are equal in double precision, merge no groups."""
    table = schools()
    half = np.arange(len(table)) % 2 == 0
    names = {"g": np.where(half, "a:b", "a"), "h": np.where(half, "c", "b:c")}
    model = cv.MixedModel("y ~ x + (1 | g:h)", random_state=0).fit(table.assign(**names))
    assert model.groups_["g:h"] == [r"a:b\:c", r"a\:b:c"]
    large = cv.MixedModel("y ~ x + (1 | g)", random_state=0).fit(table.assign(g=2**53 + half.astype(int)))
    assert large.groups_["g"] == ["9007199254740992", "9007199254740993"]


def test_names_that_are_one_number_have_an_order():
    texts = np.array(["1.0", "1", "01", "nan"], dtype=object)
    assert levels_of(texts[:3], None) == ["01", "1", "1.0"]
    assert levels_of(texts, None) == ["01", "1", "1.0", "nan"]


@pytest.mark.usefixtures("figures_of_factors")
def test_successes_of_trials_are_as_many_rows_of_0_and_1():
    """The bound of a row of n trials is that of n rows, and the binomial coefficient more."""
    rng = np.random.default_rng(0)
    n, school = rng.integers(1, 6, 60), rng.choice(["a", "b", "c", "d"], 60)
    k, x = rng.binomial(n, 0.4), rng.normal(size=60)
    table = pd.DataFrame({"k": k, "n": n, "x": x, "school": school})
    model = cv.MixedModel("k | trials(n) ~ 1 + (1 | school)", family="binomial", tol=1e-12).fit(table)
    rows = table.loc[table.index.repeat(n)].reset_index(drop=True)
    place = np.concatenate([np.arange(own) for own in n])
    rows["seen"] = (place < rows["k"]).astype(int)
    long = cv.MixedModel("seen ~ 1 + (1 | school)", family="binomial", tol=1e-12).fit(rows)
    coefficient = float(np.sum(np.log(comb(n, k))))
    assert model.elbo_ == pytest.approx(long.elbo_ + coefficient, abs=1e-6)
    assert model.fixef()["Intercept"] == pytest.approx(long.fixef()["Intercept"], abs=1e-5)
    one = long.predict({"school": ["a"]}).mean[0]
    assert model.predict({"school": ["a"], "n": [10]}).mean[0] == pytest.approx(10 * one, rel=1e-4)
    with pytest.raises(cv.ParameterError, match="need family='binomial'"):
        cv.MixedModel("k | trials(n) ~ x").fit(table)
    with pytest.raises(cv.DataError, match="no column 'n'"):
        model.predict({"school": ["a"]})


def test_counts_that_vary_more_than_a_poisson():
    """Their size and coefficients are those of the data's making, and the size has the highest ELBO."""
    rng = np.random.default_rng(1)
    school, x = rng.integers(0, 20, 800), rng.normal(size=800)
    mean = np.exp(1.0 + 0.5 * x + rng.normal(0, 0.4, 20)[school])
    table = pd.DataFrame({"y": rng.poisson(mean * rng.gamma(2.0, 0.5, 800)), "x": x, "school": school})
    model = cv.MixedModel("y ~ x + (1 | school)", family="negative_binomial", random_state=0).fit(table)
    assert model.fixef()["x"] == pytest.approx(0.5, abs=0.1)
    assert 1.4 < model.size_ < 2.8
    assert f"size {model.size_:.4g}, which has the highest ELBO" in str(model.summary())
    for size in (0.8 * model.size_, 1.25 * model.size_):
        assert clone(model).set_params(size=size).fit(table).elbo_ < model.elbo_
    assert model.predict(table).mean.mean() == pytest.approx(table["y"].mean(), rel=0.05)
    with pytest.raises(cv.ParameterError, match="size must be a finite number above 0"):
        clone(model).set_params(size=0).fit(table)
    with pytest.raises(cv.DataError, match="a whole number of at least 0"):
        cv.MixedModel("x ~ 1", family="negative_binomial").fit(table)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("family", ["bernoulli", "probit", "student"])
def test_other_families(family):
    """Probabilities and lines are near those of the response; noise with outliers leaves the slope."""
    table = schools(400)
    if family == "student":
        clean = cv.MixedModel("y ~ x + (1 | school)", random_state=0).fit(table)
        dirty = table.assign(y=table["y"] + 60.0 * (table.index % 40 == 0))
        robust = cv.MixedModel("y ~ x + (1 | school)", family=family, random_state=0).fit(dirty)
        assert robust.fixef()["x"] == pytest.approx(clean.fixef()["x"], abs=0.05)
        df = robust.posterior_.mean("degrees of freedom")
        assert df < 5
        # with heavy tails the precision is that of a scale, and no standard deviation
        noise = [row for row in robust.summary().rows if row.part == "noise"]
        assert [row.name for row in noise] == ["residual scale", "degrees of freedom"]
        assert noise[1].mean == pytest.approx(df)
        assert noise[1].lower < df < noise[1].upper
        return
    model = cv.MixedModel("seen ~ x + (1 | school)", family=family, random_state=0).fit(table)
    told = model.predict(table).mean
    by_school = pd.DataFrame({"told": told, "seen": table["seen"], "school": table["school"]})
    means = by_school.groupby("school").mean()
    assert np.abs(means["told"] - means["seen"]).max() < 0.05
    assert model.score(table) > np.log(0.5)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("family", "n_trials"), [("bernoulli", 1), ("binomial", 4)])
def test_a_binary_outcome_has_the_posterior_of_quadrature(family: str, n_trials: int) -> None:
    """One intercept a group: a grid over the common intercept and the spread, each group by Gauss-Hermite nodes."""
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(40), 12)
    y = rng.binomial(n_trials, 1 / (1 + np.exp(-0.8 - 1.4 * rng.normal(size=40)[group])))
    formula = "y ~ 1 + (1 | g)" if n_trials == 1 else f"y | trials({n_trials}) ~ 1 + (1 | g)"
    table = {"y": y.astype(float), "g": [f"group {own}" for own in group]}
    told = (
        cv.MixedModel(formula, family=family, random_state=0)
        .fit(table)
        .summary()
        .to_frame()
        .set_index("name")
    )

    successes = np.bincount(group, y)
    intercepts, spreads = np.linspace(-0.6, 2.2, 57), np.linspace(0.6, 2.8, 60)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    eta = intercepts[:, None, None] + spreads[:, None] * nodes
    of_groups = successes[:, None, None, None] * eta - 12 * n_trials * np.logaddexp(0, eta)
    log_likelihood = logsumexp(of_groups, b=weights / weights.sum(), axis=-1).sum(axis=0)
    log_joint = log_likelihood + stats.norm.logpdf(intercepts, 0, 2.5)[:, None]
    log_joint += stats.t.logpdf(spreads / 2.5, 4)
    share = np.exp(log_joint - log_joint.max())
    share /= share.sum()
    for own, values, axis in (("Intercept", intercepts, 1), ("g, Intercept", spreads, 0)):
        marginal = share.sum(axis=axis)
        mean = marginal @ values
        sd = np.sqrt(marginal @ values**2 - mean**2)
        assert abs(told["mean"][own] - mean) < 0.07 * sd, own
        assert told["sd"][own] == pytest.approx(sd, rel=0.04), own


def test_models_are_compared_by_their_evidence(sleep) -> None:
    """The slopes of one mixed model beside those of another, and the two methods of evidence agree."""
    apart = cv.MixedModel("reaction ~ days + (1 | subject)", random_state=0).fit(SLEEP)
    found = cv.compare({"slopes": sleep, "intercepts": apart}, SLEEP)
    assert found.best == "slopes"
    assert 10 < -found.rows[1].difference < 20
    for model in (sleep, apart):
        sampled = model.evidence(SLEEP, method="importance_sampling")
        corrected = model.evidence(SLEEP, method="second_order")
        assert sampled.value > model.elbo_ - 3 * sampled.error
        assert abs(sampled.value - corrected.value) < 3 * np.hypot(sampled.error, corrected.error)
    assert model.evidence(None, method="elbo").value == model.elbo_
    moved = pd.DataFrame(SLEEP)
    moved["reaction"] = moved["reaction"] + 5.0
    with pytest.raises(cv.DataError, match="expected the data of the fit"):
        apart.evidence(moved)
    with pytest.raises(cv.ModelError, match="observe the same variables"):
        cv.compare({"one": apart, "other": cv.MixedModel("days ~ 1 + (1 | subject)").fit(SLEEP)}, SLEEP)


@pytest.mark.slow
@pytest.mark.thinned(2)
@pytest.mark.parametrize("offset", [100.0, 1e5])
def test_slopes_of_groups_do_not_depend_on_where_their_column_is_measured_from(
    offset: float, tmp_path
) -> None:
    """Slopes along a column far from zero are measured from its mean: ELBO, spreads and predictions stay the same."""
    days = np.asarray(SLEEP["days"])
    table = {"reaction": np.asarray(SLEEP["reaction"]), "subject": np.asarray(SLEEP["subject"]).astype(int)}
    near = cv.MixedModel("reaction ~ days + (days | subject)", random_state=0)
    near.fit({**table, "days": days + 20.0})
    far = clone(near).fit({**table, "days": days + offset})
    assert far.n_iter_ <= near.n_iter_ + 1
    mean = {"days": pytest.approx(days.mean() + offset)}
    assert far.centres_ == {"days | subject": mean, **({"common effects": mean} if offset == 1e5 else {})}
    assert far.elbo_ == pytest.approx(near.elbo_, abs=1e-5)
    assert far.fixef()["days"] == pytest.approx(near.fixef()["days"], rel=1e-5)
    at_offset = near.fixef()["Intercept"] + (20.0 - offset) * near.fixef()["days"]
    assert far.fixef()["Intercept"] == pytest.approx(at_offset, rel=1e-5)
    one, other = (own.summary().to_frame().set_index("name") for own in (near, far))
    assert "subject, Intercept at the mean" in one.index
    for name in one.index.drop("Intercept"):
        assert other["mean"][name] == pytest.approx(one["mean"][name], rel=2e-2, abs=2e-2), name
    new = {"days": np.array([3.0, 9.0, 5.0]), "subject": np.array([308, 309, 999])}
    expected = near.predict({**new, "days": new["days"] + 20.0})
    far.save(tmp_path / "model")
    for model in (far, cv.load(tmp_path / "model")):
        told = model.predict({**new, "days": new["days"] + offset})
        np.testing.assert_allclose(told.mean, expected.mean, atol=0.1)
        np.testing.assert_allclose(told.sd, expected.sd, rtol=1e-2)
    assert far.ranef()["days | subject"]["effect"].unique().tolist() == ["Intercept at the mean", "days"]


def test_the_intercept_is_that_at_zero_wherever_a_column_is_measured_from() -> None:
    """Columns more than 1,000 standard deviations from zero are measured from their mean; others are as they are."""
    table = {"reaction": np.asarray(SLEEP["reaction"]), "subject": np.asarray(SLEEP["subject"]).astype(int)}
    days = np.asarray(SLEEP["days"])
    away = 1_000.0 * days.std() - days.mean()
    found = []
    for offset in (away - 1.0, away + 1.0):
        model = cv.MixedModel("reaction ~ days + (days | subject)").fit({**table, "days": days + offset})
        assert ("common effects" in model.centres_) == (offset > away)
        rows = {row.name: row for row in model.summary().rows}
        assert model.fixef()["Intercept"] == pytest.approx(rows["Intercept"].mean, rel=1e-12)
        assert rows["Intercept"].mean + offset * rows["days"].mean == pytest.approx(251.4, abs=1.0)
        half = 0.5 * (rows["Intercept"].upper - rows["Intercept"].lower)
        assert half == pytest.approx(1.959964 * rows["Intercept"].sd, rel=1e-6)
        found.append(rows["Intercept"].sd / offset)
    assert found[0] == pytest.approx(found[1], rel=1e-4)


@pytest.mark.usefixtures("figures_of_factors")
def test_a_score_weighs_rows_as_the_fit_does() -> None:
    """A row of weight 2 is the row twice, and one of weight 0 counts nothing."""
    table = schools(40)
    weights = np.arange(40) % 3
    model = cv.MixedModel("y ~ x + (1 | school)", random_state=0).fit(table)
    repeated = table.loc[np.repeat(table.index, weights)]
    assert model.score(table, sample_weight=weights) == pytest.approx(model.score(repeated), rel=1e-12)
    with pytest.raises(cv.DataError, match="sample_weight"):
        model.score(table, sample_weight=weights[:-1])
    with pytest.raises(cv.DataError, match="the table has no rows"):
        model.predict(table.iloc[:0])


@pytest.mark.parametrize(("factor", "word"), [(1e200, "divide"), (1e-200, "multiply")])
@pytest.mark.parametrize("name", ["x", "y"])
def test_numbers_whose_squares_no_double_has_are_refused(factor: float, word: str, name: str) -> None:
    table = schools(40)
    table[name] *= factor
    with pytest.raises(cv.DataError, match=f"'{name}' has values of up to .* {word} the column"):
        cv.MixedModel("y ~ x").fit(table)


def test_numbers_as_texts_are_no_categories_unless_these_are_meant() -> None:
    """Nearly every row would have an effect of its own. If so, predictions are those of that model, and finite."""
    rng = np.random.default_rng(0)
    school, x = rng.choice(list("abc"), 12), rng.normal(size=12)
    table = pd.DataFrame({"x": x.astype(str), "school": school, "y": x + rng.normal(size=12)})
    with pytest.raises(
        cv.DataError, match=r"'x' has numbers as texts, .* each of the 12 would be a category"
    ):
        cv.MixedModel("y ~ x + (1 | school)").fit(table)
    codes = table.assign(x=np.repeat(["1", "2", "3"], 4))
    assert np.isfinite(cv.MixedModel("y ~ x + (1 | school)").fit(codes).elbo_)
    model = cv.MixedModel("y ~ C(x) + (1 | school)").fit(table)
    # the precision between schools is integrated over, and that of the noise is not
    assert "integrated over precision of 1 | school" in model.posterior_.interval_remark
    predicted = model.predict(table)
    assert np.isfinite(predicted.mean).all()
    assert (predicted.sd > 0).all()


@pytest.mark.thinned(2)
@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize("family", ["gaussian", "student"])
def test_rows_are_scored_though_their_responses_are_the_same(family: str) -> None:
    """A single row, or a fold with equal responses: the mean of the scores of its rows, as among others."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"x": rng.normal(size=30), "g": np.tile(["a", "b", "c"], 10)})
    table["y"] = table["x"] + 0.5 * rng.normal(size=30)
    fitted = cv.MixedModel("y ~ x + (1 | g)", family=family, random_state=0).fit(table)
    same, other = table.iloc[:2].assign(y=0.25), table.iloc[2:3]
    scores = [fitted.score(same.iloc[[row]]) for row in range(2)]
    assert fitted.score(same) == pytest.approx(np.mean(scores), abs=1e-9)
    both = fitted.score(pd.concat([same, other]))
    assert 3 * both == pytest.approx(sum(scores) + fitted.score(other), abs=1e-9)
    with pytest.raises(cv.DataError, match="nothing to explain"):
        cv.MixedModel("y ~ x + (1 | g)", family=family, random_state=0).fit(table.assign(y=1.0))
