"""Globals of which some repetitions are known: against literal loops, sums over labels, and whole observations."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, multivariate_t, norm
from thinning import amount

import caviar as cv
from caviar import families
from caviar.families.base.family import MeanPrecision
from caviar.models import (
    gaussian_mixture,
    latent_dirichlet_allocation,
    maximum_likelihood_mixture,
    normal_wishart_mixture,
    poisson_mixture,
    robust_mixture,
)
from oracles.reference import bayesian_mixture, em, wishart
from oracles.reference import normal_wishart_mixture as joint_reference

POINT = ("weights", "mean", "precision")
CENTRES = np.array([[0.0, 0.0], [5.0, 5.0], [-5.0, 5.0]])
KNOWN = np.array([-5.1, 5.2])


def _rows(seed=0, n=20, centres=CENTRES):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(centre, 1.0, (n, centres.shape[1])) for centre in centres])


def _only(k, value, n_components=3):
    """Return values of which only that of component k is known."""
    value = np.asarray(value, dtype=float)
    result = np.full((n_components, *value.shape), np.nan)
    result[k] = value
    return result


# -- maximum likelihood -------------------------------------------------------------------------------------------


def _maximise_with(x, r, k, mean):
    """Return the M-step of EM where component k has a known mean: its covariance is taken about that."""
    free = em.maximise(x, r)
    means, covariances = free.means.copy(), free.covariances.copy()
    means[k] = mean
    covariances[k] = sum(r_n * np.outer(x_n - mean, x_n - mean) for r_n, x_n in zip(r[:, k], x, strict=True))
    covariances[k] /= sum(r[:, k])
    return em.Parameters(free.weights, means, covariances)


@pytest.mark.slow
@pytest.mark.parametrize("k", [0, 1, 2])
def test_em_with_one_known_mean_is_that_of_a_literal_loop(k):
    x = _rows(k, centres=0.5 * CENTRES)
    rng = np.random.default_rng(k)
    start = em.Parameters(np.full(3, 1 / 3), x[rng.choice(60, 3, replace=False)], np.array([np.cov(x.T)] * 3))
    start.means[k] = KNOWN / 2
    parameters, path = start, [em.log_likelihood(x, start)]
    for _ in range(7):
        parameters = _maximise_with(x, em.responsibilities(x, parameters), k, KNOWN / 2)
        path.append(em.log_likelihood(x, parameters))
    # whatever a start says of the known mean is overruled
    init = {
        "weights": start.weights,
        "mean": np.where(np.arange(3)[:, None] == k, 7.0, start.means),
        "precision": np.linalg.inv(start.covariances),
    }
    data = {"x": x, "mean": _only(k, KNOWN / 2)}
    fit = maximum_likelihood_mixture(2, 3).fit(
        data, point=POINT, init=init, max_iter=7, tol=0, accelerate=False
    )
    np.testing.assert_allclose(fit.elbo_trace - np.log(2), path, rtol=1e-10)
    np.testing.assert_allclose(fit["weights"].value, parameters.weights, rtol=1e-9)
    np.testing.assert_allclose(fit["mean"].value, parameters.means, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(fit["mean"].value[k], KNOWN / 2)
    np.testing.assert_allclose(
        np.linalg.inv(fit["precision"].value), parameters.covariances, rtol=1e-7, atol=1e-9
    )


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("model", [maximum_likelihood_mixture, gaussian_mixture, normal_wishart_mixture])
def test_a_start_from_the_data_gives_known_components_the_rows_near_them(model, seed):
    """Of three clear clusters one is known: at any seed it begins with its rows, and the others take the rest."""
    x = _rows(seed)
    if model is normal_wishart_mixture:
        data, point, name = {"x": x, "theta": (_only(1, KNOWN), _only(1, np.eye(2)))}, (), "theta"
    else:
        data, name = {"x": x, "mean": _only(1, KNOWN)}, "mean"
        point = POINT if model is maximum_likelihood_mixture else ()
    fit = model(2, 3).fit(data, point=point, seed=seed)
    labels = fit.local(data)["z"].probabilities.argmax(axis=1)
    assert fit.converged
    np.testing.assert_array_equal(labels[40:], 1)
    assert {labels[0], labels[20]} == {0, 2}
    assert len(set(labels[:20])) == len(set(labels[20:40])) == 1
    mean = fit[name].mean
    mean = mean[0] if isinstance(mean, tuple) else mean
    np.testing.assert_array_equal(mean[1], KNOWN)


def test_a_known_component_without_rows_has_not_collapsed():
    """Under flat priors a component that empties has collapsed, unless nothing of it is to be learnt."""
    x = _rows(1, centres=CENTRES[:1])
    data = {"x": x, "mean": _only(1, [40.0, 0.0], 2), "precision": _only(1, 4 * np.eye(2), 2)}
    init = {"mean": [[0.0, 0.0], [1.0, 1.0]], "precision": np.array([np.eye(2)] * 2)}
    fit = maximum_likelihood_mixture(2, 2).fit(data, point=("mean", "precision"), init=init)
    assert fit.converged
    np.testing.assert_allclose(fit["mean"].value, [x.mean(axis=0), [40.0, 0.0]], rtol=1e-10)
    np.testing.assert_allclose(
        np.linalg.inv(fit["precision"].value), [np.cov(x.T, bias=True), 0.25 * np.eye(2)], rtol=1e-9
    )
    # the same component with a precision to be learnt has
    with pytest.warns(cv.CollapseWarning):
        maximum_likelihood_mixture(2, 2).fit(
            {"x": x, "mean": data["mean"]}, point=("mean", "precision"), init=init
        )


def test_values_that_are_all_known_stand_under_a_flat_prior():
    """Then only weights and precisions are learnt: the objective is the likelihood at the known means."""
    x = _rows()
    fit = maximum_likelihood_mixture(2, 3).fit({"x": x, "mean": CENTRES}, point=POINT, seed=0)
    found = em.Parameters(fit["weights"].value, fit["mean"].value, np.linalg.inv(fit["precision"].value))
    np.testing.assert_array_equal(found.means, CENTRES)
    assert fit.elbo - np.log(2) == pytest.approx(em.log_likelihood(x, found), rel=1e-12)
    r = em.responsibilities(x, found)
    np.testing.assert_allclose(found.weights, r.mean(axis=0), rtol=1e-5)


# -- variational mixtures -----------------------------------------------------------------------------------------


PRIOR = bayesian_mixture.Prior(
    concentration=np.array([0.7, 1.1, 1.9]),
    mean=np.array([0.3, -0.2]),
    covariance=np.array([[9.0, 2.0], [2.0, 6.0]]),
    df=3.5,
    inverse_scale=np.array([[2.0, 0.3], [0.3, 1.0]]),
)


def _independent():
    return gaussian_mixture(
        2,
        3,
        concentration=PRIOR.concentration,
        prior_mean=PRIOR.mean,
        prior_precision=np.linalg.inv(PRIOR.covariance),
        df=PRIOR.df,
        inverse_scale=PRIOR.inverse_scale,
    )


def _independent_factors(posterior, data):
    return bayesian_mixture.Factors(
        responsibilities=posterior.local(data)["z"].probabilities,
        concentration=posterior["weights"].concentration,
        means=posterior["mean"].mean,
        covariances=posterior["mean"].covariance,
        dfs=posterior["precision"].df,
        inverse_scales=posterior["precision"].inverse_scale,
    )


@pytest.mark.parametrize("known", [[0], [2], [0, 2]])
def test_independent_mixture_against_the_literal_bound(known):
    """With m_k = v and S_k = 0 every formula of the bound holds but that of q(mu_k), which is log N(v; m0, S0)."""
    data = {"x": _rows(3, 8), "mean": np.full((3, 2), np.nan)}
    data["mean"][known] = CENTRES[known] + 0.1
    fit = _independent().fit(data, seed=0, tol=1e-14)
    q = _independent_factors(fit, data)
    np.testing.assert_array_equal(q.means[known], data["mean"][known])
    np.testing.assert_array_equal(q.covariances[known], 0.0)
    unknown = [k for k in range(3) if k not in known]
    rest = replace(q, means=q.means[unknown], covariances=q.covariances[unknown])
    of_means = sum(multivariate_normal.logpdf(v, PRIOR.mean, PRIOR.covariance) for v in q.means[known])
    of_means += _entropies_and_priors_of_means(rest)
    assert fit.elbo == pytest.approx(_bound_without_means(data["x"], q) + of_means, rel=1e-11)
    assert fit.elbo_terms["mean"] == pytest.approx(of_means, rel=1e-10)
    assert sum(fit.elbo_terms.values()) == pytest.approx(fit.elbo, rel=1e-12)
    assert np.diff(fit.elbo_trace).min() >= -1e-9
    # a further literal sweep stays there
    after = bayesian_mixture.sweep(data["x"], PRIOR, q, ("responsibilities",))
    np.testing.assert_allclose(after.responsibilities, q.responsibilities, atol=1e-6)
    for update, name in (("means", "means"), ("precisions", "inverse_scales"), ("weights", "concentration")):
        moved = getattr(bayesian_mixture.sweep(data["x"], PRIOR, q, (update,)), name)
        own = unknown if update == "means" else slice(None)
        np.testing.assert_allclose(moved[own], getattr(q, name)[own], rtol=1e-5, atol=1e-6)


def _entropies_and_priors_of_means(q):
    return sum(bayesian_mixture._mean_term(PRIOR, m, s) for m, s in zip(q.means, q.covariances, strict=True))


def _bound_without_means(x, q):
    """Return the literal bound without <log p(mu)> and the entropy of q(mu), which a point has not."""
    proper = replace(q, covariances=np.array([np.eye(2)] * 3))
    terms = bayesian_mixture.elbo_terms(x, PRIOR, proper)
    likelihood = sum(
        q.responsibilities[n, k] * bayesian_mixture.expected_log_density(x[n], q, k)
        for n, k in itertools.product(range(len(x)), range(3))
    )
    return likelihood + terms["responsibilities"] + terms["weights"] + terms["precisions"]


@pytest.mark.parametrize("name", ["mean", "precision"])
def test_all_known_is_the_variable_observed_and_none_known_is_none_given(name):
    x = _rows(4, 10)
    values = {"mean": CENTRES + 0.2, "precision": np.array([np.eye(2) * s for s in (0.5, 1.0, 2.0)])}
    free = _independent().fit({"x": x}, seed=1)
    none = _independent().fit({"x": x, name: np.full_like(values[name], np.nan)}, seed=1)
    assert none.elbo == free.elbo
    np.testing.assert_array_equal(none[name].mean, free[name].mean)


def test_a_repetition_whose_prior_leaves_no_doubt_is_as_good_as_known():
    """In the limit of a narrow prior at v a learnt mean is v, and the objectives differ by its prior density there."""
    x, precisions = _rows(4, 10), np.array([0.01, 0.01, 1e7])[:, None, None] * np.eye(2)
    prior_mean = np.array([np.zeros(2), np.zeros(2), KNOWN])
    model = gaussian_mixture(2, 3, prior_mean=prior_mean, prior_precision=precisions)
    init = {"z": np.repeat([0, 1, 2], 10)}
    for known in ([], [0], [0, 1]):
        some = np.full((3, 2), np.nan)
        some[known] = CENTRES[known] + 0.3
        some_more = some.copy()
        some_more[2] = KNOWN
        learnt = model.fit({"x": x, "mean": some}, init=init, tol=1e-14)
        fixed = model.fit({"x": x, "mean": some_more}, init=init, tol=1e-14)
        density = multivariate_normal.logpdf(KNOWN, KNOWN, 1e-7 * np.eye(2))
        assert fixed.elbo == pytest.approx(learnt.elbo + density, abs=1e-5)
        if known == [0, 1]:
            assert "mean" not in fixed


def test_a_pair_that_is_all_known_is_a_mixture_with_two_observed_variables():
    """Given mean and precision as data of a NormalWishart, weights and labels are those of known components."""
    x = _rows(5, 10)
    means, precisions = CENTRES + 0.1, np.array([np.eye(2) * s for s in (0.5, 1.0, 2.0)])
    data = {"x": x, "theta": (means, precisions)}
    fit = normal_wishart_mixture(2, 3, mean_precision=0.5, df=4.0).fit(data, seed=0, tol=1e-14)
    other = gaussian_mixture(2, 3, df=4.0).fit(
        {"x": x, "mean": means, "precision": precisions}, seed=0, tol=1e-14
    )
    np.testing.assert_allclose(fit["weights"].concentration, other["weights"].concentration, rtol=1e-9)
    prior = families.NormalWishart(np.zeros(2), 0.5, 4.0, np.eye(2)).log_density((means, precisions)).sum()
    apart = families.MultivariateNormal(np.zeros(2), 0.01 * np.eye(2)).log_density(means).sum()
    apart += families.Wishart(4.0, np.eye(2)).log_density(precisions).sum()
    assert fit.elbo - prior == pytest.approx(other.elbo - apart, abs=1e-10 * abs(fit.elbo))
    np.testing.assert_array_equal(fit["theta"].mean.mean, means)
    np.testing.assert_array_equal(fit["theta"].mean.precision, precisions)


def test_joint_mixture_with_one_known_component_against_the_literal_bound():
    prior = joint_reference.Prior(np.array([0.7, 1.1, 1.9]), np.array([0.3, -0.2]), 0.2, 3.5, np.eye(2) + 0.3)
    model = normal_wishart_mixture(
        2,
        3,
        concentration=prior.concentration,
        prior_mean=prior.mean,
        mean_precision=prior.mean_precision,
        df=prior.df,
        inverse_scale=prior.inverse_scale,
    )
    value = MeanPrecision(KNOWN, np.array([[2.0, 0.4], [0.4, 1.0]]))
    data = {"x": _rows(6, 8), "theta": (_only(2, value.mean), _only(2, value.precision))}
    fit = model.fit(data, seed=0, tol=1e-14)
    r = fit.local(data)["z"].probabilities
    concentration, learnt = fit["weights"].concentration, fit["theta"].unknown
    log_weights = wishart.expected_log_weights(concentration)
    # rows of the known component and its prior density, literally
    expected = families.NormalWishart(
        prior.mean, prior.mean_precision, prior.df, prior.inverse_scale
    ).log_density(value)
    density = multivariate_normal(value.mean, np.linalg.inv(value.precision))
    expected += sum(r_n * density.logpdf(x_n) for r_n, x_n in zip(r[:, 2], data["x"], strict=True))
    q = joint_reference.Factors(
        r[:, :2], concentration[:2], learnt.mean, learnt.mean_precision, learnt.df, learnt.inverse_scale
    )
    expected += sum(joint_reference._component_terms(data["x"], prior, q, k) for k in range(2))
    expected += float(np.sum(r * log_weights) - np.sum(r * np.log(np.maximum(r, 1e-300))))
    expected += wishart.expected_log_dirichlet(prior.concentration, log_weights)
    expected -= wishart.expected_log_dirichlet(concentration, log_weights)
    assert fit.elbo == pytest.approx(expected, rel=1e-10)
    # what is learnt follows from its rows as Bishop's updates say
    after = joint_reference.update_components(data["x"], prior, q)
    np.testing.assert_allclose(learnt.mean, after.means, rtol=1e-6)
    np.testing.assert_allclose(learnt.inverse_scale, after.inverse_scales, rtol=1e-5)
    drawn = fit["theta"].sample(3, seed=0)
    np.testing.assert_array_equal(drawn.mean[:, 2], [value.mean] * 3)
    np.testing.assert_array_equal(drawn.precision[:, 2], [value.precision] * 3)
    assert np.diff(fit.elbo_trace).min() >= -1e-9


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_against_the_sum_over_all_labels(seed):
    """The exact log p(x, mu_0 = v) sums over labels, the other mean integrated out; the bound is below, and near."""
    rng = np.random.default_rng(seed)
    x, v, s2 = np.concatenate([rng.normal(-3, 1, 4), rng.normal(3, 1, 4)]), -2.5, 9.0
    total = []
    for labels in itertools.product((0, 1), repeat=len(x)):
        at = np.array(labels)
        own, others = x[at == 0], x[at == 1]
        log_joint = len(x) * np.log(0.5) + norm.logpdf(own, v).sum()
        if len(others):
            covariance = np.eye(len(others)) + s2
            log_joint += multivariate_normal.logpdf(others, np.zeros(len(others)), covariance)
        total.append(log_joint)
    exact = logsumexp(total) + norm.logpdf(v, 0, np.sqrt(s2))
    data = {"x": x, "mean": [v, np.nan]}
    fit = cv.models.known_variance_mixture(2, prior_variance=s2).fit(data, seed=0)
    assert exact - 1.0 < fit.elbo <= exact
    assert fit["mean"].mean[0] == v
    # one label of the two is broken: no factor log K! is lost
    free = cv.models.known_variance_mixture(2, prior_variance=s2).fit({"x": x}, seed=0)
    assert free["mean"].mean[0] != v


# -- other models, by the verification kit, which evaluates densities alone -----------------------------------------


def _poisson():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.poisson([2, 20], (15, 2)), rng.poisson([15, 3], (15, 2))])
    # some numbers of each component: repetitions of a rate are numbers
    return poisson_mixture(2, 2), {"x": x, "rate": [[2.0, np.nan], [np.nan, 3.5]]}


def _robust():
    x = _rows(2, 10)
    return robust_mixture(2, 3), {"x": x, "mean": _only(0, KNOWN), "precision": _only(0, 2 * np.eye(2))}


def _hierarchy():
    """Known means of groups tell the mean of the groups, beside the data."""
    obs, group = cv.Plate("obs"), cv.Plate("group", 4)
    centre, spread = cv.Normal("centre", 0.0, 0.01), cv.Gamma("spread", 2.0, 1.0)
    mean = cv.Normal("mean", centre, spread, plates=group)
    x = cv.Normal("x", mean, cv.Gamma("tau", 1.0, 1.0), plates=(obs, group))
    rows = np.random.default_rng(3).normal([1.0, 2.0, 3.0, 4.0], 0.5, (6, 4))
    return cv.Model(x), {"x": rows, "mean": [1.1, np.nan, np.nan, 3.9]}


def _coefficients():
    rng = np.random.default_rng(4)
    known, group = rng.normal(size=(30, 2)), rng.integers(0, 3, 30)
    model = cv.models.varying_coefficients(2, 3)
    return model, {"X": known, "group": group, "y": rng.normal(size=30), "w": _only(1, [0.5, -1.0])}


def _global_labels():
    obs, group, component = cv.Plate("obs"), cv.Plate("group", 4), cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=group)
    mean = cv.Normal("mean", np.array([-1.0, 1.0]), 1.0, plates=component)
    x = cv.Normal("x", mean[z], 1.0, plates=(obs, group))
    rows = np.random.default_rng(5).normal([-0.6, 0.5, -0.4, 0.9], 1.0, (3, 4))
    return cv.Model(x), {"x": rows, "z": [0, np.nan, np.nan, 1]}


def _chain():
    rng = np.random.default_rng(6)
    x = rng.normal(np.repeat([0.0, 4.0, 0.0], 8), 1.0)[:, None]
    model = cv.models.gaussian_hidden_markov_model(1, 2)
    return model, {"x": x, "mean": _only(0, [4.2], 2), "transition": _only(1, [0.1, 0.9], 2)}


def _gamma_parts():
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    theta = cv.NormalGamma("theta", 0.0, 0.1, 2.0, 1.0, plates=component)
    z = cv.Categorical("z", [0.3, 0.7], plates=obs)
    x = np.random.default_rng(7).normal(np.repeat([0.0, 5.0], 8), 1.0)
    return cv.Model(cv.Normal("x", theta[z], plates=obs)), {"x": x, "theta": ([np.nan, 4.8], [np.nan, 1.5])}


CASES = [_poisson, _robust, _hierarchy, _coefficients, _global_labels, _chain, _gamma_parts]


@pytest.mark.thinned(6)
@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_variable_passes_the_checks(case):
    model, data = case()
    if case is _global_labels:
        posterior = model.fit(data, seed=0, tol=1e-14)
        estimate = cv.testing.elbo_estimate(posterior, data, n_draws=amount(300, 1000))
        assert abs(estimate.value - posterior.elbo) < 4 * estimate.error
        np.testing.assert_array_equal(posterior["z"].probabilities[[0, 3]], np.eye(2))
        np.testing.assert_array_equal(posterior["z"].sample(5, seed=0)[:, [0, 3]], [[0, 1]] * 5)
        return
    report = cv.testing.check_model(model, data, n_draws=amount(60, 300), n_directions=12)
    assert report.passed, str(report)


@pytest.mark.parametrize("case", CASES)
def test_known_values_come_back_to_the_last_bit(case):
    model, data = case()
    # the response of scales of ten rows that have not settled takes seconds
    shown = "mean_field" if case is _robust else "auto"
    posterior = pickle.loads(pickle.dumps(model.fit(data, seed=0, max_iter=3, uncertainty=shown)))
    again = posterior.elbo_at({}, data)
    assert again == pytest.approx(posterior.elbo, rel=1e-10)
    for name in set(data) & set(posterior):
        factor, given = posterior[name], data[name]
        location = np.asarray(given[0] if isinstance(given, tuple) else given, dtype=float)
        known = ~np.isnan(location).reshape(*factor.is_known.shape, -1).any(axis=-1)
        np.testing.assert_array_equal(factor.is_known, known)
        if case is not _global_labels:
            np.testing.assert_array_equal(factor.mean[known], location[known])
            np.testing.assert_array_equal(factor.variance[known] if hasattr(factor, "variance") else 0.0, 0.0)
        draws = factor.sample(2, seed=0)
        draws = draws[0] if isinstance(draws, tuple) else draws
        np.testing.assert_array_equal(draws[:, known], np.array([location[known]] * 2))
        assert not np.array_equal(draws[0], draws[1]) or case is _global_labels
        assert "known at" in repr(factor)
    assert str(posterior.summary(max_rows=None))


@pytest.mark.slow
def test_topics_of_which_one_is_known():
    """In latent Dirichlet allocation a known topic keeps its number, and its words."""
    rng = np.random.default_rng(0)
    topics = np.array([[0.6, 0.3, 0.05, 0.05], [0.05, 0.05, 0.3, 0.6]])
    words = [rng.choice(4, 30, p=topics[document % 2]) for document in range(12)]
    data = {"word": words, "topics": _only(1, topics[0], 2)}
    posterior = latent_dirichlet_allocation(2, 4, concentration=0.3).fit(data, seed=0)
    np.testing.assert_array_equal(posterior["topics"].mean[1], topics[0])
    np.testing.assert_allclose(posterior["topics"].mean[0], topics[1], atol=0.1)
    share = posterior.local({"word": words})["proportions"].mean
    assert (share[::2, 1] > 0.8).all()
    assert (share[1::2, 0] > 0.8).all()
    # documents whose proportions are known
    some = np.full((12, 2), np.nan)
    some[:3] = [0.25, 0.75]
    posterior = latent_dirichlet_allocation(2, 4).fit({"word": words, "proportions": some}, seed=0)
    np.testing.assert_array_equal(posterior["proportions"].mean[:3], some[:3])


def test_rates_that_are_known_draw_their_rows():
    """Without locations a start is drawn from the prior: rows choose the component that is known to suit them."""
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.poisson([2, 20], (30, 2)), rng.poisson([15, 3], (30, 2))])
    for seed in range(5):
        fit = poisson_mixture(2, 2).fit({"x": x, "rate": _only(1, [2.0, 20.0], 2)}, seed=seed)
        np.testing.assert_allclose(fit["rate"].mean, [[15, 3], [2, 20]], rtol=0.2)


# -- starts, points, far data ---------------------------------------------------------------------------------------


def test_every_start_keeps_the_known_values():
    data = {"x": _rows(), "mean": _only(1, KNOWN)}
    best = _independent().fit(data, seed=0)
    assert best.elbo_trace[0] <= best.elbo
    labels = np.repeat([0, 2, 1], 20)
    inits = [
        {"z": labels},
        {"mean": np.array([CENTRES[0], KNOWN + 9, CENTRES[1]])},
        {"mean": best["mean"]},
        {
            "mean": families.MultivariateNormal(np.array([CENTRES[0], KNOWN + 9, CENTRES[1]]), np.eye(2)),
            "z": labels,
        },
    ]
    for init in inits:
        fit = _independent().fit(data, init=init)
        assert fit.elbo == pytest.approx(best.elbo, abs=1e-4)
        np.testing.assert_array_equal(fit["mean"].mean[1], KNOWN)
    prior = _independent().fit(data, init="prior", max_iter=1)
    np.testing.assert_array_equal(prior["mean"].mean[1], KNOWN)


def test_a_point_mass_of_the_others():
    """MAP-EM of the unknown means: their mode, while the known one stays; the objective is the joint density there."""
    data = {"x": _rows(), "mean": _only(1, KNOWN), "precision": np.array([np.eye(2)] * 3)}
    fit = _independent().fit(data, point=["weights", "mean"], seed=0, tol=1e-14)
    means, weights = fit["mean"].value, fit["weights"].value
    np.testing.assert_array_equal(means[1], KNOWN)
    joint = np.array([multivariate_normal.logpdf(data["x"], m) for m in means]).T + np.log(weights)
    expected = logsumexp(joint, axis=1).sum() + families.Dirichlet(PRIOR.concentration).log_density(weights)
    expected += sum(multivariate_normal.logpdf(m, PRIOR.mean, PRIOR.covariance) for m in means)
    expected += families.Wishart(PRIOR.df, PRIOR.inverse_scale).log_density(data["precision"]).sum()
    assert fit.elbo == pytest.approx(float(expected), rel=1e-11)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("shift", [0.0, 1e4, 1e7])
def test_data_far_from_zero_and_narrow_components(shift):
    """Values are absolute wherever the engine measures from: the fit moves with the data, and values keep all bits."""
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [4096.0, 0.0], [0.0, 8192.0]])
    offsets = np.round(rng.normal(0, 0.5, (60, 2)) * 2**20) / 2**20
    x = np.repeat(centres, 20, axis=0) + offsets
    known = centres[1] + 0.125
    model = gaussian_mixture(2, 3, prior_mean=shift, prior_precision=1e-8)
    fit = model.fit({"x": x + shift, "mean": _only(1, known + shift)}, seed=0)
    base = gaussian_mixture(2, 3, prior_precision=1e-8).fit({"x": x, "mean": _only(1, known)}, seed=0)
    np.testing.assert_array_equal(fit["mean"].mean[1], known + shift)
    assert fit.elbo == pytest.approx(base.elbo, rel=1e-7)
    np.testing.assert_allclose(
        np.linalg.inv(fit["precision"].mean[1]), np.linalg.inv(base["precision"].mean[1]), rtol=1e-5
    )
    literal = np.einsum("ni,nj->ij", x[20:40] - known, x[20:40] - known) + np.eye(2)
    np.testing.assert_allclose(fit["precision"].inverse_scale[1], literal, rtol=1e-6)


@pytest.mark.parametrize("point", [(), ("mean",)])
def test_values_far_from_the_data_come_back_to_the_last_bit(point):
    """Measured from the data's mean and back, 0.1 beside 1e5 would lose its last digits."""
    x = _rows() + 1e5 / 7
    known = np.array([0.1, 1e5 / 7 + 1 / 3])
    assert ((known - x.mean(axis=0)) + x.mean(axis=0) != known).any()
    fit = _independent().fit({"x": x, "mean": _only(2, known)}, point=point, seed=0, max_iter=5)
    np.testing.assert_array_equal(fit["mean"].mean[2], known)
    np.testing.assert_array_equal(fit.sample(1, seed=0)["mean"][0, 2], known)


