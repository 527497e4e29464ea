"""Coefficients with zeros: single effects beside susieR's updates, spike and slab beside enumeration."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal

import caviar as cv
from caviar.engine.ascent.problem import statistics_of

OBS = cv.Plate("obs")
COLUMNS = cv.Data("X", plates=OBS)


def regression(*coefficients, precision=1.0, level=None):
    """Return a regression on known columns with these vectors of coefficients."""
    mean = cv.dot(COLUMNS, coefficients[0])
    for own in coefficients[1:]:
        mean = mean + cv.dot(COLUMNS, own)
    mean = mean if level is None else level + mean
    return cv.Model(cv.Normal("y", mean, precision, plates=OBS))


def effects(number, size, **arguments):
    return [cv.SingleEffect(f"b{k}", size, **arguments) for k in range(number)]


def genotypes(n_rows, n_columns, seed, effects_at=(3, 11)):
    """Return columns of which neighbours are alike, as at places of a genome, and values with some effects."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    for j in range(1, n_columns):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.81) * X[:, j]
    y = X[:, list(effects_at)] @ rng.choice([-1.0, 1.0], size=len(effects_at)) + rng.normal(size=n_rows)
    return X - X.mean(axis=0), y - y.mean()


def susie(X, y, number, slab, noise, *, learn_noise=False, sweeps=400):
    """Coordinate ascent as in Wang et al. (2020), with their ELBO: an effect after another, residuals kept."""
    n_rows, n_columns = X.shape
    d = np.square(X).sum(axis=0)
    alpha = np.full((number, n_columns), 1 / n_columns)
    mu, mu2 = np.zeros((number, n_columns)), np.zeros((number, n_columns))
    for _ in range(sweeps):
        divergence = 0.0
        for k in range(number):
            rest = y - X @ (alpha * mu).sum(axis=0) + X @ (alpha[k] * mu[k])
            variance = 1 / (1 / slab + d / noise)
            mu[k] = variance * (X.T @ rest) / noise
            mu2[k] = variance + mu[k] ** 2
            log_factor = 0.5 * np.log(variance / slab) + 0.5 * mu[k] ** 2 / variance
            total = logsumexp(log_factor - np.log(n_columns))
            alpha[k] = np.exp(log_factor - np.log(n_columns) - total)
            expected = X.T @ rest @ (alpha[k] * mu[k]) / noise - 0.5 * (d @ (alpha[k] * mu2[k])) / noise
            divergence += expected - total
        fitted = X @ (alpha * mu).T
        squares = np.square(y - fitted.sum(axis=1)).sum() + (alpha * mu2 @ d).sum() - np.square(fitted).sum()
        if learn_noise:
            noise = squares / n_rows
        elbo = -0.5 * n_rows * np.log(2 * np.pi * noise) - 0.5 * squares / noise - divergence
    return elbo, alpha, noise


@pytest.mark.thinned(4)
@pytest.mark.parametrize("number", [1, 3, 6])
def test_single_effects_end_where_the_published_updates_do(number):
    X, y = genotypes(80, 20, seed=number)
    expected, alpha, _ = susie(X, y, number, slab=0.5, noise=1.2)
    posterior = regression(*effects(number, 20, precision=2.0), precision=1 / 1.2).fit(
        {"y": y, "X": X}, tol=1e-13, max_iter=2000
    )
    assert posterior.elbo == pytest.approx(expected, abs=1e-8)
    missed = 1 - (1 - alpha).prod(axis=0)
    np.testing.assert_allclose(posterior.inclusion_probabilities(), missed, atol=1e-6)


