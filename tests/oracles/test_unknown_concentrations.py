"""An unknown number for each category of a Dirichlet: the ELBO is a bound; moments, by quadrature and by BayesPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import digamma, gammaln, logsumexp

import caviar as cv
from caviar.families import LogGammaTangent
from caviar.testing import check_model, elbo_estimate

GROUP = cv.Plate("group")
SHAPE, RATE = 1.5, 0.3


def dirichlet(size: int, scale: float = 1.0) -> cv.Dirichlet:
    """Return probabilities of each group around numbers that are unknown, Gamma(1.5, 0.3) after scaling."""
    a = cv.Gamma("a", SHAPE, RATE * scale, plates=cv.Plate("category", size))
    return cv.Dirichlet("p", a if scale == 1.0 else scale * a, plates=GROUP)


def grid(size: int, n: int) -> tuple[np.ndarray, float]:
    """Return points of the numbers, (points, K), even in their logarithms, and the volume of each there."""
    places, step = np.linspace(-5.0, 5.5, n, retstep=True)
    own = np.stack(np.meshgrid(*[places] * size, indexing="ij"), axis=-1).reshape(-1, size)
    return np.exp(own), float(step) ** size


def log_prior(a: np.ndarray) -> np.ndarray:
    """Return the log density of the logarithms of the numbers."""
    return (SHAPE * np.log(RATE) - gammaln(SHAPE) + SHAPE * np.log(a) - RATE * a).sum(axis=-1)


def exact(p: np.ndarray, n: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the log evidence of observed probabilities, and mean and standard deviation of each number."""
    a, volume = grid(p.shape[1], n)
    each = gammaln(a.sum(axis=1)) - gammaln(a).sum(axis=1)
    log_joint = log_prior(a) + len(p) * each + (a - 1) @ np.log(p).sum(axis=0)
    evidence = logsumexp(log_joint) + np.log(volume)
    weights = np.exp(log_joint - logsumexp(log_joint))
    mean = weights @ a
    return float(evidence), mean, np.sqrt(weights @ a**2 - mean**2)


@pytest.mark.parametrize(("truth", "n_groups", "n"), [([2.0, 0.7], 20, 160), ([0.3, 0.1, 0.2], 40, 70)])
def test_the_elbo_is_a_bound_and_moments_are_near_the_exact_ones(
    truth: list[float], n_groups: int, n: int
) -> None:
    p = np.random.default_rng(0).dirichlet(truth, size=n_groups)
    posterior = cv.Model(dirichlet(len(truth))).fit({"p": p}, tol=1e-10)
    evidence, mean, sd = exact(p, n)
    assert evidence - 1.5 < posterior.elbo < evidence
    assert np.diff(posterior.elbo_trace).min() > -1e-9
    np.testing.assert_allclose(posterior["a"].mean, mean, rtol=0.05)
    table = posterior.summary().to_frame()
    shown = table[table["variable"] == "a"]["sd"].to_numpy(dtype=float)
    np.testing.assert_allclose(shown, sd, rtol=0.08)
    # the factors leave out that the numbers rise and fall together
    assert (posterior["a"].sd < sd).all()


def test_the_elbo_is_that_of_its_factors_by_quadrature() -> None:
    p = np.random.default_rng(1).dirichlet([2.0, 0.7], size=5)
    posterior = cv.Model(dirichlet(2)).fit({"p": p}, tol=1e-12)
    q, point = posterior["a"], float(posterior["p.tangent"].mean)
    assert point == pytest.approx(q.mean.sum(), rel=1e-6)
    total = len(p) * (gammaln(point) - point * digamma(point))

    def of_one(x: float, k: int) -> float:
        own = np.log(p[:, k]).sum() * (x - 1) + len(p) * (digamma(point) * x - gammaln(x))
        prior = SHAPE * np.log(RATE) - gammaln(SHAPE) + (SHAPE - 1) * np.log(x) - RATE * x
        log_q = float(q.log_density(np.full(2, x))[k])
        return float(np.exp(log_q) * (own + prior - log_q))

    total += sum(
        quad(of_one, *(float(end) for end in q.quantile([[1e-13], [1 - 1e-13]])[:, k]), args=(k,))[0]
        for k in range(2)
    )
    assert posterior.elbo == pytest.approx(total, abs=1e-6)


