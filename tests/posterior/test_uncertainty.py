"""Which standard deviations a posterior shows: those to second order where they cost little, and it says so."""

import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

import caviar as cv
from caviar.posterior.uncertainty.pending import Judged

OBS = cv.Plate("obs")


def sum_of_two():
    """A sum of two Normals: each is exact under linear response, and too narrow under mean field."""
    a, b = cv.Normal("a", 0, 1), cv.Normal("b", 0, 1)
    return cv.Model(cv.Normal("x", a + b, 4.0, plates=OBS))


X = np.array([1.0, 1.5, 2.0])
# the posterior of a and b: precision I + 12 * ones
EXACT = np.sqrt(np.linalg.inv(np.eye(2) + 12.0)[0, 0])
NARROW = np.sqrt(1 / 13)
LINEAR, MEAN_FIELD = "those of linear response", "those of mean field"
SECOND = "corrected to second order"


def fitted(**arguments):
    return sum_of_two().fit({"x": X}, tol=1e-13, factors="apart", **arguments)


def test_what_is_shown_is_exact_for_a_gaussian_posterior():
    posterior = fitted()
    row = posterior.summary(level=0.9).rows[0]
    assert row.sd == pytest.approx(EXACT, rel=1e-8)
    assert (row.lower, row.upper) == pytest.approx(stats.norm(row.mean, EXACT).interval(0.9))
    assert posterior.sd("a") == pytest.approx(EXACT, rel=1e-8)
    np.testing.assert_allclose(posterior.interval("a", 0.9), (row.lower, row.upper))
    assert posterior.uncertainty == "second_order"
    assert SECOND in posterior.interval_remark
    narrow = posterior.summary(uncertainty="mean_field")
    assert narrow.rows[0].sd == pytest.approx(NARROW)
    assert MEAN_FIELD in narrow.remark


def test_mean_field_is_shown_where_it_is_asked_for():
    posterior = fitted(uncertainty="mean_field")
    assert posterior.sd("a") == pytest.approx(NARROW)
    assert posterior.uncertainty == "mean_field"
    with pytest.raises(cv.ModelError, match=r"linear_response\(data\)"):
        posterior.summary(uncertainty="linear_response")


def test_data_are_kept_until_they_were_used_and_no_longer():
    posterior = fitted()
    assert isinstance(posterior._uncertainty, Judged)
    posterior.summary()
    assert not isinstance(posterior._uncertainty, Judged)
    for kind in ("linear_response", "mean_field"):
        assert not isinstance(fitted(uncertainty=kind)._uncertainty, Judged)


def _sum(x):
    return sum_of_two().fit({"x": x[:, 0]}, tol=1e-13, factors="apart")


def _mixture(x):
    return cv.models.gaussian_mixture(1, 2).fit({"x": x}, seed=0, tol=1e-13)


@pytest.mark.parametrize("fit", [_sum, _mixture])
def test_data_that_have_changed_since_are_not_taken_for_those_of_the_fit(fit):
    """What is shown is linear response for the data of the fit, as far as these were kept, or that of the factors."""
    x = np.concatenate([np.linspace(-2.0, -1.0, 20), np.linspace(1.0, 3.0, 30)])[:, None]
    expected, posterior = fit(x.copy()), fit(x)
    x += np.linspace(0.0, 1.0, 50)[:, None]
    noticed = "have changed" in posterior.interval_remark
    for name in posterior:
        parts = zip(
            posterior.marginals(name),
            posterior[name].entry_marginals((0.025, 0.975)) if noticed else expected.marginals(name),
            strict=True,
        )
        for shown, other in parts:
            np.testing.assert_allclose(shown.sd, other.sd, rtol=1e-6)
    # asked about the changed data, it says so
    with pytest.raises(cv.DataError, match="expected the data of the fit"):
        posterior.linear_response({"x": x[:, 0] if fit is _sum else x})


@pytest.mark.parametrize(
    ("uncertainty", "shown"), [("auto", "second_order"), ("linear_response", "linear_response")]
)
def test_saved_and_pickled_posteriors_show_the_same(tmp_path, uncertainty, shown):
    posterior = fitted(uncertainty=uncertainty)
    posterior.save(tmp_path / "m.caviar")
    for other in (cv.load(tmp_path / "m.caviar"), pickle.loads(pickle.dumps(posterior))):
        assert other.uncertainty == shown
        assert str(other.summary()) == str(posterior.summary())
        assert not isinstance(other._uncertainty, Judged)


def test_posteriors_with_a_posterior_for_a_prior_show_their_factors_and_why():
    posterior = fitted().update({"x": X + 0.1})
    assert posterior.uncertainty == "mean_field"
    assert "the prior was an earlier posterior" in posterior.summary().remark
    asked = fitted().update({"x": X + 0.1}, uncertainty="linear_response")
    assert LINEAR in asked.interval_remark
    assert "earlier rows" in asked.interval_remark