# -- what a posterior tells of other rows ---------------------------------------------------------------------------


def test_predictive_density_of_a_mixture_with_one_known_component():
    data = {"x": _rows(7), "theta": (_only(0, KNOWN), _only(0, 2 * np.eye(2)))}
    fit = normal_wishart_mixture(2, 3).fit(data, seed=0)
    new, weights, q = _rows(8, 3), fit["weights"].mean, fit["theta"].unknown
    each = [multivariate_normal.logpdf(new, KNOWN, 0.5 * np.eye(2))]
    for k in range(2):
        df = q.df[k] - 1
        shape = q.inverse_scale[k] * (q.mean_precision[k] + 1) / (q.mean_precision[k] * df)
        each.append(multivariate_t.logpdf(new, q.mean[k], shape, df=df))
    expected = logsumexp(np.array(each).T + np.log(weights), axis=1)
    for given in ({"x": new}, {**data, "x": new}):
        np.testing.assert_allclose(fit.log_predictive(given), expected, rtol=1e-9)
        np.testing.assert_allclose(
            fit.local(given)["z"].probabilities, fit.local({"x": new})["z"].probabilities, rtol=1e-12
        )
    draws = fit.predictive({"obs": 20}, n_draws=500, seed=0)["x"].reshape(-1, 2)
    found = fit.predict({k: v for k, v in data.items() if k != "x"})["x"]
    np.testing.assert_allclose(found.mean[0], draws.mean(axis=0), atol=0.2)
    np.testing.assert_allclose(found.standard_deviation[0], draws.std(axis=0), rtol=0.05)


