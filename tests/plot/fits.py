"""Small fits that are drawn by several tests; each is made once.

Where a start is given, it is so that labels have one order, whatever the library's own starts are.
"""

from functools import cache

import numpy as np

import caviar as cv

FAITHFUL = cv.datasets.load_faithful().values
GALAXIES = cv.datasets.load_galaxies().values
PENGUINS = cv.datasets.load_penguins()
MEASURES = PENGUINS.columns[2:6]
VOCABULARY = ["goal", "ball", "team", "vote", "law", "party"]


@cache
def faithful():
    return cv.BayesianGaussianMixture(2, random_state=0).fit(FAITHFUL)


@cache
def galaxies():
    return cv.BayesianGaussianMixture(3, covariance_prior=[[1.3]], random_state=0).fit(GALAXIES)


@cache
def penguins():
    rows = PENGUINS.values[:, 2:6]
    return cv.BayesianGaussianMixture(3, random_state=0, n_init=3).fit(rows)


@cache
def restarted():
    model = cv.models.normal_wishart_mixture(2, 4)
    # from draws of the prior, so that there are many iterations to see
    return model.fit({"x": FAITHFUL}, seed=1, n_restarts=4, init="prior")


@cache
def steps():
    """Return the data of a hidden Markov chain: two sequences."""
    rng = np.random.default_rng(0)
    states = np.repeat([0, 1, 2, 0, 2, 1], [12, 10, 8, 9, 11, 10])
    x = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])[states] + 0.5 * rng.normal(size=(60, 2))
    return {"x": x, "starts": np.arange(60) % 30 == 0}


@cache
def chain():
    model = cv.models.gaussian_hidden_markov_model(2, 3, with_starts=True)
    start = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])
    return model.fit(steps(), init={"mean": start})


@cache
def topics():
    rng = np.random.default_rng(0)
    sport, politics = [0.5, 0.3, 0.2, 0, 0, 0], [0, 0, 0, 0.3, 0.3, 0.4]
    documents = [rng.choice(6, size=40, p=(sport, politics)[number % 2]) for number in range(12)]
    start = np.array([[0.3, 0.3, 0.2, 0.1, 0.05, 0.05], [0.05, 0.05, 0.1, 0.2, 0.3, 0.3]])
    return cv.models.latent_dirichlet_allocation(2, 6).fit({"word": documents}, init={"topics": start})


@cache
def factors():
    rng = np.random.default_rng(0)
    loadings = np.array([[1, 0], [0.8, 0], [0, 1], [0, -0.7], [0, 0]])
    x = rng.normal(size=(150, 2)) @ loadings.T + 0.4 * rng.normal(size=(150, 5))
    return cv.models.factor_analysis(5, 2).fit({"x": x}, seed=0, tol=1e-6)


SLEEP = {name: cv.datasets.load_sleepstudy().column(name) for name in cv.datasets.load_sleepstudy().columns}


@cache
def sleep():
    return cv.MixedModel("reaction ~ days + (days | subject)").fit(SLEEP)


@cache
def coins():
    """Return rows of a logistic regression: a column that matters, and outcomes."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(300), rng.normal(size=300)])
    return {"X": X, "y": (rng.random(300) < 1 / (1 + np.exp(0.5 - 1.5 * X[:, 1]))).astype(float)}


@cache
def logistic():
    return cv.models.logistic_regression(2).fit(coins())


DEATHS = {"deaths": np.repeat([0, 1, 2, 3, 4], [109, 65, 22, 3, 1])}
"""Deaths by the kick of a horse, in 200 corps and years (von Bortkiewicz, 1898)."""


@cache
def deaths():
    return cv.Model(cv.Poisson("deaths", cv.Gamma("rate", 1, 1), plates=cv.Plate("corps"))).fit(DEATHS)


def _trial():
    rng = np.random.default_rng(0)
    n_rows = 240
    dose, arm = rng.uniform(0, 4, n_rows), np.tile(["placebo", "low", "high"], n_rows // 3)
    effect = np.select([arm == "low", arm == "high"], [0.6, 1.6], 0.0)
    age = rng.normal(50, 10, n_rows)
    return {
        "dose": dose,
        "arm": arm,
        "age": age,
        "y": 1 + effect * dose + 0.02 * (age - 50) + 0.7 * rng.normal(size=n_rows),
    }


TRIAL = _trial()


@cache
def trial():
    return cv.MixedModel("y ~ dose * arm + age").fit(TRIAL)


def _bananas():
    """Return rows of two clusters, one of them bent, so that several Gaussians describe it."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, np.pi, 400)
    bent = np.column_stack([3 * np.cos(angle), 3 * np.sin(angle)]) + 0.25 * rng.normal(size=(400, 2))
    return np.concatenate([bent, [8.0, 0.0] + 0.6 * rng.normal(size=(150, 2))])


BANANAS = _bananas()


@cache
def bananas():
    around = np.linspace(0.1, 0.9, 5) * np.pi
    start = np.concatenate([3 * np.column_stack([np.cos(around), np.sin(around)]), [[8.0, 0.0]]])
    return cv.GaussianMixture(6, means_init=start, random_state=0).fit(BANANAS)