@pytest.mark.slow
def test_a_noise_at_its_best_point_is_that_of_the_published_updates():
    X, y = genotypes(80, 20, seed=5)
    expected, _, noise = susie(X, y, 3, slab=0.5, noise=1.0, learn_noise=True)
    model = regression(*effects(3, 20, precision=2.0), precision=cv.Gamma("tau", 1, 0))
    posterior = model.fit({"y": y, "X": X}, tol=1e-13, max_iter=2000, point=["tau"])
    assert posterior.elbo == pytest.approx(expected, abs=1e-8)
    assert 1 / float(posterior["tau"].value) == pytest.approx(noise, rel=1e-6)


def test_one_effect_with_known_noise_is_exact():
    X, y = genotypes(30, 6, seed=0, effects_at=(1, 4))
    prior, mean = np.array([0.3, 0.1, 0.1, 0.2, 0.2, 0.1]), np.linspace(-1, 1, 6)
    precision = np.linspace(0.5, 2.0, 6)
    posterior = regression(cv.SingleEffect("b", prior, mean, precision), precision=2.0).fit({"y": y, "X": X})
    evidences = [
        np.log(prior[j])
        + multivariate_normal.logpdf(
            y, X[:, j] * mean[j], 0.5 * np.eye(30) + np.outer(X[:, j], X[:, j]) / precision[j]
        )
        for j in range(6)
    ]
    assert posterior.elbo == pytest.approx(logsumexp(evidences), abs=1e-9)
    np.testing.assert_allclose(posterior["b"].inclusion, np.exp(evidences - logsumexp(evidences)), atol=1e-9)
    rows = {"X": X[:4], "y": y[:4]}
    draws = posterior["b"].sample(200_000, seed=0) @ X[:4].T
    drawn = logsumexp(-((y[:4] - draws) ** 2), axis=0) - np.log(len(draws)) - 0.5 * np.log(np.pi)
    np.testing.assert_allclose(posterior.log_predictive(rows), drawn, atol=0.01)


def enumerated(X, y, share, slab, noise):
    """Return log p(y), and the probability of each entry, over all choices of the entries that are not zero."""
    found = []
    for support in product((0, 1), repeat=X.shape[1]):
        chosen = np.array(support, dtype=bool)
        covariance = noise * np.eye(len(y)) + slab * X[:, chosen] @ X[:, chosen].T
        log_prior = np.where(chosen, np.log(share), np.log1p(-share)).sum()
        found.append((log_prior + multivariate_normal.logpdf(y, np.zeros(len(y)), covariance), chosen))
    total = logsumexp([value for value, _ in found])
    return total, sum(np.exp(value - total) * chosen for value, chosen in found)


def test_spike_and_slab_over_orthogonal_columns_is_exact():
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.normal(size=(12, 4)))[0] * np.array([1.0, 2.0, 0.5, 3.0])
    y = X @ np.array([0.0, 1.0, 0.0, -0.7]) + 0.7 * rng.normal(size=12)
    share = np.array([0.1, 0.5, 0.3, 0.9])
    evidence, inclusion = enumerated(X, y, share, 2.0, 0.5)
    posterior = regression(cv.SpikeSlab("b", share, precision=0.5), precision=2.0).fit({"y": y, "X": X})
    assert posterior.elbo == pytest.approx(evidence, abs=1e-9)
    np.testing.assert_allclose(posterior["b"].inclusion, inclusion, atol=1e-9)


def test_spike_and_slab_over_correlated_columns_is_a_bound_at_its_optimum():
    X, y = genotypes(25, 5, seed=3, effects_at=(1, 4))
    evidence, inclusion = enumerated(X, y, np.full(5, 0.3), 1.0, 1.0)
    posterior = regression(cv.SpikeSlab("b", 0.3, precision=1.0, length=5)).fit(
        {"y": y, "X": X}, tol=1e-13, max_iter=2000
    )
    assert evidence - 3.0 < posterior.elbo < evidence
    assert posterior["b"].inclusion.argmax() == inclusion.argmax()
    # each entry is at its optimum given the others
    q = posterior["b"]
    for j in range(5):
        rest = y - X @ q.mean + X[:, j] * q.mean[j]
        precision = 1.0 + X[:, j] @ X[:, j]
        mean = X[:, j] @ rest / precision
        log_odds = np.log(0.3 / 0.7) - 0.5 * np.log(precision) + 0.5 * precision * mean**2
        assert q.inclusion[j] == pytest.approx(expit(log_odds), abs=1e-6)
        assert q.slab_mean[j] == pytest.approx(mean, abs=1e-5)


