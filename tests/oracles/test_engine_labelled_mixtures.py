"""Mixtures of counts, times, answers and mixed columns, against all labellings and a literal coordinate ascent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

import caviar as cv
from caviar import models
from oracles.reference import labelled_mixture as literal
from oracles.reference.labelled_mixture import Counts, Labels, Mixture, Numbers, Sticks, Tallies, Times

OBS = cv.Plate("obs")


@dataclass(frozen=True)
class Case:
    """A model with few rows, the same model for the reference, and its factors in the reference's words."""

    model: cv.Model
    data: dict[str, np.ndarray]
    stated: Mixture
    columns: Sequence[Any]
    factors: Callable[[cv.Posterior], Sequence[Sequence[Any]]]

    def read(self, posterior):
        """Return q and the responsibilities."""
        weights = posterior["weights"]
        if isinstance(self.stated.weights, Sticks):
            pairs = zip(weights.a, weights.b, strict=True)
            own = Sticks(tuple(Labels((float(a), float(b))) for a, b in pairs))
        else:
            own = Labels(tuple(weights.concentration))
        return Mixture(own, self.factors(posterior)), posterior.local(self.data)["z"].probabilities


def _of(kind, *arrays):
    """Return a component for each entry of parameter arrays (K,)."""
    return [kind(*(float(v) for v in values)) for values in zip(*arrays, strict=True)]


def counts(rng):
    x = rng.poisson(np.where(rng.random((6, 1)) < 0.5, [1.0, 6.0], [7.0, 2.0]))
    priors = [[Counts(1.3, 0.4)] * 2] * 2

    def factors(posterior):
        q = posterior["rate"]
        return [_of(Counts, q.shape[:, d], q.rate[:, d]) for d in range(2)]

    model = models.poisson_mixture(2, 2, concentration=[1.0, 0.7], shape=1.3, rate=0.4)
    return Case(model, {"x": x}, Mixture(Labels((1.0, 0.7)), priors), x.T.tolist(), factors)


def times(rng):
    x = rng.gamma(2.5, np.where(rng.random(7) < 0.5, 0.3, 3.0))
    rate = cv.Gamma("rate", 1.2, 0.8, plates=cv.Plate("component", 2))
    z = cv.Categorical("z", cv.Dirichlet("weights", [0.8, 1.5]), plates=OBS)

    def factors(posterior):
        q = posterior["rate"]
        return [_of(Times, np.full(2, 2.5), q.shape, q.rate)]

    model = cv.Model(cv.Gamma("x", 2.5, rate[z], plates=OBS))
    return Case(model, {"x": x}, Mixture(Labels((0.8, 1.5)), [[Times(2.5, 1.2, 0.8)] * 2]), [x], factors)


def answers(rng):
    x = (rng.random((5, 3)) < np.where(rng.random((5, 1)) < 0.5, 0.15, 0.8)).astype(int)
    priors = [[Labels((1.4, 0.6))] * 3] * 3  # of a zero, then of a one

    def factors(posterior):
        q = posterior["probability"]
        return [[Labels((float(q.b[k, d]), float(q.a[k, d]))) for k in range(3)] for d in range(3)]

    model = models.bernoulli_mixture(3, 3, concentration=0.9, a=0.6, b=1.4)
    return Case(model, {"x": x}, Mixture(Labels((0.9,) * 3), priors), x.T.tolist(), factors)


def classes(rng):
    hidden = rng.integers(0, 2, 7)
    data = {"smokes": (rng.random(7) < 0.2 + 0.6 * hidden).astype(int), "drinks": rng.integers(0, 3, 7)}
    priors = [[Labels((0.7,) * 2)] * 2, [Labels((0.7,) * 3)] * 2]

    def factors(posterior):
        found = (posterior[f"{name}_probabilities"].concentration for name in data)
        return [[Labels(tuple(row)) for row in q] for q in found]

    model = models.latent_class_analysis({"smokes": 2, "drinks": 3}, 2, answer_concentration=0.7)
    return Case(model, data, Mixture(Labels((1.0, 1.0)), priors), [*data.values()], factors)