def test_predictive_density_where_numbers_of_a_component_are_known():
    """Each known number has its own density, each unknown one its predictive."""
    obs, component, column = cv.Plate("obs"), cv.Plate("component", 2), cv.Plate("column", 2)
    mean = cv.Normal("mean", 0.0, 0.01, plates=(component, column))
    z = cv.Categorical("z", [0.4, 0.6], plates=obs)
    model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=(obs, column)))
    values = np.array([[0.2, np.nan], [np.nan, np.nan]])
    fit = model.fit({"x": _rows(9, centres=CENTRES[:2]), "mean": values}, seed=0)
    new, q = _rows(10, 2, CENTRES[:2]), fit["mean"]
    scale = np.sqrt(1 + q.variance)
    assert scale[0, 0] == 1.0
    expected = logsumexp(np.log([0.4, 0.6]) + norm.logpdf(new[:, None], q.mean, scale).sum(axis=-1), axis=1)
    np.testing.assert_allclose(fit.log_predictive({"x": new}), expected, rtol=1e-10)


# -- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("weights", [0.2, np.nan, np.nan], "sum to one, and are given together or not at all"),
        ("mean", [[0.0, np.nan], [1.0, 1.0], [2.0, 2.0]], "not at component 0: a value is known as a whole"),
        ("precision", _only(1, -np.eye(2)), "positive definite"),
        ("precision", _only(1, [[1.0, np.nan], [0.0, 1.0]]), "known as a whole or not at all"),
        ("mean", np.full((4, 2), np.nan), "plate 'component' has"),
        ("mean", [0.0, np.nan, 1.0], "'mean' must have 2 axes"),
    ],
)
def test_what_cannot_be_known_in_part_is_refused(name, value, words):
    with pytest.raises(cv.CaviarError, match=words):
        _independent().fit({"x": _rows(), name: value})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (_only(0, KNOWN), "are a pair"),
        ((_only(0, KNOWN), _only(1, np.eye(2))), "only one of mean and precision at component 0"),
        ((_only(0, KNOWN), _only(0, -np.eye(2))), "the precision in the data of 'theta'"),
        ((_only(0, KNOWN), np.ones((3, 3, 3))), "must have shape"),
        ((_only(0, [0.0, np.nan]), _only(0, np.eye(2))), "known as a whole or not at all"),
    ],
)
def test_pairs_that_cannot_be_known_are_refused(value, words):
    with pytest.raises(cv.CaviarError, match=words):
        normal_wishart_mixture(2, 3).fit({"x": _rows(), "theta": value})


