"""The log-likelihood of a row given globals is what SciPy says, and rows and prior make the log joint density."""

import numpy as np
import pytest
from invariants.registry import CASES
from scipy import stats
from scipy.sparse import csr_array
from scipy.special import logsumexp

import caviar as cv
from caviar.engine.evaluation.at_points import log_joint_at, row_log_likelihoods, why_no_rows
from caviar.posterior.simulation import _over_plates, conditional

APART = {"measured-apart", "items"}


def one_draw(posterior: cv.Posterior, data: dict, seed: int):
    draws = posterior.sample(1, seed)
    values = {k: type(v)(*(p[0] for p in v)) if isinstance(v, tuple) else v[0] for k, v in draws.items()}
    return values, *posterior._evaluator.at_points(data)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", CASES)
def test_rows_and_prior_make_the_log_joint_density(name):
    case, rng = CASES[name], np.random.default_rng(4)
    data = case.draw(rng, 30)
    posterior = case.fit(data, max_iter=5)
    values, problem, row_map = one_draw(posterior, data, 1)
    if name in APART:
        assert "depend on each other" in why_no_rows(problem)
        with pytest.raises(cv.ModelError, match="depend on each other"):
            row_log_likelihoods(problem, values, row_map)
        return
    variables, known = posterior.model.variables, {k: np.asarray(v) for k, v in data.items()}
    by_name = {plate.name: size for plate, size in problem.bound.sizes.items()}
    sizes = {plate: by_name[plate.name] for own in variables.values() for plate in own.plates}
    prior = sum(
        float(
            _over_plates(variables[k], conditional(variables[k], {**values, **known}), sizes)
            .log_density(v)
            .sum()
        )
        for k, v in values.items()
        if not variables[k].is_flat
    )
    rows = row_log_likelihoods(problem, values, row_map)
    assert rows.shape == (30,)
    assert rows.sum() + prior == pytest.approx(log_joint_at(problem, values, row_map), rel=1e-10, abs=1e-9)


def test_a_mixture_of_gaussians_is_that_of_scipy():
    case, rng = CASES["joint"], np.random.default_rng(0)
    data = case.draw(rng, 50)
    values, problem, row_map = one_draw(case.fit(data), data, 2)
    mean, precision = values["theta"]
    each = [
        np.log(w) + stats.multivariate_normal(m, np.linalg.inv(p)).logpdf(data["x"])
        for w, m, p in zip(values["weights"], mean, precision, strict=True)
    ]
    np.testing.assert_allclose(
        row_log_likelihoods(problem, values, row_map), logsumexp(each, axis=0), rtol=1e-9
    )


def test_hidden_vectors_are_integrated_out():
    """Probabilistic PCA: x ~ N(mean, W W' + I / tau)."""
    obs, column = cv.Plate("obs"), cv.Plate("column", 4)
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), plates=column)
    z = cv.MultivariateNormal("z", np.zeros(2), np.eye(2), plates=obs)
    tau, mean = cv.Gamma("tau", 2, 1), cv.Normal("mean", 0, 1, plates=column)
    model = cv.Model(cv.Normal("x", cv.dot(w, z) + mean, tau, plates=[obs, column]))
    data = {"x": np.random.default_rng(0).normal(size=(30, 4))}
    data["x"][3, 1] = np.nan
    values, problem, row_map = one_draw(model.fit(data, max_iter=5), data, 3)
    covariance = values["w"] @ values["w"].T + np.eye(4) / values["tau"]
    expected = []
    for row in data["x"]:
        seen = np.isfinite(row)
        normal = stats.multivariate_normal(values["mean"][seen], covariance[np.ix_(seen, seen)])
        expected.append(normal.logpdf(row[seen]))
    np.testing.assert_allclose(row_log_likelihoods(problem, values, row_map), expected, rtol=1e-9)


def test_student_noise_and_links_are_integrated_out():
    obs, rng = cv.Plate("obs"), np.random.default_rng(0)
    x = rng.normal(size=(25, 2))
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2))
    eta = cv.dot(cv.Data("X", plates=obs), w)
    for link, probability in ((cv.probit, stats.norm.cdf), (cv.logistic, stats.logistic.cdf)):
        data = {"X": x, "y": rng.integers(0, 2, 25)}
        model = cv.Model(cv.Bernoulli("y", link(eta), plates=obs))
        values, problem, row_map = one_draw(model.fit(data), data, 3)
        p = probability(x @ values["w"])
        expected = np.log(np.where(data["y"] == 1, p, 1 - p))
        np.testing.assert_allclose(row_log_likelihoods(problem, values, row_map), expected, rtol=1e-9)
    u = cv.Gamma("u", 1.5, 1.5, plates=obs)
    data = {"X": x, "y": x @ [1, -1] + rng.standard_t(3, 25)}
    model = cv.Model(cv.Normal("y", eta, u, plates=obs))
    values, problem, row_map = one_draw(model.fit(data), data, 3)
    expected = stats.t(3, x @ values["w"]).logpdf(data["y"])
    np.testing.assert_allclose(row_log_likelihoods(problem, values, row_map), expected, rtol=1e-9)