def mixed(rng):
    hidden = rng.integers(0, 2, 7)
    data = {
        "height": rng.normal(2.0 * hidden, 1.0),
        "colour": np.where(rng.random(7) < 0.7, hidden, 2),
        "visits": rng.poisson(1.0 + 5 * hidden),
    }
    data = {"height": data["height"], "mass": rng.normal(70.0 + 9 * hidden, 4.0), **data}
    scales = {"height": (0.5, 0.3, 1.5, 1.2), "mass": (72.0, 0.5, 2.0, 25.0)}
    priors = [
        *([Numbers(*scale)] * 2 for scale in scales.values()),
        [Labels((0.8,) * 3)] * 2,
        [Counts(1.2, 0.5)] * 2,
    ]

    def factors(posterior):
        p, rate = (posterior[n] for n in ("colour_probabilities", "visits_rate"))
        numbers = [posterior[f"{name}_theta"] for name in scales]
        return [
            *(_of(Numbers, q.mean, q.mean_precision, q.shape, q.rate) for q in numbers),
            [Labels(tuple(row)) for row in p.concentration],
            _of(Counts, rate.shape, rate.rate),
        ]

    model = models.mixed_mixture(
        2,
        numbers=list(scales),
        n_categories={"colour": 3},
        counts=["visits"],
        concentration=[1.0, 0.6],
        number_prior=scales,
        answer_concentration=0.8,
        count_prior=(1.2, 0.5),
    )
    return Case(model, data, Mixture(Labels((1.0, 0.6)), priors), [*data.values()], factors)


def tallies(rng):
    p = np.where(rng.random((6, 1)) < 0.5, [0.1, 0.2, 0.7], [0.6, 0.3, 0.1])
    x = rng.multinomial(rng.integers(1, 7, 6), p)
    probabilities = cv.Dirichlet("p", [0.6, 1.0, 1.7], plates=cv.Plate("component", 2))
    z = cv.Categorical("z", cv.Dirichlet("weights", [0.8, 1.5]), plates=OBS)

    def factors(posterior):
        return [[Tallies(tuple(row)) for row in posterior["p"].concentration]]

    model = cv.Model(cv.Multinomial("x", x.sum(axis=1), probabilities[z], plates=OBS))
    stated = Mixture(Labels((0.8, 1.5)), [[Tallies((0.6, 1.0, 1.7))] * 2])
    return Case(model, {"x": x}, stated, [x.tolist()], factors)


def dirichlet_process(rng):
    x = rng.normal(np.where(rng.random(5) < 0.5, -2.0, 2.0), 0.8)

    def factors(posterior):
        # in one dimension a Wishart of nu and B is a Gamma of nu / 2 and B / 2
        q = posterior["theta"]
        return [_of(Numbers, q.mean[:, 0], q.mean_precision, q.df / 2, q.inverse_scale[:, 0, 0] / 2)]

    model = models.dirichlet_process_mixture(
        1, 4, concentration=1.7, prior_mean=0.2, mean_precision=0.3, df=3.0, inverse_scale=1.4
    )
    stated = Mixture(Sticks.prior(1.7, 4), [[Numbers(0.2, 0.3, 1.5, 0.7)] * 4])
    return Case(model, {"x": x[:, None]}, stated, [x], factors)


CASES = {
    "counts": counts,
    "times": times,
    "answers": answers,
    "classes": classes,
    "mixed": mixed,
    "tallies": tallies,
    "dirichlet-process": dirichlet_process,
}


def _numbers(value):
    """Return every number in a factor of the reference, in order."""
    if isinstance(value, (tuple, list)):
        return [number for entry in value for number in _numbers(entry)]
    if hasattr(value, "__dataclass_fields__"):
        return _numbers([getattr(value, name) for name in value.__dataclass_fields__])
    return [value]