def _learnt():
    own = cv.SingleEffect(
        "b",
        cv.Dirichlet("pi", np.ones(5)),
        cv.Normal("m", 0, 1),
        cv.Gamma("g", 2, 2),
    )
    return regression(own, precision=cv.Gamma("tau", 1, 1), level=cv.Normal("level", 0, 0.1))


def _relevance():
    entry = cv.Plate("entry", 5)
    own = cv.SpikeSlab("b", cv.Beta("share", 1, 2, plates=entry), precision=cv.Gamma("g", 2, 2, plates=entry))
    return regression(own, cv.SingleEffect("c", 5, precision=1.0), precision=cv.Gamma("tau", 1, 1))


def _mixed():
    others = cv.MultivariateNormal("u", np.zeros(5), 4.0 * np.eye(5))
    spikes = cv.SpikeSlab("b", cv.Beta("share", 1, 1), cv.Normal("m", 0, 1), 1.0, length=5)
    return regression(spikes, others, precision=cv.Gamma("tau", 1, 1))


def _binary():
    coefficients = cv.SpikeSlab("b", 0.3, precision=1.0, length=5)
    linear = cv.dot(COLUMNS, coefficients) + cv.dot(COLUMNS, cv.SingleEffect("c", 5, precision=1.0))
    return cv.Model(cv.Bernoulli("y", cv.logistic(linear), plates=OBS))


@pytest.mark.thinned(4)
@pytest.mark.parametrize("state", [_learnt, _relevance, _mixed, _binary])
def test_the_kit_finds_no_fault(state):
    X, y = genotypes(40, 5, seed=2, effects_at=(1, 4))
    data = {"X": X, "y": (y > 0).astype(float) if state is _binary else y}
    report = cv.testing.check_model(state(), data, n_draws=600)
    assert report.passed, report


def factors(n_rows=60, n_columns=12, n_factors=2):
    rng = np.random.default_rng(4)
    weights = rng.normal(size=(n_columns, n_factors)) * (rng.random((n_columns, n_factors)) < 0.4)
    y = rng.normal(size=(n_rows, n_factors)) @ weights.T + 0.4 * rng.normal(size=(n_rows, n_columns))
    factor, column = cv.Plate("factor", n_factors), cv.Plate("column", n_columns)
    w = cv.SpikeSlab(
        "w",
        cv.Beta("share", 1, 1, plates=factor),
        precision=cv.Gamma("relevance", 1, 1, plates=factor),
        plates=column,
    )
    z = cv.MultivariateNormal("z", np.zeros(n_factors), np.eye(n_factors), plates=OBS)
    noise = cv.Gamma("tau", 1, 1, plates=column)
    return cv.Model(cv.Normal("y", cv.dot(w, z), noise, plates=(OBS, column))), y, weights


def test_sparse_loadings_of_factors():
    model, y, weights = factors()
    report = cv.testing.check_model(model, {"y": y}, n_draws=600)
    assert report.passed, report
    posterior = model.fit({"y": y}, seed=0, tol=1e-9, max_iter=2000)
    q = posterior["w"]
    shown = np.abs(weights) > 0.4
    # each factor of the fit has the columns of one factor of the truth
    match = max(([0, 1], [1, 0]), key=lambda own: (q.inclusion[:, own] * shown).sum())
    assert np.all(q.inclusion[:, match][shown] > 0.9)
    assert q.inclusion[:, match][weights == 0].mean() < 0.2