def test_rows_come_in_the_order_of_the_data_where_vectors_are_missing_in_part():
    case, rng = CASES["joint"], np.random.default_rng(0)
    x = case.draw(rng, 40)["x"]
    x[rng.random(x.shape) < 0.3] = np.nan
    values, problem, row_map = one_draw(case.fit({"x": x}), {"x": x}, 2)
    mean, precision = values["theta"]
    expected = []
    for row in x:
        seen = np.isfinite(row)
        each = [
            np.log(w)
            + (
                stats.multivariate_normal(m[seen], np.linalg.inv(p)[np.ix_(seen, seen)]).logpdf(row[seen])
                if seen.any()
                else 0.0
            )
            for w, m, p in zip(values["weights"], mean, precision, strict=True)
        ]
        expected.append(logsumexp(each))
    np.testing.assert_allclose(row_log_likelihoods(problem, values, row_map), expected, rtol=1e-8, atol=1e-9)


def test_words_that_are_counted_in_a_sparse_matrix():
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    words = cv.Dirichlet("words", np.ones(6), plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    counts = np.random.default_rng(0).poisson(0.7, (12, 6))
    model = cv.Model(cv.Multinomial("x", counts.sum(axis=1), words[z], plates=obs))
    found = []
    for data in ({"x": counts}, {"x": csr_array(counts)}):
        values, problem, row_map = one_draw(model.fit({"x": counts}, seed=0), data, 5)
        found.append(row_log_likelihoods(problem, values, row_map))
    each = [
        np.log(w) + stats.multinomial(counts.sum(1), p).logpmf(counts)
        for w, p in zip(values["weights"], values["words"], strict=True)
    ]
    np.testing.assert_allclose(found[0], logsumexp(each, axis=0), rtol=1e-9)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)


def test_a_row_that_known_probabilities_rule_out_has_probability_zero():
    """Rows of other data than those of the fit may be impossible in one component, or in all."""
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    words = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.25, 0.75, 0.0]])
    probabilities = cv.Constant("words", words, plates=component)
    model = cv.Model(cv.Multinomial("x", 2, probabilities[z], plates=obs))
    counts = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 2, 0, 0], [1, 0, 1, 0], [0, 0, 0, 2]])
    values, problem, row_map = one_draw(model.fit({"x": counts[:3]}, seed=0), {"x": counts}, 6)
    each = [w * stats.multinomial(2, p).pmf(counts) for w, p in zip(values["weights"], words, strict=True)]
    with np.errstate(divide="ignore"):
        expected = np.log(np.sum(each, axis=0))
    assert np.isneginf(expected).tolist() == [False, False, False, True, True]
    np.testing.assert_allclose(row_log_likelihoods(problem, values, row_map), expected, rtol=1e-9)


def test_a_chain_is_integrated_out_and_its_rows_have_no_density_of_their_own():
    rng = np.random.default_rng(0)
    time, state = cv.Plate("time"), cv.Plate("state", 2)
    start = cv.Dirichlet("start", [1.0, 1.0])
    transition = cv.Dirichlet("transition", np.ones(2), plates=state)
    mean = cv.Normal("mean", 0, 1, plates=state)
    s = cv.MarkovChain("s", start, transition, along=time)
    chain = cv.Model(cv.Normal("x", mean[s], 1.0, plates=time))
    data = {"x": rng.normal(size=7)}
    values, problem, row_map = one_draw(chain.fit(data, seed=0), data, 3)
    with pytest.raises(cv.ModelError, match="neighbours"):
        row_log_likelihoods(problem, values, row_map)
    emission = stats.norm(values["mean"]).logpdf(data["x"][:, None])
    paths = np.stack(np.meshgrid(*[[0, 1]] * 7, indexing="ij"), axis=-1).reshape(-1, 7)
    each = np.log(values["start"][paths[:, 0]]) + emission[np.arange(7), paths].sum(axis=1)
    each += np.log(values["transition"][paths[:, :-1], paths[:, 1:]]).sum(axis=1)
    prior = stats.norm.logpdf(values["mean"]).sum()  # the Dirichlets of ones have density 1
    assert log_joint_at(problem, values, row_map) == pytest.approx(logsumexp(each) + prior, rel=1e-10)


def topic_model() -> cv.Model:
    document, topic = cv.Plate("document"), cv.Plate("topic", 2)
    token = cv.Plate("token", within=document)
    proportions = cv.Dirichlet("proportions", [1.0, 1.0], plates=document)
    topics = cv.Dirichlet("topics", np.ones(6), plates=topic)
    z = cv.Categorical("z", proportions, plates=token)
    return cv.Model(cv.Categorical("word", topics[z], plates=token))


@pytest.mark.parametrize("as_counts", [True, False])
def test_hidden_proportions_of_documents_are_refused(as_counts):
    counts = np.random.default_rng(0).poisson(1.0, (5, 6))
    words = csr_array(counts) if as_counts else [np.repeat(np.arange(6), row) for row in counts]
    _, problem, _ = one_draw(topic_model().fit({"word": words}, seed=0), {"word": words}, 1)
    assert "a factor each" in why_no_rows(problem)
