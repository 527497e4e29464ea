"""A statement without a conditionally conjugate update is refused; the message names who, where, and what would do."""

import dataclasses

import numpy as np
import pytest

import caviar as cv
from caviar.language import prove_conjugate

OBS, COMPONENT = cv.Plate("obs"), cv.Plate("component", 3)


def _gamma(name="tau"):
    return cv.Gamma(name, 1, 1)


def _normal(name="m"):
    return cv.Normal(name, 0, 1)


def _vector():
    return cv.MultivariateNormal("mu", np.zeros(2), np.eye(2))


def _wishart():
    return cv.Wishart("W", 3, np.eye(2))


def _normal_wishart():
    return cv.NormalWishart("theta", np.zeros(2), 1, 3, np.eye(2))


def _normal_gamma():
    return cv.NormalGamma("theta", 0, 1, 1, 1)


WRONG_FAMILY = {
    "a latent count as the mean of a number": (
        lambda: cv.Normal("x", cv.Poisson("visits", _gamma()), 1.0),
        ["'mean' of Normal 'x'", "Poisson 'visits'", "can only be observed", "base measure"],
    ),
    "a latent count as the mean of a vector, chosen by a label": (
        lambda: cv.MultivariateNormal(
            "x",
            cv.Poisson("visits", 2.0, plates=COMPONENT)[cv.Categorical("z", np.ones(3) / 3, plates=OBS)],
            np.eye(2),
            plates=OBS,
        ),
        ["'mean' of MultivariateNormal 'x'", "Poisson 'visits'", "can only be observed"],
    ),
    "latent counts as a mean": (
        lambda: cv.MultivariateNormal("x", cv.Multinomial("votes", 5, [0.5, 0.5]), np.eye(2)),
        ["'mean' of MultivariateNormal 'x'", "Multinomial 'votes'", "can only be observed"],
    ),
    "a Normal as the rate of a count": (
        lambda: cv.Poisson("x", _normal()),
        ["'rate' of Poisson 'x'", "Normal 'm'", "Use a Gamma, or a known value"],
    ),
    "a Beta as the concentration of a broken stick": (
        lambda: cv.StickBreaking("w", cv.Beta("b", 1, 1), 3),
        ["'concentration' of StickBreaking 'w'", "Beta 'b'", "Use a Gamma, or a known value"],
    ),
    "a Gamma as mean": (
        lambda: cv.Normal("x", _gamma(), 1.0),
        ["'mean' of Normal 'x'", "Gamma 'tau'", "Use a Normal, or a known value"],
    ),
    "a Normal as precision": (
        lambda: cv.Normal("x", 0.0, _normal()),
        ["'precision' of Normal 'x'", "Normal 'm'", "Use a Gamma, or a known value"],
    ),
    "a Wishart as the precision of a number": (
        lambda: cv.Normal("x", 0.0, _wishart()),
        ["'precision' of Normal 'x'", "Wishart 'W'", "Use a Gamma"],
    ),
    "a Gamma as the precision of a vector": (
        lambda: cv.MultivariateNormal("x", np.zeros(2), _gamma()),
        ["'precision' of MultivariateNormal 'x'", "Gamma 'tau'", "Use a Wishart, or a known value"],
    ),
    "a Normal as the mean of a vector": (
        lambda: cv.MultivariateNormal("x", _normal(), np.eye(2)),
        [
            "'mean' of MultivariateNormal 'x' must be a vector",
            "Normal 'm' is a number",
            "Use a MultivariateNormal",
        ],
    ),
    "a vector as the mean of a number": (
        lambda: cv.Normal("x", _vector(), 1.0),
        ["'mean' of Normal 'x' must be a number", "MultivariateNormal 'mu' is a vector", "Use a Normal"],
    ),
    "a Beta as probabilities": (
        lambda: cv.Categorical("z", cv.Beta("b", 1, 1)),
        [
            "'probabilities' of Categorical 'z'",
            "Beta 'b'",
            "Use a Dirichlet or a StickBreaking, or a known value",
        ],
    ),
    "a Dirichlet as one probability": (
        lambda: cv.Bernoulli("y", cv.Dirichlet("p", np.ones(2))),
        ["'probability' of Bernoulli 'y'", "Dirichlet 'p'", "Use a Beta, or a known value"],
    ),
    "a random shape": (
        lambda: cv.MultivariateNormalGamma("x", np.zeros(2), np.eye(2), _gamma("a"), 1.0),
        ["'shape' of MultivariateNormalGamma 'x' must be known: no family is conjugate here"],
    ),
    "a random concentration": (
        lambda: cv.Dirichlet("p", cv.Dirichlet("a", np.ones(3))),
        [
            "'concentration' of Dirichlet 'p'",
            "Dirichlet 'a'",
            "Give a number, an array, a Gamma for each category",
        ],
    ),
    "a Normal as a number of a Beta": (
        lambda: cv.Beta("p", _normal("a"), 2.0),
        ["'a' of Beta 'p'", "Normal 'a'", "Use a Gamma, or a known value"],
    ),
    "a random inverse scale of the wrong kind": (
        lambda: cv.Wishart("L", 3, _vector()),
        ["'inverse_scale' of Wishart 'L'", "MultivariateNormal 'mu'", "Use a Wishart"],
    ),
    "a joint factor beside a precision": (
        lambda: cv.MultivariateNormal("x", _normal_wishart(), np.eye(2)),
        [
            "'mean' of MultivariateNormal 'x'",
            "NormalWishart",
            "includes the precision",
            "leave precision= out",
        ],
    ),
    "the joint factor of vectors for a number": (
        lambda: cv.Normal("x", _normal_wishart()),
        ["'precision' of Normal 'x' is missing", "'theta' is a NormalWishart", "a NormalGamma as mean"],
    ),
    "the joint factor of numbers for a vector": (
        lambda: cv.MultivariateNormal("x", _normal_gamma()),
        ["'precision' of MultivariateNormal 'x' is missing", "a NormalWishart as mean"],
    ),
    "a forgotten precision": (
        lambda: cv.Normal("x", _normal()),
        ["'precision' of Normal 'x' is missing", "'m' is a Normal", "Give a precision"],
    ),
    "a forgotten precision chosen by a label": (
        lambda: cv.Normal(
            "x",
            cv.Normal("m", 0, 1, plates=COMPONENT)[cv.Categorical("z", np.full(3, 1 / 3), plates=OBS)],
            plates=OBS,
        ),
        ["'precision' of Normal 'x' is missing"],
    ),
}