def test_a_weight_of_two_is_the_row_twice_and_rows_without_a_value_count_nothing():
    X, y = genotypes(30, 5, seed=6, effects_at=(1, 4))

    def elbo(values, columns, **arguments):
        return _relevance().fit({"y": values, "X": columns}, tol=1e-12, max_iter=2000, **arguments).elbo

    weights = np.r_[2.0, 2.0, np.ones(28)]
    twice = elbo(np.r_[y[:2], y], np.r_[X[:2], X])
    assert elbo(y, X, sample_weight=weights) == pytest.approx(twice, abs=1e-8)
    known = np.arange(30) % 4 > 0
    assert elbo(np.where(known, y, np.nan), X) == pytest.approx(elbo(y[known], X[known]), abs=1e-8)


def test_known_noise_of_each_row_is_a_scale_of_rows():
    X, y = genotypes(30, 5, seed=7, effects_at=(1, 4))
    noise = np.linspace(0.5, 2.0, 30)
    coefficients = cv.SpikeSlab("b", 0.3, precision=1.0, length=5), cv.SingleEffect("c", 5, precision=1.0)
    own = regression(*coefficients, precision=cv.Data("noise", plates=OBS)).fit(
        {"y": y, "X": X, "noise": noise}, tol=1e-12
    )
    scaled = regression(*coefficients).fit(
        {"y": y * np.sqrt(noise), "X": X * np.sqrt(noise)[:, None]}, tol=1e-12
    )
    assert own.elbo == pytest.approx(scaled.elbo + 0.5 * np.log(noise).sum(), abs=1e-8)
    np.testing.assert_allclose(own["b"].inclusion, scaled["b"].inclusion, atol=1e-7)


def test_single_precision_columns_are_the_same_columns():
    X, y = genotypes(30, 5, seed=8, effects_at=(1, 4))
    X = X.astype(np.float32)
    one = _relevance().fit({"y": y, "X": X}, tol=1e-11)
    other = _relevance().fit({"y": y, "X": X.astype(np.float64)}, tol=1e-11)
    assert one.elbo == pytest.approx(other.elbo, abs=1e-6)


def test_linear_response_is_what_a_moved_prior_moves():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(40, 4))
    y = X @ [0.1, 1.5, 0.0, -1.5] + rng.normal(size=40)

    def fit(mean):
        own = cv.SpikeSlab("b", 0.3, mean, 2.0)
        model = regression(own, precision=cv.Gamma("tau", 3, 3))
        return model.fit({"y": y, "X": X}, tol=1e-15, max_iter=5000, init="prior")

    # where entries are certain not to be zero, a move of their prior mean is a tilt of the entry
    mean = np.array([0.1, 0.5, -0.2, -0.7])
    certain = np.flatnonzero(fit(mean)["b"].inclusion > 0.99)
    assert len(certain) == 2
    covariance = fit(mean).linear_response({"y": y, "X": X}).covariance("b")
    for j in certain:
        step = 1e-4 * np.eye(4)[j]
        slope = (fit(mean + step)["b"].mean - fit(mean - step)["b"].mean) / 2e-4
        assert slope[certain] == pytest.approx(2.0 * covariance[j][certain], rel=0.01)


def test_predictions_are_those_of_draws():
    X, y = genotypes(40, 5, seed=10, effects_at=(1, 4))
    posterior = _relevance().fit({"y": y, "X": X})
    found = posterior.predict({"X": X[:3]})["y"]
    linear = sum(posterior[name].sample(200_000, seed=i) for i, name in enumerate("bc")) @ X[:3].T
    np.testing.assert_allclose(found.mean, linear.mean(axis=0), atol=0.01)
    noise = float(posterior["tau"].rate / (posterior["tau"].shape - 1))
    np.testing.assert_allclose(found.standard_deviation, np.sqrt(linear.var(axis=0) + noise), rtol=0.01)