def test_other_repetitions_than_those_of_the_fit_are_refused():
    data = {"x": _rows(), "mean": _only(1, KNOWN)}
    posterior = _independent().fit(data, seed=0)
    with pytest.raises(cv.ModelError, match="other repetitions of 'mean'"):
        posterior.local({"x": _rows(), "mean": _only(0, KNOWN)})


def test_values_of_rows_are_not_known_in_part():
    obs = cv.Plate("obs")
    theta = cv.NormalGamma("theta", 0.0, 1.0, 1.0, 1.0, plates=obs)
    model = cv.Model(cv.Normal("x", theta, plates=obs))
    with pytest.raises(cv.DataError, match="with a value for each row, and takes no data"):
        model.fit({"x": [1.0, 2.0], "theta": ([np.nan, 0.0], [np.nan, 1.0])})


def test_densities_of_draws_are_those_of_the_unknown_repetitions():
    obs, group = cv.Plate("obs"), cv.Plate("group", 3)
    m = cv.Normal("m", cv.Normal("mu", 0.0, 0.1), 1.0, plates=group)
    model = cv.Model(cv.Normal("x", m[cv.Data("g", plates=obs)], 1.0, plates=obs))
    q = model.fit({"x": [0.3, 1.0, -0.2, 2.0], "g": [0, 1, 2, 2], "m": [np.nan, 1.1, np.nan]})["m"]
    draws = q.sample((4, 5), seed=0)
    expected = norm(q.mean, np.where(q.variance > 0, q.variance, 1.0) ** 0.5).logpdf(draws)
    expected[..., 1] = 0.0
    np.testing.assert_allclose(q.log_density(draws), expected)
    np.testing.assert_allclose(q.log_density(draws[2, 3]), expected[2, 3])