@pytest.mark.parametrize("kind", WRONG_FAMILY)
def test_wrong_family_is_refused(kind):
    """The message says which slot of which variable, what stands there, and which family would do."""
    state, facts = WRONG_FAMILY[kind]
    with pytest.raises(cv.ConjugacyError) as caught:
        state()
    for fact in facts:
        assert fact in str(caught.value)


def test_wrong_family_names_the_term():
    """The message names the term of the log density that the variable would leave its family by."""
    with pytest.raises(cv.ConjugacyError) as caught:
        cv.Normal("x", 0.0, _normal())
    assert "in its term 0.5 precision.log_x" in str(caught.value)
    assert "needs the expected log_x, x there; a Normal has x, xx" in str(caught.value)


def test_variable_in_several_terms_is_fine():
    """A Gamma as precision and as rate of a joint factor, or a Wishart of both mean and data, stand in two terms."""
    tau, scale = _gamma("t"), _wishart()
    cv.Model(cv.Normal("x", cv.NormalGamma("theta", 0, tau, 1, tau), plates=OBS))
    cv.Model(cv.MultivariateNormal("x", cv.MultivariateNormal("mean", np.zeros(2), scale), scale, plates=OBS))


def test_variable_twice_in_a_term_is_refused():
    """A variable that appears twice in one product leaves its family: the message names it, the term and the owner.

    No two slots of a distribution take the same family today, so the statement is made by hand.
    """
    x = cv.Normal("x", _normal("m"), cv.Data("noise"))
    x.slots["mean"] = dataclasses.replace(x.slots["mean"], expression=x)
    with pytest.raises(cv.ConjugacyError) as caught:
        prove_conjugate([x])
    for fact in (
        "'x' appears twice in the term 1",
        "of Normal 'x'",
        "Use two variables, or one joint factor",
    ):
        assert fact in str(caught.value)


@pytest.mark.parametrize("known", [0.5, cv.Constant("m", 0.5), cv.Data("m", plates=OBS)], ids=str)
def test_a_known_mean_needs_a_precision(known):
    with pytest.raises(cv.ModelError, match="'precision' of Normal 'x' is missing; only a joint factor"):
        cv.Normal("x", known, plates=OBS)
