"""Single effects with learnt variances beside susieR's empirical Bayes: ELBO, credible sets, and sweeps."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

import caviar as cv
from caviar.engine.compiled.single_effects import Evidence
from caviar.engine.evaluation.given_by_passes import GivenByPasses
from caviar.posterior.uncertainty.pending import Pending

OBS = cv.Plate("obs")
COLUMNS = cv.Data("X", plates=OBS)


def model(number, size, precision=lambda k: cv.Gamma(f"v{k}", 1, 0), noise=None):
    """Return a sum of single effects with learnt precisions; flat, and the noise too, as in susieR."""
    effects = [cv.SingleEffect(f"b{k}", size, precision=precision(k)) for k in range(number)]
    mean = cv.dot(COLUMNS, effects[0])
    for own in effects[1:]:
        mean = mean + cv.dot(COLUMNS, own)
    noise = cv.Gamma("tau", 1, 0) if noise is None else noise
    return cv.Model(cv.Normal("y", mean, noise, plates=OBS))


def points(number):
    return ["tau", *(f"v{k}" for k in range(number))]


def fitted(X, y, number, **arguments):
    own = model(number, X.shape[1])
    return own.fit({"X": X, "y": y}, point=points(number), **arguments)


def susie(X, y, number, tol, most=1000):
    """Return ELBOs, inclusion (L, D) and variances as susieR 0.12 finds them with its defaults.

    An effect after another: its variance by Brent's method over log V from -30 to 15, kept where that is better, and
    zero where it is no worse; then the effect; after a sweep the variance of the noise.
    """
    n_rows, size = X.shape
    d, spread = np.square(X).sum(axis=0), np.var(y, ddof=1)
    noise, variances = spread, np.full(number, 0.2 * spread)
    alpha, mu, mu2 = np.full((number, size), 1 / size), np.zeros((number, size)), np.zeros((number, size))
    elbos = []
    for _ in range(most):
        divergence = 0.0
        for k in range(number):
            rest = y - X @ ((alpha * mu).sum(axis=0) - alpha[k] * mu[k])
            own, width = X.T @ rest / d, noise / d

            def factors(log_v, own=own, width=width):
                v = np.exp(log_v)
                return 0.5 * np.log(width / (v + width)) + 0.5 * own**2 / width * v / (v + width)

            def loss(log_v, factors=factors):
                return np.log(size) - logsumexp(factors(log_v))

            with np.errstate(divide="ignore"):
                before = np.log(variances[k])
            found = minimize_scalar(loss, bounds=(-30, 15), method="bounded", options={"xatol": 1.5e-8}).x
            found = before if loss(found) > loss(before) else found
            variances[k] = np.exp(found) if loss(found) < 0 else 0.0
            log_factor = factors(found) if variances[k] > 0 else np.zeros(size)
            total = logsumexp(log_factor) - np.log(size)
            alpha[k] = np.exp(log_factor - np.log(size) - total)
            post = variances[k] * width / (variances[k] + width)
            mu[k] = post / width * own
            mu2[k] = post + mu[k] ** 2
            divergence += (X.T @ rest @ (alpha[k] * mu[k]) - 0.5 * (d @ (alpha[k] * mu2[k]))) / noise - total
        fit = X @ (alpha * mu).T
        squares = np.square(y - fit.sum(axis=1)).sum() + (alpha * mu2 @ d).sum() - np.square(fit).sum()
        elbos.append(-0.5 * n_rows * np.log(2 * np.pi * noise) - 0.5 * squares / noise - divergence)
        if len(elbos) > 1 and elbos[-1] - elbos[-2] < tol:
            break
        noise = squares / n_rows
    return np.array(elbos), alpha, variances


def credible(X, alpha, variances):
    """Return susieR's credible sets: 95%, of effects with a variance, in which no correlation is below 0.5."""
    found = set()
    for own, variance in zip(alpha, variances, strict=True):
        order = np.argsort(-own, kind="stable")
        entries = order[: np.searchsorted(np.cumsum(own[order]), 0.95) + 1]
        if variance > 1e-9 and np.abs(np.corrcoef(X[:, entries], rowvar=False)).min() >= 0.5:
            found.add(tuple(sorted(entries.tolist())))
    return found


def sets_of(posterior, X):
    return {tuple(sorted(own.entries)) for own in posterior.credible_sets({"X": X})}


def genome(seed, n_rows=300, size=200):
    """Return standardised columns of which neighbours are alike, and a trait with none to four effects."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, size))
    for j in range(1, size):
        X[:, j] = 0.95 * X[:, j - 1] + np.sqrt(1 - 0.95**2) * X[:, j]
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    places = rng.choice(size, size=seed % 5, replace=False)
    y = X[:, places] @ rng.normal(scale=0.35, size=len(places)) + rng.normal(size=n_rows)
    return X, y - y.mean()


def beside_susie(seed):
    """Return a fit with the ELBO and the sets of susieR at the same tolerance, and susieR's ELBOs."""
    X, y = genome(seed)
    posterior = fitted(X, y, 10)
    elbos, alpha, variances = susie(X, y, 10, tol=1e-8 * len(y))
    assert posterior.elbo >= elbos[-1] - 1e-6
    assert sets_of(posterior, X) == credible(X, alpha, variances)
    return posterior, elbos


