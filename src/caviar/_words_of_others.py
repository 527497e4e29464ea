"""What to write instead of words that other libraries have and this one lacks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar

from ._errors import ParameterError

T = TypeVar("T")

_A_PRECISION = "state the inverse variance, a precision, as a Gamma: Normal(name, mean, Gamma('tau', 1, 1))"

INSTEAD = {
    "HalfCauchy": _A_PRECISION,
    "HalfStudentT": _A_PRECISION,
    "InverseGamma": _A_PRECISION,
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
    "LKJ": "state the precision matrix as a Wishart",
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
    "OrderedLogistic": "state Categorical(name, stick_breaking(...)), a sequence of binary questions",
    "Laplace": "a heavy-tailed prior is Normal(name, mean, u) with u = Gamma('u', 0.5, 0.5) on the same plate; for "
    "coefficients also SpikeSlab",
    "AsymmetricLaplace": "quantile regression has no update here; for noise with outliers state Normal(name, mean, "
    "u * tau) with u = Gamma('u', 2, 2) on the plate of the values",
    "cloglog": "the links of binary outcomes are logistic and probit",
    "CAR": "state MultivariateNormal(name, np.zeros(n), tau * Constant('neighbours', Q)) with a precision matrix Q",
    "Pareto": "with a known minimum, the logarithms of values over it are Gamma(name, 1, rate)",
    "Weibull": "with a known shape k, the values to the power of k are Gamma(name, 1, rate)",
    "Multinoulli": "its name is Categorical",
    "Discrete": "its name is Categorical",
    "DiscreteUniform": "it is Categorical(name, np.full(K, 1 / K))",
    "GP": "at known times, state MultivariateNormal(name, mean, precision) with the inverse of the kernel matrix",
    "Gaussian": "its name is MultivariateNormal, and of numbers Normal",
    "GaussianARD": "state Normal(name, mean, alpha), of vectors MultivariateNormal(name, mean, diagonal(alpha))",
    "GaussianGamma": "its name is NormalGamma",
    "GaussianWishart": "its name is NormalWishart",
    "GaussianMarkovChain": "its name is LinearGaussianChain",
    "CategoricalMarkovChain": "its name is MarkovChain",
    "SumMultiply": "write sums and products with + and *, and dot(x, w)",
    "Dot": "its name is dot",
    "NormalMeanPrecision": "its name is Normal(name, mean, precision)",
    "NormalMeanVariance": "state Normal(name, mean, sigma=...) for a known variance, and a precision otherwise",
    "MvNormalMeanPrecision": "its name is MultivariateNormal(name, mean, precision)",
    "MvNormalMeanCovariance": "state MultivariateNormal(name, mean, covariance=...) for a known covariance",
    "GammaShapeRate": "its name is Gamma(name, shape, rate)",
    "HMM": "its name is HiddenMarkovModel",
    "GaussianHMM": "its name is HiddenMarkovModel",
    "PoissonHMM": "it is HiddenMarkovModel(n_components, emission='poisson')",
    "CategoricalHMM": "it is HiddenMarkovModel(n_components, emission='categorical')",
    "GMM": "its name is BayesianGaussianMixture, and without priors GaussianMixture",
    "Mclust": "its name is BayesianGaussianMixture, and without priors GaussianMixture",
    "LDA": "its name is LatentDirichletAllocation",
    "sigmoid": "its name is logistic",
    "invlogit": "its name is logistic",
    "expit": "its name is logistic",
    "invprobit": "its name is probit",
}
"""Word -> what to write instead."""

_ATTRIBUTES = {
    "observe": "values are given to the fit: Model(...).fit({'NAME': values})",
    "observed": "values are given to the fit: Model(...).fit({'NAME': values})",
    "update": "Model(...).fit({'NAME': values}) updates every factor until nothing changes",
    "eval": "draws are made by Model(...).simulate(seed, sizes={...}), or posterior['NAME'].sample(1000)",
    "random": "draws are made by Model(...).simulate(seed, sizes={...}), or posterior['NAME'].sample(1000)",
    "sum": "a sum of products is dot(x, w); of a few variables, a + b",
    "dot": "write cv.dot(x, w)",
    "T": "a dot product is cv.dot(x, w), for vectors in any order",
    "shape": "its repetitions are .plates, the length of a vector .dimension",
    "get_moments": "moments are those of the fit: posterior['NAME'].mean",
}
"""Attribute that variables have in other libraries -> what to write instead."""

_OF_FITS = {
    "partial_fit": "BayesianGaussianMixture, GaussianMixture, KnownVarianceMixture, LatentDirichletAllocation and "
    "MixedMixture have it. Call fit with all rows; or state the model, and add rows by posterior.update(data)",
    "labels_": "predict(X) labels any rows",
    "startprob_": "its name is initial_",
    "transmat_": "its name is transition_",
    "covars_": "its name is covariances_",
    "emissionprob_": "its name is emission_probabilities_",
    "lambdas_": "its name is rates_",
    "get_stationary_distribution": "its name is stationary_",
    "coef_": "the effects of a MixedModel are in summary(), fixef() and ranef()",
    "intercept_": "the effects of a MixedModel are in summary(), fixef() and ranef()",
    "aic": "fits with priors are compared by elbo_, or by caviar.compare",
    "bic": "fits with priors are compared by elbo_, or by caviar.compare",
}
"""Attribute that some estimators have here or elsewhere -> what others have in its place."""

_A_SCALE = (
    "a known standard deviation is sigma=; an unknown one is stated by its precision, 1 / sigma**2: "
    "precision=Gamma('tau', 1, 1)"
)
_A_VARIANCE = "give precision=, which is 1 / variance; an unknown one is precision=Gamma('tau', 1, 1)"
_DATA = "values are given to the fit: Model(...).fit({'NAME': values})"

_KEYWORDS: dict[str, dict[str, str]] = {
    "Normal": {
        **dict.fromkeys(("sd", "std", "stddev", "standard_deviation", "scale"), _A_SCALE),
        **dict.fromkeys(("variance", "var", "sigma2"), _A_VARIANCE),
        **dict.fromkeys(("mu", "loc"), "its name is mean="),
        **dict.fromkeys(("tau", "prec"), "its name is precision="),
    },
    "MultivariateNormal": {
        **dict.fromkeys(("mu", "loc"), "its name is mean="),
        **dict.fromkeys(("cov", "covariance_matrix", "Sigma"), "its name is covariance=, or give precision="),
        **dict.fromkeys(("tau", "prec", "precision_matrix"), "its name is precision="),
        **dict.fromkeys(("sd", "sigma", "scale"), "give covariance= of all entries, or precision="),
    },
    "HalfNormal": dict.fromkeys(("sigma", "sd", "scale"), "give precision=, which is 1 / sigma**2"),
    "Exponential": {
        **dict.fromkeys(("lam", "lambda_"), "its name is rate="),
        **dict.fromkeys(("scale", "mean"), "give rate=, which is 1 / scale"),
    },
    "Gamma": {
        "alpha": "its name is shape=",
        "concentration": "its name is shape=",
        "beta": "its name is rate=",
        "scale": "give rate=, which is 1 / scale",
        **dict.fromkeys(("mu", "mean", "sigma", "sd"), "give shape= mean**2 / sd**2 and rate= mean / sd**2"),
    },
    "Beta": {
        **dict.fromkeys(("alpha", "concentration1"), "its name is a="),
        **dict.fromkeys(("beta", "concentration0"), "its name is b="),
    },
    "Dirichlet": dict.fromkeys(("alpha", "a"), "its name is concentration="),
    "Wishart": {
        "nu": "its name is df=",
        **dict.fromkeys(
            ("V", "scale", "scale_matrix"), "give inverse_scale=, which is the inverse of the scale matrix"
        ),
    },
    "Bernoulli": {
        **dict.fromkeys(("p", "probs"), "its name is probability="),
        **dict.fromkeys(("logit_p", "logits"), "write probability=logistic(...)"),
    },
    "Categorical": {
        **dict.fromkeys(("p", "probs"), "its name is probabilities="),
        **dict.fromkeys(("logit_p", "logits"), "write probabilities=softmax(...)"),
    },
    "Binomial": {
        **dict.fromkeys(("n", "total_count"), "its name is trials="),
        **dict.fromkeys(("p", "probs"), "its name is probability="),
    },
    "Poisson": dict.fromkeys(("mu", "lam", "mean"), "its name is rate="),
    "MarkovChain": {
        "inputs": "known inputs choose from a table of transitions, transition=table[Data('input', plates=time)] with "
        "table = Dirichlet('table', [1, 1], plates=(Plate('input', 2), Plate('from', 2)))",
    },
}
"""Name of a distribution -> keyword of another library -> what to write instead."""

_EVERYWHERE = {
    **dict.fromkeys(("observed", "obs", "value"), _DATA),
    **dict.fromkeys(
        ("dims", "plate", "size", "shape", "sample_shape"), "repetitions are plates=Plate('NAME')"
    ),
    "initval": "a start is given to the fit: init={'NAME': value}",
}


def keyword_advice(kind: str, keyword: str) -> str:
    """Return what to write instead of a keyword of another library, to end a message with; empty for other words.

    Examples
    --------
    >>> keyword_advice("Gamma", "beta")
    '; its name is rate='
    """
    found = _KEYWORDS.get(kind, {}).get(keyword) or _EVERYWHERE.get(keyword)
    return f"; {found}" if found else ""


def in_our_words(init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that answers unknown keywords with those it has, and with what to write instead."""
    parameters = inspect.signature(init).parameters
    known, names = [name for name in parameters if name != "self"], frozenset(parameters)
    if any(own.kind is inspect.Parameter.VAR_KEYWORD for own in parameters.values()):
        return init

    @wraps(init)
    def checked(self: Any, *arguments: Any, **keywords: Any) -> None:
        if keywords and not names.issuperset(keywords):
            keyword = next(keyword for keyword in keywords if keyword not in names)
            kind = type(self).__name__
            raise ParameterError(
                f"{kind} has no argument '{keyword}'{keyword_advice(kind, keyword)}. Its arguments are "
                f"{', '.join(known)}"
            )
        init(self, *arguments, **keywords)

    return checked


def advice(name: str) -> str:
    """Return what to write instead of a word, to end a message with; an empty string for other words."""
    return f"; {INSTEAD[name]}" if name in INSTEAD else ""


def estimator_advice(name: str) -> str:
    """Return what an estimator has in the place of an attribute, to end a message with; empty for other words."""
    return f"; {_OF_FITS[name]}" if name in _OF_FITS else ""


class _Instead:
    """An attribute that a class lacks: whoever asks for it is told what to write."""

    def __init__(self, name: str, advice: str) -> None:
        self._name, self._advice = name, advice

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"'{owner.__name__}' object has no attribute '{self._name}'; {self._advice}")


def refusing_words_of_others(kind: type[T]) -> type[T]:
    """Have a class answer attributes of other libraries, which it lacks, with what to write instead.

    ``__getattr__`` would make each look-up of any attribute slower.
    """
    for name, instead in _ATTRIBUTES.items():
        setattr(kind, name, _Instead(name, instead))
    return kind