@pytest.mark.slow
def test_widths_that_labels_choose_from_two_tables():
    """The labels are in several terms; the ELBO is that of the densities."""
    rng, k = np.random.default_rng(3), cv.Plate("k", 2)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    z = cv.Categorical("z", [0.3, 0.7], plates=OBS)
    one, other = (cv.Gamma(name, 3.0, 2.0, plates=k) for name in ("one", "other"))
    b = cv.SpikeSlab("b", 0.4, precision=1.0, length=3)
    model = cv.Model(cv.Normal("y", cv.dot(COLUMNS, b), one[z] * other[z], plates=OBS))
    posterior = model.fit({"X": X, "y": y}, tol=1e-10)
    estimate = cv.testing.elbo_estimate(posterior, {"X": X, "y": y}, n_draws=400, seed=0)
    assert abs(posterior.elbo - estimate.value) < 4 * estimate.error
    assert max(cv.testing.elbo_slopes(posterior, {"X": X, "y": y}).values()) < 2e-3


def test_the_matrix_of_products_of_columns_is_never_formed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3000))
    y = 3.0 * X[:, 7] + rng.normal(size=40)
    model = regression(*effects(3, 3000, precision=1.0), cv.SpikeSlab("s", 0.001, precision=1.0, length=3000))
    tracemalloc.start()
    posterior = model.fit({"y": y, "X": X}, max_iter=3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # X'X would have 72 MB
    assert peak < 30e6
    assert posterior["b0"].inclusion.argmax() == 7


def test_point_masses_are_at_modes():
    X, y = genotypes(40, 5, seed=11, effects_at=(1, 4))
    posterior = _relevance().fit({"y": y, "X": X}, point=["b", "c"], tol=1e-10)
    assert np.all(np.diff(posterior.elbo_trace) > -1e-9)
    assert np.count_nonzero(posterior["c"].value) == 1
    assert np.any(posterior["b"].value == 0)


@pytest.mark.usefixtures("figures_of_factors")
def test_saved_and_loaded(tmp_path):
    X, y = genotypes(30, 5, seed=12, effects_at=(1, 4))
    for state in (_learnt, _relevance, _mixed):
        posterior = state().fit({"y": y, "X": X})
        posterior.save(tmp_path / "own.caviar")
        loaded = cv.load(tmp_path / "own.caviar")
        np.testing.assert_array_equal(loaded["b"].inclusion, posterior["b"].inclusion)
        assert loaded.elbo_at({}, {"y": y, "X": X}) == pytest.approx(posterior.elbo, rel=1e-12)


def test_known_coefficients_are_values_with_zeros():
    X, y = genotypes(30, 5, seed=13, effects_at=(1, 4))
    own = regression(cv.SingleEffect("b", 5, precision=2.0), precision=2.0)
    value = np.array([0.0, 0.8, 0.0, 0.0, 0.0])
    elbo = own.fit({"y": y, "X": X, "b": value}).elbo
    log_prior = np.log(1 / 5) + multivariate_normal.logpdf(0.8, 0.0, 0.5)
    assert elbo == pytest.approx(
        multivariate_normal.logpdf(y, X @ value, 0.5 * np.eye(30)) + log_prior, abs=1e-9
    )


def test_credible_sets_hold_what_cannot_be_told_apart():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 10))
    X[:, 6] = X[:, 5] + 0.01 * rng.normal(size=300)
    y = X[:, 2] + X[:, 5] + rng.normal(size=300)
    posterior = regression(*effects(4, 10, precision=1.0)).fit({"y": y, "X": X})
    found = posterior.credible_sets({"X": X})
    assert {frozenset(own.entries) for own in found} == {frozenset({2}), frozenset({5, 6})}
    pair = next(own for own in found if len(own) == 2)
    assert pair.purity == pytest.approx(abs(np.corrcoef(X[:, 5], X[:, 6])[0, 1]), rel=1e-12)
    assert pair.coverage == pytest.approx(posterior[pair.effect].inclusion[[5, 6]].sum())
    # an effect that found nothing has a set of many columns that are nothing like each other
    assert len(posterior.credible_sets()) > len(found)
    assert len(posterior.credible_sets({"X": X}, smallest_purity=0.0)) == len(posterior.credible_sets())
    np.testing.assert_allclose(
        posterior.inclusion_probabilities(["b0", "b1"]),
        1 - (1 - posterior["b0"].inclusion) * (1 - posterior["b1"].inclusion),
    )


