"""The table of a posterior gives the moments and central intervals of its factors, and reads well."""

from dataclasses import replace

import numpy as np
import pytest
from invariants.registry import CASES
from scipy import stats
from scipy.special import expit
from thinning import amount

import caviar as cv
from caviar.posterior.summary import Summary, SummaryRow

DRAWS = 40_000


def _fitted(name, **arguments):
    return CASES[name].fit(CASES[name].draw(np.random.default_rng(0), 30), **arguments)


def _parts(name, draws):
    return (
        {name + ".mean": draws[0], name + ".precision": draws[1]}
        if isinstance(draws, tuple)
        else {name: draws}
    )


@pytest.mark.thinned(30)
@pytest.mark.parametrize("name", [name for name in CASES if name != "map"])
def test_figures_are_those_of_draws(name):
    """Mean, sd and the ends of a 90% interval of every entry agree with draws from the factors."""
    posterior = _fitted(name)
    summary = posterior.summary(level=0.9, max_rows=None, uncertainty="mean_field")
    assert not summary.left_out
    draws = {}
    for key, values in posterior.sample(DRAWS, seed=1).items():
        draws |= _parts(key, values)
    assert {row.variable for row in summary.rows} == set(draws)
    for key, values in draws.items():
        rows = [row for row in summary.rows if row.variable == key]
        variable = posterior.model.variables[key.split(".")[0]]
        part = "precision" if key.endswith(".precision") else "precision_x"
        entries = _lower_triangles(values, len(variable.plates_of(part)))
        assert len(rows) == len(entries)
        for row, entry in zip(rows, entries, strict=True):
            if np.isfinite(row.sd):
                assert row.mean == pytest.approx(entry.mean(), abs=6 * row.sd / np.sqrt(DRAWS))
            if not np.isnan(row.lower):
                # shares below the ends; their standard error is 0.001
                assert np.mean(entry < row.lower) == pytest.approx(0.05, abs=0.006)
                assert np.mean(entry > row.upper) == pytest.approx(0.05, abs=0.006)


def _lower_triangles(values, n_plates):
    """Return the draws of each entry in the order of the table."""
    entries = []
    for index in np.ndindex(values.shape[1:]):
        event = index[n_plates:]
        if len(event) < 2 or event[1] <= event[0]:
            entries.append(values[(slice(None), *index)])
    return entries


def test_exact_figures_of_a_normal():
    obs = cv.Plate("obs")
    model = cv.Model(cv.Normal("x", cv.Normal("m", 0.0, 1.0), 1.0, plates=obs))
    (row,) = model.fit({"x": [1.0, 2.0, 3.0]}).summary(level=0.8).rows
    exact = stats.norm(1.5, 0.5)
    assert (row.variable, row.index) == ("m", "")
    assert (row.mean, row.sd) == pytest.approx((1.5, 0.5))
    assert (row.lower, row.upper) == pytest.approx(exact.interval(0.8))


def _many(plate_name="group", variable_name="m"):
    obs, group = cv.Plate("obs"), cv.Plate(plate_name, 30)
    mean = cv.Normal(variable_name, 0.0, 1.0, plates=group)
    return cv.Model(cv.Normal("x", mean, 1.0, plates=(obs, group))).fit({"x": np.ones((3, 30))})


def test_long_plates_are_abbreviated():
    posterior = _many()
    lines = str(posterior.summary(max_rows=4)).splitlines()
    assert lines[0] == f"ELBO {posterior.elbo:.6f} nats, converged (iterations: {posterior.n_iter})"
    assert lines[1].split() == ["variable", "at", "mean", "sd", "95%", "interval"]
    assert lines[2].split() == ["m", "group", "0", "0.75", "0.5", "-0.23", "to", "1.73"]
    assert lines[-1].split() == ["m", "...", "26", "more"]
    assert len(lines) == 7
    assert len(posterior.summary(max_rows=None).rows) == 30


MEAN_FIELD = "Intervals are those of mean field, and may be too narrow."


def _dependent(**arguments):
    mean, tau = cv.Normal("mean", 0, 0.1), cv.Gamma("tau", 1, 1)
    return cv.Model(cv.Normal("x", mean, tau, plates=cv.Plate("obs"))).fit(
        {"x": [1.1, 0.3, 2.2, 1.0]}, **arguments
    )


@pytest.mark.parametrize(
    ("uncertainty", "remark", "beside_points", "of_rows"),
    [
        ("mean_field", MEAN_FIELD, MEAN_FIELD, MEAN_FIELD),
        (
            "auto",
            "Means, standard deviations and intervals are integrated over tau.",
            "Standard deviations and intervals are those of linear response.",
            "Means, standard deviations and intervals are corrected to second order.",
        ),
    ],
)
def test_intervals_are_called_what_they_are(uncertainty, remark, beside_points, of_rows):
    """Where one factor is all that is unknown they are exact, and nothing is said."""
    shown = {"uncertainty": uncertainty}
    summary = _dependent(**shown).summary()
    assert summary.remark == str(summary).splitlines()[-1] == remark
    assert f"<p>{remark}</p>" in summary._repr_html_()
    assert beside_points in str(_dependent(point=["tau"], **shown).summary())
    assert _dependent(point=["tau", "mean"], **shown).summary().remark == ""
    mixture = cv.BayesianGaussianMixture(2, random_state=0, **shown)
    mixture.fit(cv.datasets.load_faithful().values)
    assert mixture.posterior_.summary().remark == of_rows
    assert _many().is_exact
    assert _many().summary().remark == ""
    assert "mean field" not in str(_many().summary())
    assert "linear response" not in str(_many().summary())