def test_what_does_not_settle_shows_its_factors_and_why():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, (200, 2)), rng.normal(4, 1, (200, 2))])
    model = cv.models.gaussian_mixture(2, 2)
    assert "stochastic" in model.fit({"x": x}, seed=0, schedule="stochastic").summary().remark
    left = model.fit({"x": x[::3]}, init="prior", max_iter=0).summary()
    assert MEAN_FIELD in left.remark
    assert "saddle" in left.remark or "settled" in left.remark


def test_documents_have_it_and_their_estimator_says_how():
    counts = csr_array(np.random.default_rng(0).poisson(1.0, (6, 8)) + 1)
    model = cv.models.latent_dirichlet_allocation(2, 8)
    posterior = model.fit({"word": counts}, seed=0, tol=1e-10, uncertainty="linear_response")
    assert posterior.uncertainty == "linear_response"
    with pytest.raises(cv.ParameterError, match=r"lda\.posterior_\.linear_response"):
        cv.LatentDirichletAllocation(2, uncertainty="linear_response").fit(counts)


def test_rotations_of_factors_have_no_width_to_show():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(80, 5))
    posterior = cv.models.factor_analysis(5, 2).fit({"x": x}, seed=0, tol=1e-10, max_iter=3000)
    assert posterior.uncertainty == "mean_field"
    assert "rotation" in posterior.interval_remark


def test_a_fit_that_cannot_have_it_warns_and_keeps_its_end():
    model = cv.models.gaussian_mixture(2, 2)
    x = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.warns(cv.CaviarWarning, match="linear_response' is not available for this fit"):
        posterior = model.fit({"x": x}, init="prior", max_iter=0, uncertainty="linear_response")
    assert posterior.uncertainty == "mean_field"


