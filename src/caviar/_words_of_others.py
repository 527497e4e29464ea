"""What to write instead of words that other libraries have and this one lacks."""

from __future__ import annotations

_A_PRECISION = "state the inverse variance, a precision, as a Gamma: Normal(name, mean, Gamma('tau', 1, 1))"

INSTEAD = {
    "HalfNormal": _A_PRECISION,
    "HalfCauchy": _A_PRECISION,
    "HalfStudentT": _A_PRECISION,
    "InverseGamma": _A_PRECISION,
    "Exponential": "it is Gamma(name, 1, rate)",
    "ChiSquared": "it is Gamma(name, df / 2, 0.5)",
    "LogNormal": "take logarithms of the values, and state a Normal",
    "Lognormal": "take logarithms of the values, and state a Normal",
    "StudentT": "state Normal(name, mean, u * tau) with u = Gamma('u', nu / 2, nu / 2) on the plate of the values",
    "Cauchy": "state Normal(name, mean, u * tau) with u = Gamma('u', 0.5, 0.5) on the plate of the values",
    "Uniform": "a number between 0 and 1 is Beta(name, 1, 1); for a location state a broad Normal",
    "Flat": "the flat prior is Normal(name, 0, 0)",
    "MvNormal": "its name is MultivariateNormal, with precision= or a known covariance=",
    "LKJCholeskyCov": "state the precision matrix as a Wishart",
    "LKJCorr": "state the precision matrix as a Wishart",
    "InverseWishart": "state the precision matrix, its inverse, as a Wishart",
    "BetaBinomial": "state Binomial(name, trials, p) with p = Beta('p', a, b) on the same plate",
    "DirichletMultinomial": "state Multinomial(name, trials, p) with p = Dirichlet('p', a) on the same plate",
    "Geometric": "it is NegativeBinomial with size 1, which counts the failures before the first success",
    "ZeroInflatedPoisson": "state Poisson(name, rate[z]) with a Categorical z, and a tiny known rate for one category",
    "Mixture": "choose the parameters by a Categorical z: Normal(name, mean[z], precision[z])",
    "NormalMixture": "choose the parameters by a Categorical z: Normal(name, mean[z], precision[z])",
    "GaussianRandomWalk": "state a LinearGaussianChain",
    "AR": "state a Normal whose mean is dot(X, w), with the values before it as the columns of X",
    "Deterministic": "what follows from other variables is computed from draws: posterior['name'].sample(1000)",
    "OrderedLogistic": "state Categorical(name, stick_breaking(...)), a sequence of yes-or-no questions",
    "sigmoid": "its name is logistic",
    "invlogit": "its name is logistic",
    "expit": "its name is logistic",
    "invprobit": "its name is probit",
}
"""Word -> what to write instead."""


def advice(name: str) -> str:
    """Return what to write instead of a word, to end a message with; an empty string for other words."""
    return f"; {INSTEAD[name]}" if name in INSTEAD else ""