def test_exact_intervals_hold_what_they_say_and_those_of_mean_field_less():
    """On data of the model itself, by the quantile of the true mean under q, from many data sets."""
    rng, inside = np.random.default_rng(0), {True: [], False: []}
    for _ in range(amount(100, 400)):
        precision = rng.gamma(2.0) / 2
        m = rng.normal(0, (0.1 * precision) ** -0.5)
        data = {"x": rng.normal(m, precision**-0.5, 3)}
        joint = cv.NormalGamma("theta", 0.0, 0.1, 2.0, 2.0)
        mean, tau = cv.Normal("mean", 0.0, 0.1), cv.Gamma("tau", 2.0, 2.0)
        for model in (
            cv.Model(cv.Normal("x", joint, plates=cv.Plate("obs"))),
            cv.Model(cv.Normal("x", mean, tau, plates=cv.Plate("obs"))),
        ):
            summary = model.fit(data).summary(level=0.8, uncertainty="mean_field")
            inside[summary.remark == ""].append(summary.rows[0].lower < m < summary.rows[0].upper)
    assert np.mean(inside[True]) == pytest.approx(0.8, abs=0.06)
    assert np.mean(inside[False]) < np.mean(inside[True]) - 0.02


def test_points_have_no_intervals():
    summary = _fitted("map").summary(max_rows=None)
    points = [row for row in summary.rows if row.variable == "precision"]
    assert len(points) == 3 * 3
    assert all(np.isnan([row.sd, row.lower, row.upper]).all() for row in points)
    assert "nan" not in str(summary)


def test_a_notebook_gets_an_escaped_table():
    html = _many("<b>group</b>", "m & <script>")._repr_html_()
    assert "<script>" not in html
    assert "<b>" not in html
    assert "<td>m &amp; &lt;script&gt;</td><td>&lt;b&gt;group&lt;/b&gt; 0</td>" in html
    assert html.count("<tr>") == 1 + 10 + 1
    assert html.count("<table>") == html.count("</table>") == 1


def test_impossible_arguments_are_refused():
    posterior = _many()
    with pytest.raises(cv.ParameterError, match="level must lie between 0 and 1; got 95"):
        posterior.summary(level=95)
    with pytest.raises(cv.ParameterError, match="max_rows must be a whole number of at least 1; got 0"):
        posterior.summary(max_rows=0)


def test_a_mean_that_is_rounding_beside_its_sd_shows_as_zero():
    row = SummaryRow("mean", "[0]", -9.992e-15, 10.0, -19.6, 19.6)
    assert str(Summary("a fit", (row,), {}, 0.95)).splitlines()[-1].split()[2] == "0"
    assert (
        str(Summary("a fit", (replace(row, sd=1e-14),), {}, 0.95)).splitlines()[-1].split()[2] == "-9.992e-15"
    )


SINGLE = np.linspace(-10.0, 10.0, 20_001)


@pytest.mark.parametrize(
    ("answer", "value", "likelihood"),
    [
        (
            lambda m: cv.TruncatedNormal("y", m, 1.0, lower=0.5),
            1.2,
            stats.norm.pdf(1.2 - SINGLE) / stats.norm.sf(0.5 - SINGLE),
        ),
        (lambda m: cv.Bernoulli("y", cv.logistic(m)), 1, expit(SINGLE)),
        (lambda m: cv.Bernoulli("y", cv.probit(m)), 1, stats.norm.cdf(SINGLE)),
        (lambda m: cv.CensoredNormal("y", m, 1.0, censored=1), 1.2, stats.norm.sf(1.2 - SINGLE)),
    ],
    ids=["truncated", "logistic", "probit", "censored"],
)
def test_what_a_single_answer_brings_is_not_shown_and_no_doubt_of_the_rest(answer, value, likelihood):
    """The figures to second order of what was stated were not shown, as the series did not hold for what was not."""
    posterior = cv.Model(answer(cv.Normal("m", 0, 1))).fit({"y": value}, tol=1e-12)
    summary = posterior.summary()
    assert [row.variable for row in summary.rows] == ["m"]
    assert summary.remark == "Means, standard deviations and intervals are corrected to second order."
    shares = stats.norm.pdf(SINGLE) * likelihood
    shares /= shares.sum()
    mean = float(shares @ SINGLE)
    sd = float(np.sqrt(shares @ (SINGLE - mean) ** 2))
    assert abs(posterior.mean("m") - mean) < 0.1 * sd
    assert abs(posterior.sd("m") / sd - 1.0) < 0.05
    (hidden,) = [name for name in posterior if name != "m"]
    assert hidden in posterior