def test_large_posteriors_beside_short_fits_show_their_factors():
    """600 coefficients have 180,900 statistics: too many for what nobody asked for."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(50, 600))
    posterior = cv.models.linear_regression(600).fit({"X": Z, "y": Z[:, 0]}, max_iter=3)
    assert "would cost more than the fit" in posterior.interval_remark


def test_unknown_kinds_and_names_are_refused():
    with pytest.raises(
        cv.ParameterError, match="'auto', 'integrated', 'linear_response', 'second_order', 'mean_field'"
    ):
        fitted(uncertainty="laplace")
    with pytest.raises(cv.ParameterError, match="uncertainty must be one of"):
        fitted().summary(uncertainty="laplace")
    theta = cv.NormalGamma("theta", 0.0, 0.1, 2.0, 2.0)
    posterior = cv.Model(cv.Normal("x", theta, plates=OBS)).fit({"x": X})
    assert posterior.sd("theta.mean") > 0
    with pytest.raises(cv.ModelError, match=r"'theta\.mean' and 'theta\.precision'"):
        posterior.sd("theta")


def test_names_with_dots_are_told_from_parts():
    obs = cv.Plate("obs")
    a = cv.Normal("a", 0.0, cv.Gamma("a.precision", 2.0, 2.0), plates=cv.Plate("group", 3))
    x = cv.Normal("x", a[cv.Data("g", plates=obs)], 1.0, plates=obs)
    posterior = cv.Model(x).fit({"g": [0, 1, 2, 2], "x": [0.1, 1.0, 2.0, 3.0]})
    assert posterior.interval("a.precision").shape == (2,)
    assert posterior.mean("a.precision").shape == ()
    assert posterior.sd("a").shape == (3,)
    with pytest.raises(cv.ModelError, match=r"'a' has 'a'; got 'a\.mean'"):
        posterior.mean("a.mean")


def test_what_is_known_has_no_interval():
    group = cv.Plate("group", 2)
    level = cv.Normal("level", 0.0, 0.1, plates=group)
    x = cv.Normal("x", level[cv.Data("g", plates=OBS)], cv.Gamma("tau", 2, 2), plates=OBS)
    data = {"x": [1.0, 1.2, 3.0, 2.5], "g": [0, 0, 1, 1], "level": [1.0, np.nan]}
    posterior = cv.Model(x).fit(data, tol=1e-12)
    rows = [row for row in posterior.summary().rows if row.variable == "level"]
    assert posterior.interval_remark == "Means, standard deviations and intervals are integrated over tau."
    assert (rows[0].mean, rows[0].sd, rows[0].lower, rows[0].upper) == (1.0, 0.0, 1.0, 1.0)
    assert "1 to 1" not in str(posterior.summary())
    assert rows[1].sd > 0


# estimators


def separate():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(0, 1, (70, 2)), rng.normal(3, 1, (50, 2))])


def test_estimators_have_standard_errors_of_em():
    """Those of the means are the inverse of the differenced information of the log-likelihood."""
    x = separate()[:, :1]
    mixture = cv.GaussianMixture(
        2,
        covariance_type="spherical",
        tol=1e-13,
        max_iter=5000,
        uncertainty="linear_response",
        random_state=0,
    ).fit(x)
    precision = 1 / mixture.covariances_
    at = np.array(
        [*mixture.means_[:, 0], *np.log(precision), np.log(mixture.weights_[0] / mixture.weights_[1])]
    )

    def log_likelihood(parameters):
        w = 1 / (1 + np.exp(-parameters[4]))
        sds = np.exp(-0.5 * parameters[2:4])
        parts = np.stack([stats.norm(parameters[k], sds[k]).logpdf(x[:, 0]) for k in range(2)])
        return np.logaddexp.reduce(parts + np.log([[w], [1 - w]]), axis=0).sum()

    h, unit = 1e-3, np.eye(5)
    information = np.zeros((5, 5))
    for i in range(5):
        for j in range(5):
            information[i, j] = -sum(
                s * t * log_likelihood(at + h * (s * unit[i] + t * unit[j])) for s in (1, -1) for t in (1, -1)
            ) / (4 * h * h)
    sds = np.sqrt(np.diag(np.linalg.inv(information)))
    np.testing.assert_allclose(mixture.means_sd_[:, 0], sds[:2], rtol=1e-4)
    np.testing.assert_allclose(mixture.weights_sd_, sds[4] * mixture.weights_.prod(), rtol=1e-4)
    np.testing.assert_allclose(
        mixture.credible_intervals(0.9).means[:, :, 0],
        stats.norm(mixture.means_[:, 0], sds[:2]).interval(0.9),
        rtol=1e-4,
    )


@pytest.mark.parametrize("structure", ["full", "diag", "tied", "spherical"])
def test_standard_errors_of_one_component_are_those_of_a_sample(structure):
    """Of its mean: standard deviations over the square root of n; covariances have none here."""
    x = np.random.default_rng(3).normal([0, 5], [1.0, 4.0], (80, 2))
    mixture = cv.GaussianMixture(1, covariance_type=structure, uncertainty="linear_response").fit(x)
    spread = x.std(axis=0) if structure != "spherical" else np.sqrt(x.var(axis=0).mean()) * np.ones(2)
    np.testing.assert_allclose(mixture.means_sd_, [spread / np.sqrt(80)], rtol=1e-5)
    assert np.isnan(mixture.credible_intervals().covariances).all()


def test_points_of_estimators_have_no_standard_deviations_unless_asked():
    mixture = cv.GaussianMixture(2, random_state=0).fit(separate())
    with pytest.raises(AttributeError, match="uncertainty='linear_response'"):
        _ = mixture.means_sd_
    assert not hasattr(mixture, "weights_sd_")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("family", ["joint", "independent"])
def test_estimators_show_what_their_posterior_shows(tmp_path, family):
    arguments = {"mean_precision_family": family, "random_state": 0}
    mixture = cv.BayesianGaussianMixture(2, **arguments, uncertainty="linear_response").fit(separate())
    response = mixture.posterior_.linear_response({"x": separate()})
    name = "theta.mean" if family == "joint" else "mean"
    np.testing.assert_allclose(mixture.means_sd_, response.sd(name))
    np.testing.assert_allclose(mixture.weights_sd_, response.sd("weights"))
    mixture.save(tmp_path / "m.caviar")
    again = cv.load(tmp_path / "m.caviar")
    np.testing.assert_array_equal(again.means_sd_, mixture.means_sd_)
    shown = cv.BayesianGaussianMixture(2, **arguments).fit(separate())
    np.testing.assert_array_equal(shown.means_sd_, shown.posterior_.sd(name))
    assert shown.posterior_.uncertainty in ("second_order", "importance_sampling")
    given = cv.BayesianGaussianMixture(2, **arguments, uncertainty="mean_field").fit(separate())
    assert (given.means_sd_ < mixture.means_sd_).all()


def test_estimators_ask_once_however_many_starts_there_are():
    mixture = cv.BayesianGaussianMixture(
        2, n_init=2, init_params="random", random_state=0, uncertainty="linear_response"
    ).fit(separate())
    assert mixture.posterior_.uncertainty == "linear_response"
    more = mixture.partial_fit(separate() + 0.01)
    assert more.posterior_.uncertainty == "linear_response"


def test_mixtures_of_mixed_columns_show_it():
    rng = np.random.default_rng(0)
    rows = [
        [float(rng.normal(3 * k)), "ab"[int(rng.random() < 0.2 + 0.6 * k)]] for k in (0, 1) for _ in range(60)
    ]
    mixture = cv.MixedMixture(2, random_state=0).fit(rows)
    assert mixture.posterior_.uncertainty == "importance_sampling"
    assert (mixture.weights_sd_ > np.sqrt(mixture.posterior_["weights"].variance)).all()


def overlapping():
    rng = np.random.default_rng(3)
    return {"x": rng.normal(size=(300, 2)) + 2.2 * rng.integers(0, 2, size=(300, 1))}


def test_what_a_fit_may_cost_counts_the_fits_that_it_continues(monkeypatch):
    """Two iterations alone would not pay for it; the fit that they continue does."""
    monkeypatch.setattr("caviar.engine.response.cost._ALWAYS", 0.0)
    model, data = cv.models.gaussian_mixture(2, 2), overlapping()
    labels = np.arange(300) % 2
    first = model.fit(
        data, init={"z": np.where(data["x"][:, 0] > 2.0, 1, labels)}, accelerate=False, tol=1e-9
    )
    assert first.n_iter > 20
    again = model.fit(data, init={name: first[name] for name in first})
    assert again.n_iter < 5
    assert "would cost more than the fit" in again.interval_remark
    continued = model.fit(data, init=first)
    assert (continued.n_iter, continued.elbo) == (again.n_iter, again.elbo)
    assert continued.uncertainty != "mean_field"
    twice = model.fit(data, init=model.fit(data, init=first))
    assert twice.uncertainty != "mean_field"


def test_a_fit_continues_from_a_posterior_by_the_names_of_its_positions():
    """Levels that come in another order, or fewer of them; others are refused."""
    obs, group = cv.Plate("obs"), cv.Plate("group")
    effect = cv.Normal("effect", 0.0, 0.1, plates=group)
    model = cv.Model(cv.Normal("y", effect[cv.Data("g", plates=obs)], 1.0, plates=obs))
    names, y = np.array(list("abcabc")), np.array([0.0, 5.0, 9.0, 0.2, 5.2, 9.2])
    first = model.fit({"g": names, "y": y})
    # values without an iteration are those of the start
    later = model.fit({"g": names[4:0:-1], "y": y[4:0:-1]}, init=first, max_iter=0)
    np.testing.assert_allclose(later["effect"].mean, first["effect"].mean)
    with pytest.raises(cv.DataError, match="'g' has 'z'"):
        model.fit({"g": np.array(list("zbczbc")), "y": y}, init=first)
    other = model.fit({"g": np.array(list("zbczbc")), "y": y})
    with pytest.raises(cv.ParameterError, match="leave out init="):
        model.fit({"g": names, "y": y}, init=first, prior=other)
    fewer = model.fit({"g": names[[1, 2]], "y": y[[1, 2]]}, init=first)
    assert fewer["effect"].mean.shape == (3,)


def test_what_a_fit_may_cost_counts_all_starts_of_an_estimator(monkeypatch):
    monkeypatch.setattr("caviar.engine.response.cost._ALWAYS", 0.0)
    x = overlapping()["x"]
    labels = cv.GaussianMixture(2, random_state=0).fit(x).predict(x)
    short = {"random_state": 0, "max_iter": 2, "tol": 1e6}
    once = cv.BayesianGaussianMixture(2, init_params=labels, **short).fit(x)
    often = cv.BayesianGaussianMixture(2, n_init=20, init_params="random", **short).fit(x)
    assert "would cost more than the fit" in once.posterior_.interval_remark
    assert "would cost more than the fit" not in often.posterior_.interval_remark


def test_a_warm_start_counts_what_came_before(monkeypatch):
    monkeypatch.setattr("caviar.engine.response.cost._ALWAYS", 0.0)
    x = overlapping()["x"]
    labels = np.where(x[:, 0] > 2.0, 1, np.arange(300) % 2)
    mixture = cv.BayesianGaussianMixture(2, init_params=labels, warm_start=True, tol=1e-11).fit(x)
    mixture.fit(x)
    assert mixture.n_iter_ < 5
    assert mixture.posterior_.uncertainty != "mean_field"


def test_a_search_for_the_number_of_components_counts_its_moves(monkeypatch):
    monkeypatch.setattr("caviar.engine.response.cost._ALWAYS", 0.0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1)) + 7.0 * rng.integers(0, 2, size=(200, 1))
    found = cv.BayesianGaussianMixture("auto", random_state=0).fit(x)
    assert found.n_components_ == 2
    assert found.posterior_._n_iter_in_all > len(found.posterior_.elbo_trace)
