"""Words of other libraries: known scales and covariances are taken, and what is unknown is told in our words."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import caviar as cv

OBS = cv.Plate("obs")


def test_known_scales_are_precisions() -> None:
    data = {"x": np.array([0.3, -1.0, 2.0])}
    known = cv.Model(cv.Normal("x", cv.Normal("m", 0, sigma=10.0), sigma=0.5, plates=OBS)).fit(data)
    twin = cv.Model(cv.Normal("x", cv.Normal("m", 0, 0.01), 4.0, plates=OBS)).fit(data)
    assert known.elbo == pytest.approx(twin.elbo, rel=1e-14)
    covariance = np.array([[2.0, 0.3], [0.3 + 1e-9, 1.0]])
    data = {"x": np.random.default_rng(0).normal(size=(4, 2))}
    mean = cv.MultivariateNormal("m", np.zeros(2), covariance=100 * np.eye(2))
    known = cv.Model(cv.MultivariateNormal("x", mean, covariance=covariance, plates=OBS)).fit(data)
    mean = cv.MultivariateNormal("m", np.zeros(2), np.eye(2) / 100)
    precision = np.linalg.inv((covariance + covariance.T) / 2)
    twin = cv.Model(cv.MultivariateNormal("x", mean, (precision + precision.T) / 2, plates=OBS)).fit(data)
    assert known.elbo == pytest.approx(twin.elbo, rel=1e-12)


def test_a_covariance_may_be_nearly_singular() -> None:
    """The covariance of a smooth function at near places: its inverse is symmetric only to a few digits."""
    at = np.random.default_rng(0).normal(size=200)
    kernel = 25 * np.exp(-(np.subtract.outer(at, at) ** 2) / 0.3) + 1e-6 * np.eye(200)
    f = cv.MultivariateNormal("f", np.zeros(200), covariance=kernel)
    y = np.random.default_rng(1).multivariate_normal(np.zeros(200), kernel) + 0.1 * at
    mean = cv.dot(cv.Data("at", plates=OBS), f)
    found = cv.Model(cv.Normal("y", mean, 100.0, plates=OBS)).fit({"y": y, "at": np.eye(200)}).elbo
    exact = multivariate_normal(np.zeros(200), kernel + np.eye(200) / 100).logpdf(y)
    assert found == pytest.approx(exact, abs=1e-4)


def test_unknown_scales_are_refused_with_a_statement_that_would_do() -> None:
    s, m = cv.Gamma("s", 1, 1), np.zeros(2)
    for state, message in (
        (lambda: cv.Normal("x", 0, sigma=s), r"precision=Gamma\('tau', 1, 1\)"),
        (lambda: cv.Normal("x", 0, 1, sigma=1), "give one of them"),
        (lambda: cv.Normal("x", 0, sigma=0), "must be positive"),
        (
            lambda: cv.MultivariateNormal("x", m, covariance=cv.Wishart("w", 3, np.eye(2))),
            "precision=Wishart",
        ),
        (
            lambda: cv.MultivariateNormal("x", m, covariance=[[1, 0.5], [0.2, 1]]),
            "symmetric; two mirrored entries differ by 0.3",
        ),
        (lambda: cv.MultivariateNormal("x", m, covariance=[[1, 2], [2, 1]]), "positive definite"),
        (lambda: cv.MultivariateNormal("x", m, covariance=2.0), "square matrix"),
    ):
        with pytest.raises(cv.ModelError, match=message):
            state()


def test_words_of_others_are_answered_with_ours() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'HalfCauchy'; state the inverse variance"):
        cv.HalfCauchy  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'GaussianHMM'; its name is HiddenMarkovModel"):
        cv.GaussianHMM  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'sigmoid'; its name is logistic"):
        cv.sigmoid  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'Nonsense'$"):
        cv.Nonsense  # noqa: B018


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            lambda: cv.Normal("x", 0, sd=2),
            r"Normal has no argument 'sd'; a known standard deviation is sigma=",
        ),
        (lambda: cv.Normal("x", mu=0, sigma=1), "its name is mean="),
        (lambda: cv.Normal("x", 0, variance=4), "precision=, which is 1 / variance"),
        (lambda: cv.Gamma("g", alpha=2, beta=3), "its name is shape="),
        (lambda: cv.Gamma("g", 2, scale=3), "rate=, which is 1 / scale"),
        (lambda: cv.Wishart("w", nu=3, V=np.eye(2)), "its name is df="),
        (lambda: cv.Poisson("y", 2.0, observed=[1]), r"values are given to the fit"),
        (lambda: cv.Normal("x", 0, 1, dims="obs"), "repetitions are plates="),
        (
            lambda: cv.Normal("x", 0, 1, colour="red"),
            "'colour'. Its arguments are name, mean, precision",
        ),
    ],
)
def test_keywords_of_others_are_answered_with_ours(state, message) -> None:
    with pytest.raises(cv.ParameterError, match=message):
        state()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (lambda a: cv.Bernoulli("y", a, plates=OBS), r"For a regression write logistic\(a\) or probit\(a\)"),
        (lambda a: cv.Poisson("y", a, plates=OBS), r"state NegativeBinomial\(name, exp\(a\), size\)"),
    ],
)
def test_a_real_number_as_a_probability_or_rate_is_answered_with_its_link(state, message) -> None:
    with pytest.raises(cv.ConjugacyError, match=message):
        state(cv.Normal("a", 0, 1))
    # a hidden parameter with a wrong parent is no regression
    with pytest.raises(cv.ConjugacyError) as caught:
        cv.Gamma("g", 2.0, cv.Normal("a", 0, 1))
    assert "regression" not in str(caught.value)


def test_constructors_keep_their_signatures() -> None:
    import inspect

    assert list(inspect.signature(cv.Normal).parameters) == ["name", "mean", "precision", "sigma", "plates"]


A, P, V = cv.Normal("a", 0, 1), cv.Beta("p", 1, 1), cv.MultivariateNormal("v", np.zeros(3), np.eye(3))
G = cv.Gamma("g", 1, 1)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (lambda: np.exp(A), r"exp of Normal\('a'\) .*NegativeBinomial\(name, cv.exp\(a\), size\)"),
        (lambda: np.log(G), r"log of Gamma\('g'\) .*logarithms of the values"),
        (lambda: np.sqrt(G), r"sqrt of Gamma\('g'\) .*precision=Gamma\('tau', 1, 1\)"),
        (lambda: np.tanh(A), r"tanh of .*logistic\(a\)"),
        (lambda: np.sin(A), r"sin of .*sums and products"),
        (lambda: np.maximum(A, 0.0), "maximum of .*CensoredNormal"),
        (lambda: np.sum(V), r"sum of MultivariateNormal\('v'\) .*dot\(v, w\)"),
        (lambda: np.abs(A), "absolute value"),
        (lambda: np.ones(3) < A, "cannot be compared"),
        (lambda: np.ones(3) @ V, r"write a dot product as cv\.dot"),
        (lambda: np.ones(3) / A, "nothing can be divided by"),
        (lambda: np.float64(2.0) ** A, "power of .*no update"),
        (lambda: np.dot(np.ones(3), V), r"'v'\) is a random variable without a value"),
        (lambda: np.where(A, 1.0, 2.0), "is a random variable"),
        (lambda: np.linalg.inv(cv.Wishart("w", 3, np.eye(2))), "is a random variable"),
        (lambda: math.exp(A), "is a random variable"),
        (lambda: round(A), "round of"),
        (lambda: np.array([A, A]), "one with a plate"),
        (lambda: A[0], "State a single repetition"),
        (
            lambda: cv.MultivariateNormal("y", [A, cv.Normal("b", 0, 1)], np.eye(2)),
            r"'mean' of MultivariateNormal 'y' .*plates=Plate\('entry', 2\)",
        ),
        (
            lambda: cv.Categorical("y", [P, 1 - P], plates=OBS),
            "'probabilities' of Categorical 'y' .*a Dirichlet",
        ),
        (lambda: cv.Bernoulli("y", 1 - P, plates=OBS), "model the other outcome"),
        (
            lambda: cv.MultivariateNormal("y", cv.dot(np.ones((4, 3)), V), np.eye(4), plates=OBS),
            r"'mean' of .* an array of shape \(4, 3\) .*Normal\('y', dot\(Data\('X', plates=row\), v\)",
        ),
    ],
)
def test_functions_of_numpy_are_refused_with_a_statement_that_would_do(state, message) -> None:
    with pytest.raises(cv.ModelError, match=message):
        state()


def test_operators_behind_arrays_and_numbers_of_numpy_are_ours() -> None:
    assert repr(np.float64(2.0) * A) == repr(2.0 * A)
    assert repr(np.array(2.0) - A) == repr(2.0 - A)
    assert repr(np.negative(A)) == repr(-A)
    assert repr(np.add(A, 1.0)) == repr(A + 1.0)
    with pytest.raises(cv.ModelError, match="an array in a predictor needs a name"):
        np.ones(3) + A


@pytest.mark.parametrize(
    ("name", "message"), [("observe", r"fit\(\{'NAME'"), ("T", r"cv\.dot"), ("nonsense", "$")]
)
def test_attributes_of_other_libraries_are_answered(name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=f"'Normal' object has no attribute '{name}'.*{message}"):
        getattr(A, name)