def test_probabilities_of_hidden_groups_are_bounded_too() -> None:
    rng = np.random.default_rng(2)
    counts = rng.multinomial(8, rng.dirichlet([3.0, 1.0], size=4))
    model = cv.Model(cv.Multinomial("n", 8, dirichlet(2), plates=GROUP))
    posterior = model.fit({"n": counts}, tol=1e-10)
    a, volume = grid(2, 160)
    s = a.sum(axis=1)
    each = [
        gammaln(k.sum() + 1) - gammaln(k + 1).sum() + gammaln(s) - gammaln(s + k.sum())
        + (gammaln(a + k) - gammaln(a)).sum(axis=1)
        for k in counts
    ]  # fmt: skip
    evidence = logsumexp(log_prior(a) + np.sum(each, axis=0)) + np.log(volume)
    assert evidence - 2.0 < posterior.elbo < evidence


def test_a_known_factor_is_another_unit() -> None:
    p = np.random.default_rng(3).dirichlet([2.0, 0.7, 1.0], size=9)
    one, other = (cv.Model(dirichlet(3, scale)).fit({"p": p}, tol=1e-12) for scale in (1.0, 4.0))
    assert other.elbo == pytest.approx(one.elbo, abs=1e-9)
    np.testing.assert_allclose(4.0 * other["a"].mean, one["a"].mean, rtol=1e-7)


def test_a_label_chooses_the_numbers_of_its_component() -> None:
    rng, row, size = np.random.default_rng(4), cv.Plate("row"), 3
    p = np.concatenate([rng.dirichlet([1, 5, 9], size=12), rng.dirichlet([9, 3, 1], size=8)])
    labels = np.repeat([0, 1], [12, 8])
    a = cv.Gamma("a", SHAPE, RATE, plates=(cv.Plate("component", 2), cv.Plate("category", size)))
    known = cv.Model(cv.Dirichlet("p", a[cv.Data("z", plates=row)], plates=row))
    whole = known.fit({"p": p, "z": labels}, tol=1e-12)
    parts = [cv.Model(dirichlet(size)).fit({"p": p[labels == k]}, tol=1e-12) for k in range(2)]
    assert whole.elbo == pytest.approx(sum(part.elbo for part in parts), abs=1e-8)
    np.testing.assert_allclose(whole["a"].mean, [part["a"].mean for part in parts], rtol=1e-6)
    z = cv.Categorical("z", [0.6, 0.4], plates=row)
    hidden = cv.Model(cv.Dirichlet("p", a[z], plates=row)).fit({"p": p}, tol=1e-10, seed=0)
    prior = 12 * np.log(0.6) + 8 * np.log(0.4)
    assert whole.elbo + prior < hidden.elbo + 1e-6
    assert (hidden.local({"p": p})["z"].probabilities.argmax(axis=1) == labels).all()


def test_point_masses_are_where_bayespy_has_them(tmp_path: Any) -> None:
    bayespy = pytest.importorskip("bayespy")
    rng = np.random.default_rng(5)
    counts = rng.multinomial(30, rng.dirichlet([3.0, 1.0, 6.0], size=12))
    a = cv.Gamma("a", 1, 0, plates=cv.Plate("category", 3))
    model = cv.Model(cv.Multinomial("n", 30, cv.Dirichlet("p", a, plates=GROUP), plates=GROUP))
    posterior = model.fit({"n": counts}, point=["a"], tol=1e-13, max_iter=5000)
    nodes: Any = bayespy.nodes
    concentration = nodes.Concentration(3, regularization=False)
    p = nodes.Dirichlet(concentration, plates=(12,))
    n = nodes.Multinomial(30, p)
    n.observe(counts)
    inference = bayespy.inference.VB(n, p, concentration, autosave_filename=str(tmp_path / "autosave"))
    inference.update(repeat=5000, tol=1e-13, verbose=False)
    np.testing.assert_allclose(posterior["a"].mean, concentration.u[0], rtol=2e-3)
    assert posterior.elbo == pytest.approx(float(inference.loglikelihood_lowerbound()), abs=1e-3)