@pytest.mark.thinned(5)
@pytest.mark.parametrize("seed", [0, 3, 4, 6, 8, 9])
def test_ten_effects_end_where_susier_does(seed):
    posterior, elbos = beside_susie(seed)
    assert posterior.n_iter <= 1.2 * len(elbos) + 1
    assert np.all(np.diff(posterior.elbo_trace) > -1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_twenty_traits_end_where_susier_does(seed):
    beside_susie(seed)


def test_an_effect_that_nothing_needs_has_no_variance():
    X, y = genome(0)
    posterior = fitted(X, y, 3)
    noise = y @ y / len(y)
    without = -0.5 * len(y) * (np.log(2 * np.pi * noise) + 1)
    assert posterior.elbo == pytest.approx(without, abs=1e-7)
    for k in range(3):
        assert 1 / float(posterior[f"v{k}"].value) < 1e-10 * noise
        np.testing.assert_allclose(posterior[f"b{k}"].inclusion, 1 / X.shape[1], rtol=1e-6)


def test_one_effect_has_the_variance_of_largest_evidence():
    X, y = genome(6, n_rows=80, size=30)
    d, product = np.square(X).sum(axis=0), np.square(X.T @ y)

    def evidence(log_v):
        v = np.exp(log_v)
        each = -0.5 * np.log1p(v * d) + 0.5 * v * product / (1 + v * d)
        return logsumexp(each) - np.log(30) - 0.5 * y @ y - 40 * np.log(2 * np.pi)

    scan = np.linspace(-12, 4, 4001)
    posterior = model(1, 30, noise=1.0).fit({"X": X, "y": y}, point=["v0"])
    assert posterior.elbo == pytest.approx(max(map(evidence, scan)), abs=1e-5)
    assert posterior.elbo == pytest.approx(evidence(-np.log(posterior["v0"].value)), abs=1e-9)
    assert posterior.n_iter <= 3


def test_distributions_of_precisions_end_where_updates_in_turn_do():
    X, y = genome(3, n_rows=120, size=40)
    own = model(4, 40, lambda k: cv.Gamma(f"v{k}", 1e-3, 1e-3), cv.Gamma("tau", 1, 1))
    names = ["tau", *(f"v{k}" for k in range(4)), *(f"b{k}" for k in range(4))]
    data, arguments = {"X": X, "y": y}, {"tol": 1e-13, "max_iter": 3000, "accelerate": False}
    # with the precisions first, updates take turns
    in_turn, together = own.fit(data, order=names, **arguments), own.fit(data, **arguments)
    assert together.elbo == pytest.approx(in_turn.elbo, abs=1e-7)
    assert together.n_iter < 0.6 * in_turn.n_iter
    for k in range(4):
        assert together[f"v{k}"].rate == pytest.approx(in_turn[f"v{k}"].rate, rel=1e-3)
    assert np.all(np.diff(together.elbo_trace) > -1e-9)


def test_repeated_effects_are_each_at_their_best():
    X, y = genome(6, n_rows=80, size=30)
    traits = np.stack([y, np.roll(y, 11), 2 * np.roll(y, 5)], axis=1)
    trait = cv.Plate("trait", 3)
    b = cv.SingleEffect("b", 30, precision=cv.Gamma("v", 1, 0, plates=trait), plates=trait)
    joint = cv.Model(cv.Normal("y", cv.dot(COLUMNS, b), 1.0, plates=(OBS, trait)))
    together = joint.fit({"X": X, "y": traits}, point=["v"], tol=1e-12)
    alone = [
        model(1, 30, noise=1.0).fit({"X": X, "y": own}, point=["v0"], tol=1e-12).elbo for own in traits.T
    ]
    assert together.elbo == pytest.approx(sum(alone), abs=1e-7)


def evidences():
    """Yield what precisions are worth: with strong, weak and no effects, and with priors."""
    rng = np.random.default_rng(0)
    priors = [(0.0, 0.0), (0.5, 0.3), (1e-3, 1e-3), (-0.3, 0.0), (20.0, 5.0), (0.0, 2.0)]
    for number in range(60):
        curvature = 50.0 * rng.lognormal(sigma=0.1 * (number % 3), size=40)
        score = rng.normal(size=40)
        score[:2] *= [1 + number % 7, 1 + number % 4]
        power, rate = priors[number % len(priors)]
        yield Evidence(np.log(rng.dirichlet(np.ones(40))), 0.5 * score**2 * curvature, curvature, power, rate)


def test_the_best_precision_is_the_best_of_all():
    for own in evidences():
        scan = np.linspace(-12, 30, 4001)
        # a variance of zero is as good as this one
        best = own.values(scan[scan < np.log(1e10 * own.curvature.max())]).max()
        for present in (1e-3, 1.0, 1e4):
            found = np.log([own.best(present)])
            assert own.values(found).item() >= best - 1e-6
            assert own.values(found).item() >= own.values(np.log([present])).item() - 1e-10


def test_slopes_are_those_of_the_values():
    for own in evidences():
        for place in (0.5, 3.0, 5.0):
            step = 1e-4
            low, middle, high = own.values(place + step * np.array([-1.0, 0.0, 1.0]))
            first, second = own.slopes(place)
            assert first == pytest.approx((high - low) / (2 * step), rel=1e-5, abs=1e-6)
            assert second == pytest.approx((high - 2 * middle + low) / step**2, rel=1e-3, abs=1e-4)


def test_with_a_known_precision_an_effect_is_at_its_own_best():
    X, y = genome(6, n_rows=60, size=12)
    own = model(1, 12, lambda k: cv.Gamma(f"v{k}", 2, 1), noise=1.0)
    data = {"X": X, "y": y}
    posterior = own.fit(data)
    given = GivenByPasses(posterior._state(*posterior._bound(Pending(data, None))), ["v0"])
    for value in (0.1, 3.0):
        found = given.fit_at({"v0": (np.array(np.log(value)), np.array(value))}, None)
        known = own.fit({**data, "v0": value})["b0"]
        (effect,) = (factor for variable, factor in found.q.items() if variable.name == "b0")
        np.testing.assert_allclose(effect.inclusion, known.inclusion, atol=1e-9)