def test_terms_of_fitted_values_are_those_of_the_matrix_of_products():
    X, y = genotypes(20, 4, seed=14, effects_at=(1, 3))
    posterior = _mixed_of_four().fit({"y": y, "X": X}, max_iter=2)
    problem, _ = posterior._evaluator.bind({"y": y, "X": X})
    q = {variable: posterior[variable.name] for variable in problem.order}
    arrays = statistics_of(problem, q)
    gram, tau = X.T @ X, float(posterior["tau"].mean)
    means = {name: posterior[name].mean for name in ("b", "u")}
    fitted = [own.contraction for own in problem.compiled.terms if hasattr(own.contraction, "design")]
    assert len(fitted) == 2
    for own in fitted:
        names = [key.variable for key in own.keys if key.variable != "tau"]
        pairs = -0.5 * (1 if names[0] == names[1] else 2)
        expected = pairs * tau * means[names[0]] @ gram @ means[names[1]]
        assert own.value(arrays) == pytest.approx(expected, rel=1e-12)
        for place, key in enumerate(own.keys):
            message = own.derivative(place)(arrays)
            others = [name for at, name in enumerate(names) if own.keys.index(key) != at + 1]
            if key.variable == "tau":
                assert float(message) == pytest.approx(expected / tau, rel=1e-12)
            else:
                other = names[1] if place == 1 else names[0]
                np.testing.assert_allclose(
                    message, pairs * tau * gram @ means[other], rtol=1e-11, err_msg=others
                )
        sizes = {key: np.abs(arrays[key]) for key in own.keys}
        bound = (
            np.abs(pairs)
            * tau
            * np.abs(means[names[0]])
            @ (np.abs(X).T @ np.abs(X))
            @ np.abs(means[names[1]])
        )
        assert own.magnitude(arrays) == pytest.approx(bound, rel=1e-12)
        assert own.largest_magnitude({key: own.sum() for key, own in sizes.items()}) >= bound


def _mixed_of_four():
    others = cv.MultivariateNormal("u", np.zeros(4), 4.0 * np.eye(4))
    spikes = cv.SpikeSlab("b", 0.4, precision=1.0, length=4)
    return regression(spikes, others, precision=cv.Gamma("tau", 1, 1))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (lambda: cv.SingleEffect("b", 0, precision=1.0), "number of entries from 1"),
        (lambda: cv.SingleEffect("b", [0.5, 0.6], precision=1.0), "sum to one"),
        (lambda: cv.SingleEffect("b", [1.0, 0.0], precision=1.0), "must be positive; leave out"),
        (lambda: cv.SingleEffect("b", 3), "'precision' of SingleEffect 'b' is missing"),
        (lambda: cv.SingleEffect("b", 3, precision=0.0), "none would ever be chosen"),
        (lambda: cv.SpikeSlab("b", 0.5, precision=1.0), "give length=D"),
        (lambda: cv.SpikeSlab("b", 1.0, precision=1.0, length=3), "be neither"),
        (lambda: cv.SpikeSlab("b", [0.5, 0.5], precision=1.0, length=3), "length"),
        (
            lambda: cv.SpikeSlab("b", 0.5, precision=cv.Gamma("g", 1, 1, plates=cv.Plate("k", 2)), length=3),
            "of size 2, but 'b' has length 3",
        ),
        (
            lambda: regression(_B, level=cv.dot(cv.Data("Z", plates=OBS), _B)),
            "is in two products",
        ),
        (
            lambda: cv.Normal("y", cv.dot(_B, cv.SingleEffect("c", 3, precision=1.0)), 1.0),
            "both have entries that are zero",
        ),
        (lambda: cv.MultivariateNormal("y", _B, np.eye(3)), "cannot be the SingleEffect 'b'"),
    ],
)  # fmt: skip
def test_what_cannot_be_stated_is_refused(state, message):
    with pytest.raises(cv.ModelError, match=message):
        state()