@pytest.mark.thinned(15)
@pytest.mark.parametrize("max_iter", [1, 3, 500])
@pytest.mark.parametrize("name", CASES)
def test_elbo_is_below_the_evidence_by_the_divergence(name, max_iter):
    """Log p(x) - ELBO = KL(q || posterior) over all labellings, for the q of any iteration."""
    for seed in range(2):
        case = CASES[name](np.random.default_rng(seed))
        posterior = case.model.fit(case.data, seed=seed, max_iter=max_iter, tol=1e-13)
        evidence = literal.log_evidence(case.stated, case.columns)
        gap = literal.divergence(case.stated, case.columns, *case.read(posterior))
        assert gap > 0
        assert evidence - posterior.elbo == pytest.approx(gap, rel=1e-9, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_fixed_point_is_that_of_the_literal_loop(name):
    """From the same responsibilities, both come to the same factors."""
    case = CASES[name](np.random.default_rng(3))
    n_rows, k = len(case.columns[0]), case.stated.n_components
    start = np.random.default_rng(4).dirichlet(np.full(k, 0.3), n_rows)
    posterior = case.model.fit(case.data, init={"z": start}, tol=1e-15, max_iter=3000)
    q, r = literal.ascend(case.stated, case.columns, start, 3000)
    own, responsibilities = case.read(posterior)
    np.testing.assert_allclose(responsibilities, r, atol=1e-5)
    np.testing.assert_allclose(_numbers(own), _numbers(q), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["counts", "times"])
def test_one_component_is_exact(name):
    """Counts with a Gamma rate are negative binomial, times of known shape beta prime: the ELBO is the evidence.

    Each row is so given those before it, with the parameters that they have led to (SciPy).
    """
    for seed in range(4):
        rng = np.random.default_rng(seed)
        shape, rate, known = rng.gamma(2, 1, 3)
        prior = cv.Gamma("rate", shape, rate)
        if name == "counts":
            x, stated = rng.poisson(4.0, 9), Counts(shape, rate)
            leaf = cv.Poisson("x", prior, plates=OBS)
        else:
            x, stated = rng.gamma(3.0, 2.0, 9), Times(known, shape, rate)
            leaf = cv.Gamma("x", known, prior, plates=OBS)
        posterior = cv.Model(leaf).fit({"x": x})
        evidence, given = 0.0, stated
        for x_n in x:
            if name == "counts":
                evidence += stats.nbinom(given.shape, given.rate / (given.rate + 1)).logpmf(x_n)
            else:
                evidence += stats.betaprime(known, given.shape, scale=given.rate).logpdf(x_n)
            given = given.after([x_n], [1.0])
        assert posterior.elbo == pytest.approx(evidence, rel=1e-11)
        assert stated.log_evidence(x) == pytest.approx(evidence, rel=1e-11)
        exact = stated.after(x, np.ones(9))
        assert posterior["rate"].shape == pytest.approx(exact.shape, rel=1e-13)
        assert posterior["rate"].rate == pytest.approx(exact.rate, rel=1e-13)


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.float32])
def test_small_types_of_counts_do_not_overflow(kind):
    """255! and sums beyond 255 are computed in double precision, whatever the counts are held in."""
    x = np.array([[255, 3], [250, 0], [7, 255]])
    rate = cv.Gamma("rate", 2.0, 1.5)
    poisson = cv.Model(cv.Poisson("x", rate, plates=OBS)).fit({"x": x[:, 0].astype(kind)})
    assert poisson.elbo == pytest.approx(Counts(2.0, 1.5).log_evidence(x[:, 0].tolist()), rel=1e-12)
    leaf = cv.Multinomial("x", x.sum(axis=1), cv.Dirichlet("p", [0.5, 2.0]), plates=OBS)
    multinomial = cv.Model(leaf).fit({"x": x.astype(kind)})
    assert multinomial.elbo == pytest.approx(Tallies((0.5, 2.0)).log_evidence(x.tolist()), rel=1e-12)


@pytest.mark.parametrize("kind", ["labels", "probabilities"])
def test_labels_for_each_column_to_start_from(kind):
    """A label for each row and column: the first update counts them."""
    obs, column, component = cv.Plate("obs"), cv.Plate("column", 2), cv.Plate("component", 3)
    weights = cv.Dirichlet("weights", np.ones(3), plates=column)
    z = cv.Categorical("z", weights, plates=(column, obs))
    mean = cv.Normal("mean", 0.0, 1.0, plates=component)
    model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=(obs, column)))
    labels = np.array([[0, 1], [2, 1], [0, 0], [0, 2]])
    given = labels if kind == "labels" else np.eye(3)[labels]
    x = np.arange(8.0).reshape(4, 2)
    posterior = model.fit({"x": x}, init={"z": given}, max_iter=0)
    np.testing.assert_allclose(posterior["weights"].concentration, [[4, 1, 2], [2, 3, 2]])
    sums = np.array([x[labels == k].sum() for k in range(3)])
    counts = np.bincount(labels.ravel(), minlength=3)
    np.testing.assert_allclose(posterior["mean"].mean, sums / (1 + counts), rtol=1e-12)
    wrong = r"must have shape \(N, 2\) for labels or \(N, 2, 3\) for probabilities; got \(4,\)"
    with pytest.raises(cv.ParameterError, match=wrong):
        model.fit({"x": x}, init={"z": labels[:, 0]})


def test_one_prior_is_that_of_every_column_of_numbers():
    prior, names = (1.0, 0.5, 2.0, 3.0), ["a", "b"]
    data = {"a": [0.1, 2.0, 2.2], "b": [1.0, -1.0, 0.5]}
    told, named = (
        models.mixed_mixture(2, numbers=names, number_prior=given).fit(data, seed=0)
        for given in (prior, dict.fromkeys(names, prior))
    )
    assert told.elbo == named.elbo
    with pytest.raises(cv.ParameterError, match="number_prior has no prior for 'b'; it has a"):
        models.mixed_mixture(2, numbers=names, number_prior={"a": prior})
