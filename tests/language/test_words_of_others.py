"""Words of other libraries: known scales and covariances are taken, and what is unknown is told in our words."""

import numpy as np
import pytest

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
    with pytest.raises(AttributeError, match=r"no attribute 'HalfNormal'; state the inverse variance"):
        cv.HalfNormal  # noqa: B018
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
