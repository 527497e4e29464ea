"""Functions of whole columns in formulas, codings, offsets, and trials as other packages write them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.interpolate import BSpline
from scipy.special import logsumexp

import caviar as cv
from caviar.estimators.mixed_models.columns import Rows
from caviar.estimators.mixed_models.design import Encoding
from caviar.estimators.mixed_models.formula import read

pytestmark = pytest.mark.first_guess

pytest.importorskip("formulaic")


def table(n: int = 90, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x, z = rng.normal(2.0, 1.5, n), rng.uniform(1.0, 9.0, n)
    group, kind = rng.integers(0, 6, n), rng.choice(["low", "mid", "top"], n)
    y = np.sin(x) + 0.3 * z + (kind == "top") + rng.normal(0, 0.7, 6)[group] + rng.normal(0, 0.5, n)
    trials = rng.integers(5, 12, n)
    hits = rng.binomial(trials, 1 / (1 + np.exp(-0.5 * x + 1)))
    names = np.array(list("abcdef"))[group]
    return pd.DataFrame(
        {"y": y, "x": x, "z": z, "g": names, "kind": kind, "n": trials, "k": hits, "failed": trials - hits}
    )


TABLE = table()


def matrices(effects: str, *tables: pd.DataFrame) -> list[np.ndarray]:
    """Return the matrices of tables, with what the first of them gave."""
    encoding = Encoding.of(read(f"y ~ 0 + {effects}"), Rows.of(tables[0]))
    return [encoding.matrix(f"0 + {effects}", Rows.of(own))[0] for own in tables]


@cache
def fitted(formula: str, **arguments: Any) -> cv.MixedModel:
    return cv.MixedModel(formula, random_state=0, **arguments).fit(TABLE)


def test_scale_and_center_use_the_moments_of_the_fit() -> None:
    new = TABLE.iloc[:4]
    new = new.assign(x=new["x"] + 7.0)
    _, scaled = matrices("scale(x)", TABLE, new)
    x = TABLE["x"].to_numpy()
    np.testing.assert_allclose(scaled[:, 0], (new["x"] - x.mean()) / x.std(ddof=1))
    _, centred = matrices("center(log(z))", TABLE, new)
    np.testing.assert_allclose(centred[:, 0], np.log(new["z"]) - np.log(TABLE["z"]).mean())


def test_polynomials_are_orthonormal_in_the_fit_and_the_same_functions_of_new_rows() -> None:
    whole, part = matrices("poly(x, 3)", TABLE, TABLE.iloc[10:20])
    np.testing.assert_allclose(whole.T @ whole, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(whole.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(part, whole[10:20])


def test_splines_are_those_of_scipy() -> None:
    new = TABLE.iloc[5:9]
    whole, part = matrices("bs(z, df=5)", TABLE, new)
    z = TABLE["z"].to_numpy()
    knots = np.r_[[z.min()] * 4, np.quantile(z, [1 / 3, 2 / 3]), [z.max()] * 4]
    # the first one would make up the intercept with the others
    expected = BSpline.design_matrix(z, knots, 3).toarray()[:, 1:]
    np.testing.assert_allclose(whole, expected, atol=1e-12)
    np.testing.assert_allclose(part, expected[5:9], atol=1e-12)


@pytest.mark.usefixtures("figures_of_factors")
def test_values_beyond_the_knots_of_a_spline_are_refused_unless_asked_for() -> None:
    far = TABLE.iloc[:3].assign(z=[0.0, 5.0, 100.0])
    model = fitted("y ~ bs(z, df=4) + (1 | g)")
    with pytest.raises(cv.DataError, match=r"cannot compute 'bs\(z, df=4\)' for these rows: .*extrapolation"):
        model.predict(far)
    told = fitted("y ~ bs(z, df=4, extrapolation='clip') + (1 | g)").predict(far)
    at_ends = fitted("y ~ bs(z, df=4, extrapolation='clip') + (1 | g)").predict(
        far.assign(z=[TABLE["z"].min(), 5.0, TABLE["z"].max()])
    )
    np.testing.assert_allclose(told.mean, at_ends.mean)


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize(
    "formula",
    ["y ~ scale(x) * kind + (scale(x) | g)", "y ~ poly(log(z), 2) + cr(x, df=3, constraints='center')"],
)
def test_a_saved_model_has_the_means_and_knots_of_the_fit(formula: str, tmp_path: Path) -> None:
    model = fitted(formula)
    model.save(tmp_path / "m.caviar")
    new = TABLE.iloc[:2]
    told = model.predict(new)
    np.testing.assert_array_equal(cv.load(tmp_path / "m.caviar").predict(new).mean, told.mean)
    # of two rows alone the mean and the standard deviation are others
    np.testing.assert_allclose(told.mean, model.predict(TABLE).mean[:2])


def test_states_that_are_none_are_refused(tmp_path: Path) -> None:
    model = cv.MixedModel("y ~ scale(x)", random_state=0).fit(TABLE)
    vars(model)["states_"] = {"scale(x)": [1.0]}
    model.save(tmp_path / "m.caviar")
    with pytest.raises(cv.DataError, match="states_ is not that of functions in a formula"):
        cv.load(tmp_path / "m.caviar")


@pytest.mark.parametrize(
    ("coding", "columns"),
    [
        ("Treatment('mid')", [[1, 0], [0, 0], [0, 1]]),
        ("contr.treatment('top')", [[1, 0], [0, 1], [0, 0]]),
        ("Sum", [[1, 0], [0, 1], [-1, -1]]),
        ("contr.helmert", [[-1, -1], [1, -1], [0, 2]]),
    ],
)
def test_codings_of_categories(coding: str, columns: list[list[int]]) -> None:
    encoding = Encoding.of(read(f"y ~ C(kind, {coding})"), Rows.of(TABLE))
    matrix, _ = encoding.matrix(f"C(kind, {coding})", Rows.of(TABLE))
    place = TABLE["kind"].map({"low": 0, "mid": 1, "top": 2}).to_numpy()
    np.testing.assert_allclose(matrix, np.c_[np.ones(len(TABLE)), np.array(columns)[place]])


@pytest.mark.usefixtures("figures_of_factors")
def test_an_offset_is_taken_from_a_response_of_numbers() -> None:
    moved = TABLE.assign(y=TABLE["y"] - 0.3 * TABLE["z"])
    one = fitted("y ~ x + offset(0.3 * z) + (1 | g)")
    other = cv.MixedModel("y ~ x + (1 | g)", random_state=0).fit(moved)
    assert one.elbo_ == pytest.approx(other.elbo_, abs=1e-6)
    np.testing.assert_allclose(one.fixef(), other.fixef(), atol=1e-6)
    np.testing.assert_allclose(
        one.predict(TABLE).mean, other.predict(TABLE).mean + 0.3 * TABLE["z"], atol=1e-6
    )
    assert one.score(TABLE) == pytest.approx(other.score(moved), abs=1e-6)


def test_two_offsets_add_up() -> None:
    one = fitted("y ~ x + offset(z) + offset(x)")
    assert one.elbo_ == pytest.approx(fitted("y ~ x + offset(z + x)").elbo_, abs=1e-8)


@pytest.mark.usefixtures("figures_of_factors")
def test_exposures_of_counts_multiply_the_mean() -> None:
    counts = TABLE.assign(k=TABLE["k"] * TABLE["n"])
    model = cv.MixedModel("k ~ x + offset(log(n)) + (1 | g)", family="negative_binomial", size=3.0).fit(
        counts
    )
    once, twice = (model.predict(counts.assign(n=factor * counts["n"])) for factor in (1.0, 2.0))
    np.testing.assert_allclose(twice.mean, 2 * once.mean, rtol=1e-10)
    # in units of ten days a tenth of the exposure, and an intercept that is higher by log(10)
    tens = cv.MixedModel("k ~ x + offset(log(n / 10)) + (1 | g)", family="negative_binomial", size=3.0).fit(
        counts
    )
    assert tens.elbo_ == pytest.approx(model.elbo_, abs=1e-6)
    assert tens.fixef()["Intercept"] - model.fixef()["Intercept"] == pytest.approx(np.log(10), abs=1e-6)


def test_a_constant_offset_moves_thresholds() -> None:
    ratings = TABLE.assign(y=np.digitize(TABLE["y"], [1.5, 2.5]), one=0.75)
    plain, moved = (
        cv.MixedModel(f"y ~ x{offset} + (1 | g)", family="ordinal", tol=1e-10).fit(ratings)
        for offset in ("", " + offset(one)")
    )
    assert moved.elbo_ == pytest.approx(plain.elbo_, abs=1e-5)
    one, other = plain.thresholds(), moved.thresholds()
    np.testing.assert_allclose(other["mean"], one["mean"] + 0.75, atol=1e-4)
    np.testing.assert_allclose(other["sd"], one["sd"], rtol=1e-4)


def test_an_offset_of_binary_outcomes_with_groups_is_that_of_quadrature() -> None:
    """Each group is integrated out by Gauss-Hermite nodes, on a grid of the intercept and the spread."""
    rng = np.random.default_rng(3)
    group, known = np.repeat(np.arange(5), 12), np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    at = 0.3 + 0.8 * rng.normal(size=5)[group] + known[group]
    y = (at + rng.logistic(size=60) > 0).astype(float)
    frame = {"y": y, "g": [f"group {own}" for own in group], "known": known[group]}
    model = cv.MixedModel("y ~ 1 + offset(known) + (1 | g)", family="bernoulli").fit(frame)
    rows = {row.name: row for row in model.summary(level=0.9).rows}

    levels, spreads = np.linspace(-4.0, 5.0, 91), np.geomspace(0.01, 15.0, 150)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    at = levels[:, None, None] + spreads[:, None] * nodes + known[:, None, None, None]
    of_groups = np.bincount(group, y)[:, None, None, None] * at - 12 * np.logaddexp(0, at)
    log_density = logsumexp(of_groups, b=weights / weights.sum(), axis=-1).sum(axis=0)
    log_density += stats.norm.logpdf(levels, 0, 2.5)[:, None]
    log_density += stats.t.logpdf(spreads / 2.5, 4) + np.log(spreads)
    share = np.exp(log_density - log_density.max())
    share /= share.sum()
    mean = float(share.sum(axis=1) @ levels)
    sd = float(np.sqrt(share.sum(axis=1) @ (levels - mean) ** 2))
    assert rows["Intercept"].mean == pytest.approx(mean, abs=0.06 * sd)
    assert rows["Intercept"].sd == pytest.approx(sd, rel=0.06)
    spread = float(share.sum(axis=0) @ spreads)
    assert rows["g, Intercept"].mean == pytest.approx(spread, rel=0.06)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("response", ["prop(k, n)", "p( k ,n)", "cbind(k, n - k)", "cbind(k, failed)"])
def test_trials_as_others_write_them(response: str) -> None:
    one = fitted("k | trials(n) ~ x + (1 | g)", family="binomial")
    other = fitted(f"{response} ~ x + (1 | g)", family="binomial")
    assert other.elbo_ == one.elbo_
    np.testing.assert_array_equal(other.predict(TABLE).mean, one.predict(TABLE).mean)


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("k / n ~ x", r"'prop\(k, n\)'"),
        ("cbind(k, n - x) ~ x", "got 'cbind"),
        ("prop(k, n, x) ~ x", "got 'prop"),
        ("y ~ x - offset(z)", r"write 'offset\(-\(z\)\)'"),
        ("y ~ offset(kind)", r"offset\(kind\) needs one number for each row"),
        ("y ~ x + (offset(z) | g)", "not supported"),
        ("y ~ x + offset(open)", "no column 'open'"),
        ("y ~ offset(open('f'))", "not supported"),
        ("y ~ bs(x, df=100000)", "not supported"),
        ("y ~ scale(x, ddof=__import__('os'))", "not supported"),
        ("y ~ C(kind, Treatment(z))", "not supported"),
        ("y ~ C(kind, levels=['low'])", "not supported"),
        ("y ~ np.load(x)", "not supported"),
        ("y ~ np.log.at(x)", "not supported"),
    ],
)
def test_what_is_not_supported_is_refused(formula: str, words: str) -> None:
    with pytest.raises(cv.CaviarError, match=words):
        fitted(formula)


@pytest.mark.parametrize(
    ("effects", "remedy"),
    [
        ("x**2", "I(x**2)"),
        ("z + x^3", "I(x**3)"),
        ("z + (x)**2", "I(x**2)"),
        ("(x:z)**2", "I((x * z)**2)"),
        ("log(abs(x))**2", "I(log(abs(x))**2)"),
        ("`body mass`**2", "I(`body mass`**2)"),
        ("z + (x**2 | kind)", "I(x**2)"),
    ],
)
def test_powers_of_a_single_term_are_refused_with_the_way_to_write_them(effects: str, remedy: str) -> None:
    """They are the term itself in a formula; the slope of what is meant is that of least squares."""
    x, z = np.random.default_rng(0).normal(size=(2, 60))
    meant = {
        "I(x**2)": x**2,
        "I(x**3)": x**3,
        "I((x * z)**2)": (x * z) ** 2,
        "I(log(abs(x))**2)": np.log(np.abs(x)) ** 2,
        "I(`body mass`**2)": z**2,
    }[remedy]
    y = 1 + 3 * meant + 0.1 * np.random.default_rng(1).normal(size=60)
    table = {"x": x, "z": z, "body mass": z, "kind": np.array(["a", "b", "c"] * 20), "y": y}
    with pytest.raises(cv.ParameterError, match="leave the power out") as refused:
        cv.MixedModel(f"y ~ {effects}").fit(table)
    assert remedy in str(refused.value)
    slope = np.linalg.lstsq(np.column_stack([np.ones(60), meant]), y)[0][1]
    assert abs(cv.MixedModel(f"y ~ {remedy}").fit(table).fixef().iloc[-1] - slope) < 0.01


def test_powers_of_sums_are_interactions() -> None:
    x, z = np.random.default_rng(0).normal(size=(2, 30))
    fit = cv.MixedModel("y ~ (x + z)**2 + I(x**2)").fit({"x": x, "z": z, "y": np.sin(5 * x)})
    assert fit.names_ == ["Intercept", "x", "z", "I(x ** 2)", "x:z"]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("response", ["prop(k, n)", "cbind(k, failed)"])
def test_curves_are_drawn_of_one_trial(response: str) -> None:
    pytest.importorskip("matplotlib")
    model = fitted(f"{response} ~ x + (1 | g)", family="binomial")
    ax = cv.plot.regression(model, TABLE, "x", n_draws=20)
    assert ax.get_ylabel() == "k, share of trials"
    # the interval of a new row would be that of one trial: from 0 to 1
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["row", "expected, 95% interval"]


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize(
    ("formula", "plain"),
    [
        ("y ~ log(body.mass)", "y ~ log(m)"),
        ("y ~ log(`body mass`) + `body mass`", "y ~ log(m) + m"),
        ("y ~ I(1.5 * body.mass**2)", "y ~ I(1.5 * m**2)"),
        ("y ~ np.log(body.mass) + C(a.group, contr.sum)", "y ~ np.log(m) + C(g, contr.sum)"),
        ("y ~ C(`a.group`, Treatment('b')) + offset(body.mass)", "y ~ C(g, Treatment('b')) + offset(m)"),
        ("y ~ 1 + (scale(body.mass) | a.group)", "y ~ 1 + (scale(m) | g)"),
    ],
)
def test_names_with_dots_or_in_backticks_are_columns_also_of_functions(formula: str, plain: str) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"y": rng.normal(size=60), "m": rng.uniform(1, 3, 60), "g": rng.choice(list("abc"), 60)}
    )
    table = table.assign(**{"body.mass": table["m"], "body mass": table["m"], "a.group": table["g"]})
    found, expected = (cv.MixedModel(own, random_state=0).fit(table) for own in (formula, plain))
    assert found.elbo_ == pytest.approx(expected.elbo_, abs=1e-9)
    np.testing.assert_allclose(found.predict(table).mean, expected.predict(table).mean, atol=1e-9)


NUMBERS = np.round(np.linspace(-3.0, 3.0, 90), 3)


@pytest.mark.parametrize(
    ("texts", "remedy"),
    [
        (
            [f"{own}".replace(".", ",") for own in NUMBERS],
            r"decimal comma, so .*\.str\.replace\(',', '\.'\)\.astype",
        ),
        (
            [f"{own:e}".replace(".", ",") for own in NUMBERS],
            r"decimal comma, so .*\.str\.replace\(',', '\.'\)",
        ),
        (
            [f"{1 + own},{own:03}" for own in range(90)],
            r"separators of thousands, so .*\.str\.replace\(',', ''\).*; if the commas are decimal, with '\.' in",
        ),
        (
            ["unknown" if own == 7 else f"{x}" for own, x in enumerate(NUMBERS)],
            "correct 'unknown', or leave out row 7",
        ),
    ],
)
def test_columns_of_numbers_in_other_notations_or_with_a_word_are_no_categories(texts, remedy):
    """Each of their values would be a coefficient, without a word."""
    with pytest.raises(
        cv.DataError, match=f"'w' has numbers as texts, .* 90 would be a category: .*{remedy}"
    ):
        cv.MixedModel("y ~ w").fit(TABLE.assign(w=texts))
    with pytest.raises(cv.DataError, match=f"response 'w' has texts.*{remedy}"):
        cv.MixedModel("w ~ x").fit(TABLE.assign(w=texts))


def test_texts_in_the_place_of_numbers_of_the_fit_are_told_apart():
    new = {"x": ["1", "2"]}
    with pytest.raises(
        cv.DataError, match=r"got '1' in row 0: make them numbers, as by table\['x'\]\.astype"
    ):
        fitted("y ~ x").predict(new)
    with pytest.raises(cv.DataError, match="got 'b' in row 1: correct 'b', or leave out row 1"):
        fitted("y ~ x").predict({"x": ["1", "b"]})
    with pytest.raises(cv.DataError, match="got 'a' in row 0: code the column as numbers"):
        fitted("y ~ x").predict({"x": ["a", "b"]})


def test_a_response_of_two_texts_is_refused_with_the_line_that_codes_it():
    words = TABLE.assign(passed=np.where(TABLE.y > 2.0, "yes", "no"))
    with pytest.raises(cv.DataError, match="'yes' a 1") as told:
        cv.MixedModel("passed ~ x", family="bernoulli").fit(words)
    line = str(told.value).rpartition("; ")[2].partition(" makes")[0]
    exec(line, {"table": words})
    assert cv.MixedModel("passed ~ x", family="bernoulli").fit(words).fixef()["x"] != 0


@pytest.mark.parametrize("formula", ["y ~ x", "y ~ x + z", "y ~ scale(x)", "y ~ z + (1 | x)", "k ~ x"])
def test_columns_of_different_lengths_are_named(formula):
    columns = {name: TABLE[name].to_numpy() for name in ("y", "z", "k")} | {"x": TABLE.x.to_numpy()[:-1]}
    family = "negative_binomial" if formula.startswith("k") else "gaussian"
    with pytest.raises(cv.DataError, match="has 90 rows, and 'x' has 89"):
        cv.MixedModel(formula, family=family, size=1.0).fit(columns)
    with pytest.raises(cv.DataError, match="'x' has 1 rows, and 'z' has 2"):
        fitted("y ~ x + z").predict({"x": [1.0], "z": [1.0, 2.0]})
    assert (
        len(cv.MixedModel("y ~ z").fit({**columns, "note": ["one"]}).fixef()) == 2
    )  # x and note are not read


def test_complex_numbers_are_refused():
    with pytest.raises(cv.DataError, match="'x' must have numbers; got complex ones"):
        cv.MixedModel("y ~ x").fit(TABLE.assign(x=TABLE.x + 1j))


def test_columns_are_found_by_names_in_other_cases():
    with pytest.raises(cv.DataError, match=r"no column 'X'.* Did you mean 'x'"):
        cv.MixedModel("y ~ X").fit(TABLE)


@pytest.mark.usefixtures("figures_of_factors")
def test_new_groups_that_are_numbers_of_the_fit_in_other_digits_are_refused():
    """A program that reads 007 as 7 would predict averages over all groups."""
    codes = TABLE.assign(school=[f"{5 + row % 4:03}" for row in range(len(TABLE))])
    model = cv.MixedModel("y ~ x + (1 | school)").fit(codes)
    with pytest.raises(cv.DataError, match="'school' has '7' in row 1, and the fit had '007'"):
        model.predict({"x": [0.0, 0.0], "school": [40, 7]})
    assert np.isfinite(model.predict({"x": [0.0] * 3, "school": ["040", "007", None]}).mean).all()
    assert model._unseen_groups({"x": [0.0] * 4, "school": ["040", "007", None, "9a"]}) == {
        "school": ["040", "9a"]
    }


@pytest.mark.usefixtures("figures_of_factors")
def test_interactions_without_rows_for_some_combination_say_what_to_write():
    """A single product of levels cannot be left out of a formula."""
    some = TABLE[~((TABLE.kind == "top") & (TABLE.g == "f"))]
    with pytest.raises(
        cv.DataError, match=r"'kind\[T.top\]:g\[T.f\]' of the formula is 0 in all rows; some comb"
    ):
        cv.MixedModel("y ~ kind * g").fit(some)
    both = some.assign(both=some.kind + " " + some.g)
    cells = cv.MixedModel("y ~ 0 + both").fit(both).fixef()
    assert len(cells) == 17
    with pytest.raises(
        cv.DataError, match=r"'w' of the formula is a combination of the columns before it .*; leave it"
    ):
        cv.MixedModel("y ~ x + w").fit(TABLE.assign(w=2 * TABLE.x))


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize(
    ("formula", "renamed", "family"),
    [
        ("y ~ x + (1 | row) + (1 | column)", {"row": "g", "column": "kind"}, "gaussian"),
        ("y ~ x + (x | row)", {"row": "g"}, "gaussian"),
        ("weight ~ x", {"weight": "y"}, "student"),
        ("weight ~ x + (1 | row)", {"weight": "y", "row": "g"}, "student"),
    ],
)
def test_columns_may_have_the_names_of_parts_of_the_model(formula, renamed, family):
    """Rows and columns of a field, and the weight of an animal."""
    plain = formula
    for name, own in renamed.items():
        plain = plain.replace(name, own)
    own = TABLE.rename(columns={old: name for name, old in renamed.items()})
    model = cv.MixedModel(formula, family=family, random_state=0).fit(own)
    assert model.elbo_ == fitted(plain, family=family).elbo_
    assert np.array_equal(model.predict(own[:3]).mean, fitted(plain, family=family).predict(TABLE[:3]).mean)


def test_a_column_with_the_name_of_the_intercept_is_refused():
    with pytest.raises(cv.DataError, match="has the name of the intercept, 'Intercept'; rename it"):
        cv.MixedModel("y ~ Intercept").fit(TABLE.rename(columns={"x": "Intercept"}))


def test_a_negative_binomial_of_a_large_size_is_a_poisson_regression():
    """Beside the maximum of the Poisson likelihood, and its standard errors."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=300)
    counts = rng.poisson(np.exp(1.2 + 0.6 * x))
    beta, X = np.zeros(2), np.column_stack([np.ones(300), x])
    for _ in range(50):
        mean = np.exp(X @ beta)
        beta = beta + np.linalg.solve((X.T * mean) @ X, X.T @ (counts - mean))
    sds = np.sqrt(np.diag(np.linalg.inv((X.T * np.exp(X @ beta)) @ X)))
    rows = (
        cv.MixedModel("k ~ x", family="negative_binomial", size=1e6).fit({"k": counts, "x": x}).summary().rows
    )
    np.testing.assert_allclose([own.mean for own in rows], beta, atol=0.05 * sds.min())
    np.testing.assert_allclose([own.sd for own in rows], sds, rtol=0.02)
    with pytest.raises(cv.ParameterError, match="take 'negative_binomial', with size=1e6 nearly a Poisson"):
        cv.MixedModel("k ~ x", family="poisson").fit({"k": counts, "x": x})
    with pytest.raises(cv.ParameterError, match="got 'Gaussian'; did you mean 'gaussian'"):
        cv.MixedModel("k ~ x", family="Gaussian").fit({"k": counts, "x": x})


def test_counts_of_a_binomial_without_trials_are_told_how_these_are_written():
    with pytest.raises(
        cv.DataError, match=r"0 or 1 without trials, which are written 'k \| trials\(n\) ~ x'"
    ):
        cv.MixedModel("k ~ x", family="binomial").fit(TABLE)