def test_checks_saved_models_and_many_fits(tmp_path: Any) -> None:
    p = np.random.default_rng(6).dirichlet([2.0, 0.7], size=6)
    model = cv.Model(dirichlet(2))
    posterior = model.fit({"p": p}, tol=1e-10)
    assert check_model(model, {"p": p}).passed
    estimate = elbo_estimate(posterior, {"p": p}, n_draws=1000)
    # the tangent lies below the function
    assert posterior.elbo < estimate.value + 4 * estimate.error
    posterior.save(tmp_path / "fit.caviar")
    assert cv.load(tmp_path / "fit.caviar").elbo == posterior.elbo
    several = cv.fit_many(model, [{"p": p}, {"p": p}], tol=1e-10)
    assert [own.elbo for own in several] == pytest.approx([posterior.elbo] * 2, abs=1e-9)
    cv.report.write(posterior, tmp_path / "fit.html", {"p": p})
    assert "p.tangent" in (tmp_path / "fit.html").read_text(encoding="utf-8")
    lower, upper = posterior["a"].interval(0.9)
    assert ((lower < posterior["a"].mean) & (posterior["a"].mean < upper)).all()


def test_a_tangent_is_where_its_natural_parameters_say() -> None:
    q = LogGammaTangent([2.0, 0.1], [3.0, 1.5])
    change = (np.array([0.3, -0.01]), np.array([0.1, 0.2]))

    def at(h: float) -> LogGammaTangent:
        return LogGammaTangent.from_natural(tuple(n + h * c for n, c in zip(q.natural, change, strict=True)))

    step = 1e-5
    for place, (slope, own) in enumerate(zip(q.response(change), q.expected_statistics, strict=True)):
        numerical = (at(step).expected_statistics[place] - at(-step).expected_statistics[place]) / (2 * step)
        np.testing.assert_allclose(slope, numerical, rtol=1e-6)
        # the log-partition has the statistics as its slopes
        moved = [np.zeros(2), np.zeros(2)]
        moved[place] = np.full(2, 1e-6)
        above, below = (
            LogGammaTangent.from_natural(tuple(n + s * m for n, m in zip(q.natural, moved, strict=True)))
            for s in (1, -1)
        )
        np.testing.assert_allclose((above.log_partition - below.log_partition) / 2e-6, own, rtol=1e-6)
    s = np.linspace(0.05, 9.0, 50)[:, None]
    slope, constant = q.expected_statistics
    assert (gammaln(s) >= slope * s + constant - 1e-12).all()


@pytest.mark.parametrize(
    ("concentration", "categories", "message"),
    [
        (lambda a: a, 4, "has 3 numbers along plate 'category', but 'categories' is 4"),
        (lambda a: -1.0 * a, None, "must be positive; its factor -1 is not"),
        (lambda a: a * cv.Data("c", plates=GROUP), None, "times one known number"),
        (lambda a: a + 1.0, None, "for each category, alone or times one known number"),
    ],
)
def test_other_concentrations_are_refused(concentration: Any, categories: int | None, message: str) -> None:
    a = cv.Gamma("a", 1, 1, plates=cv.Plate("category", 3))
    with pytest.raises((cv.ModelError, cv.PlateError, cv.ConjugacyError), match=message):
        cv.Dirichlet("p", concentration(a), categories=categories, plates=GROUP)


def test_weights_of_draws_are_those_of_the_density_and_not_of_its_bound() -> None:
    p = np.random.default_rng(7).dirichlet([2.0, 0.7], size=6)
    posterior = cv.Model(dirichlet(2)).fit({"p": p}, tol=1e-10)
    evidence, _, _ = exact(p, 160)
    found = posterior.diagnose({"p": p}, n_draws=2000, seed=0)
    assert found.log_weights.std() > 0.1
    assert found.log_evidence == pytest.approx(evidence, abs=0.3)
    assert posterior.evidence({"p": p}, seed=0).value == pytest.approx(evidence, abs=0.1)