_B = cv.SingleEffect("b", 3, precision=1.0)


def test_what_cannot_be_asked_is_refused():
    X, y = genotypes(20, 4, seed=15, effects_at=(1, 3))
    posterior = regression(cv.SingleEffect("b", 4, precision=1.0), precision=cv.Gamma("tau", 1, 1)).fit(
        {"y": y, "X": X}
    )
    with pytest.raises(cv.ModelError, match="'tau' is not a SingleEffect"):
        posterior.credible_sets(names=["tau"])
    with pytest.raises(cv.ParameterError, match="coverage must lie between 0 and 1"):
        posterior.credible_sets(coverage=1.0)
    with pytest.raises(cv.ParameterError, match="the data lack 'X'"):
        posterior.credible_sets({"y": y})
    plain = cv.Model(cv.Normal("y", cv.Normal("m", 0, 1), 1.0, plates=OBS)).fit({"y": y})
    with pytest.raises(cv.ModelError, match="the posterior has no SingleEffect or SpikeSlab"):
        plain.inclusion_probabilities()


BESIDE_SHARED = [
    [cv.SpikeSlab("b", 0.3, 0.0, 1.0, length=4)],
    [cv.SpikeSlab("b", 0.3, 0.0, 1.0, length=4), cv.SingleEffect("c", np.full(4, 0.25), 0.0, 1.0)],
    effects(2, 4, precision=1.0),
]
"""Coefficients of the same columns beside variables that share a factor."""


@pytest.mark.parametrize("sparse", BESIDE_SHARED)
def test_a_level_and_dense_coefficients_of_the_same_columns_share_a_factor(sparse):
    """As where the dense ones are those of another array with the same values."""
    X, y = genotypes(12, 4, 0, effects_at=(1,))
    y = y + 1.0
    level, dense = cv.Normal("level", 0.0, 1.0), cv.MultivariateNormal("w", np.zeros(4), np.eye(4))
    noise, others = cv.Gamma("noise", 2.0, 1.0), cv.Data("Z", plates=OBS)
    mean = level + cv.dot(others, dense)
    for own in sparse:
        mean = mean + cv.dot(COLUMNS, own)
    apart = cv.Model(cv.Normal("y", mean, noise, plates=OBS)).fit({"X": X, "Z": X, "y": y}, tol=1e-12)
    same = regression(dense, *sparse, precision=noise, level=level).fit({"X": X, "y": y}, tol=1e-12)
    assert same.elbo == pytest.approx(apart.elbo, abs=1e-7)
    estimate = cv.testing.elbo_estimate(same, {"X": X, "y": y}, n_draws=400)
    assert abs(same.elbo - estimate.value) < 4.5 * estimate.error


@pytest.mark.parametrize("sparse", BESIDE_SHARED)
def test_a_label_of_all_rows_chooses_their_noise(sparse):
    """One of two with the same prior: whichever it is, the evidence is that of one."""
    X, y = genotypes(12, 4, 1, effects_at=(1,))
    label = cv.Categorical("label", [0.4, 0.6])
    noises = cv.Gamma("noises", 2.0, 1.0, plates=cv.Plate("kind", 2))
    chosen, one = (
        regression(*sparse, precision=own).fit({"X": X, "y": y}, tol=1e-12)
        for own in (noises[label], cv.Gamma("noise", 2.0, 1.0))
    )
    assert chosen.elbo == pytest.approx(one.elbo, abs=1e-7)
