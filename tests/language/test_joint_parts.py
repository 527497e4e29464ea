"""The parts of a joint factor are used together or refused; the message says what is where, and what would do."""

import pickle

import numpy as np
import pytest

import caviar as cv

OBS, COMPONENT = cv.Plate("obs"), cv.Plate("component", 2)
TOGETHER = r"Normal\('y', dot\(X, theta\.mean\), theta\.precision\)"


def _coefficients(name="theta", plates=()):
    return cv.MultivariateNormalGamma(name, np.zeros(2), np.eye(2), 1, 1, plates=plates)


def _number(name="theta", plates=()):
    return cv.NormalGamma(name, 0, 1, 1, 1, plates=plates)


def _wishart(plates=()):
    return cv.NormalWishart("theta", np.zeros(2), 1, 3, np.eye(2), plates=plates)


def _dot(theta):
    return cv.dot(cv.Data("X", plates=OBS), theta.mean)


def _y(mean, precision):
    return cv.Normal("y", mean, precision, plates=OBS)


def _z(name="z"):
    return cv.Categorical(name, [0.5, 0.5], plates=OBS)


def _over_two_choices():
    theta = _coefficients(plates=COMPONENT)
    return _y(_dot(theta[_z()]), theta[_z("v")].precision)


def _square():
    theta = _number()
    return _y(theta.mean * theta.mean, theta.precision)


REFUSED = {
    "mean with a number": (
        lambda: _y(_dot(_coefficients()), 1.0),
        "but its precision is not theta.precision.*",
    ),
    "mean with a Gamma": (
        lambda: _y(_dot(_coefficients()), cv.Gamma("tau", 1, 1)),
        "'mean' of Normal 'y' contains theta.mean, but its precision is not theta.precision.*would not be a "
        f"MultivariateNormalGamma.*{TOGETHER}.*independent, state a Normal and a Gamma",
    ),
    "precision with a number": (
        lambda: _y(0.0, _coefficients().precision),
        f"'precision' of Normal 'y' contains theta.precision, but its mean does not contain theta.mean.*{TOGETHER}",
    ),
    "precision with another mean": (
        lambda: _y(cv.Normal("m", 0, 1), _number().precision),
        r"does not contain theta.mean.*Normal\('y', theta.mean, theta.precision\)",
    ),
    "two joint factors": (
        lambda: _y(_dot(_coefficients()), _coefficients("phi").precision),
        "theta.mean and phi.precision, parts of different joint factors",
    ),
    "two joint factors in one mean": (
        lambda: _y(_dot(theta := _coefficients()) + _dot(_coefficients("phi")), theta.precision),
        "theta.mean and phi.mean, parts of different joint factors",
    ),
    "a product of two precisions": (
        lambda: _y(_dot(theta := _coefficients()), theta.precision * _coefficients("phi").precision),
        "theta.mean and phi.precision, parts of different joint factors",
    ),
    "two choices": (_over_two_choices, r"theta\[z\].mean and theta\[v\].precision.*different repetitions"),
    "a square": (_square, "'theta' appears twice in one product"),
    "precision as a mean": (
        lambda: _y(_number().precision, 1.0),
        "'mean' of Normal 'y' cannot contain theta.precision",
    ),
    "mean as a precision": (
        lambda: _y(0.0, 2.0 * _number().mean),
        "'precision' of Normal 'y' cannot contain theta.mean",
    ),
    "a vector as a number": (
        lambda: _y(_coefficients().mean, 1.0),
        f"'mean' of Normal 'y' cannot be theta.mean.*{TOGETHER}",
    ),
    "a vector in a sum": (
        lambda: _y(1.0 + (theta := _coefficients()).mean, theta.precision),
        "'mean' of Normal 'y' cannot contain theta.mean",
    ),
    "a number in a dot product": (
        lambda: _y(_dot(theta := _number()), theta.precision),
        "'mean' of Normal 'y' cannot contain theta.mean",
    ),
    "the mean of a matrix": (
        lambda: _y(_dot(_wishart()), 1.0),
        r"cannot contain theta.mean.*MultivariateNormal\('x', theta.mean, theta.precision\), and nowhere else",
    ),
    "a matrix with another mean": (
        lambda: cv.MultivariateNormal("x", np.zeros(2), _wishart().precision),
        "'precision' of MultivariateNormal 'x' cannot be theta.precision",
    ),
    "a product with a matrix": (
        lambda: cv.MultivariateNormal("x", (t := _wishart()).mean, 2.0 * t.precision),
        "'mean' of MultivariateNormal 'x' cannot be theta.mean.*together",
    ),
    "a vector of a joint factor as the mean of a vector": (
        lambda: cv.MultivariateNormal("x", _coefficients().mean, np.eye(2)),
        f"'mean' of MultivariateNormal 'x' cannot be theta.mean.*{TOGETHER}",
    ),
    "precision as a rate": (
        lambda: cv.Gamma("g", 1, _number().precision),
        "'rate' of Gamma 'g' contains theta.precision, but its mean does not contain theta.mean",
    ),
    "precision as the rate of a count": (
        lambda: cv.Poisson("n", _number().precision),
        "'rate' of Poisson 'n' cannot be theta.precision",
    ),
    "the whole vector": (
        lambda: cv.Normal("y", _coefficients(), plates=OBS),
        "'mean' of Normal 'y' must be a number, but the MultivariateNormalGamma 'theta' is a vector",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_parts_apart_are_refused(case):
    state, text = REFUSED[case]
    with pytest.raises(cv.ConjugacyError, match=text):
        state()


def test_other_variables_have_no_parts():
    chosen = cv.Normal("m", 0, 1, plates=COMPONENT)[_z()]
    with pytest.raises(cv.ModelError, match=r"m\[z\].precision does not exist: the Normal 'm' has no parts"):
        _ = chosen.precision


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            (np.zeros(2), 0, 1, 1),
            "zero, which states the flat prior, density 1, together with shape=0, rate=0",
        ),
        (
            (np.zeros(2), np.eye(2), 0, 0),
            "'shape' .* must be positive; 1 - D/2 is possible only with mean_precision=0",
        ),
        ((np.zeros(2), np.eye(2), -1, 1), "must be positive and finite"),
        ((np.zeros(2), 0.5, 1, 1), r"must be a 2 x 2 matrix.*write 0.5 \* np.eye\(2\)"),
    ],
)
def test_impossible_priors_of_a_vector_are_refused(arguments, text):
    with pytest.raises(cv.CaviarError, match=text):
        cv.NormalGamma("theta", *arguments)


def test_the_shape_of_the_mean_tells_a_vector_from_repeated_numbers():
    pair = cv.Plate("pair", 2)
    assert type(cv.NormalGamma("theta", np.zeros(2), 1, 1, 1, plates=pair)) is cv.NormalGamma
    for arguments in [(np.zeros(2), np.eye(2)), (0, np.eye(2)), (np.zeros((2, 3)), np.eye(3))]:
        vector = cv.NormalGamma("theta", *arguments, 1, 1, plates=pair if np.ndim(arguments[0]) == 2 else ())
        assert type(vector) is cv.MultivariateNormalGamma
        assert vector.dimension == len(arguments[1])
    scale = cv.diagonal(cv.Gamma("alpha", 1, 1, plates=pair))
    assert cv.NormalGamma("theta", mean=0, mean_precision=scale, shape=1, rate=1).dimension == 2


def test_a_model_with_parts_can_be_pickled():
    theta = _coefficients()
    model = cv.Model(_y(_dot(theta), theta.precision))
    data = {"X": np.eye(2), "y": [1.0, 2.0]}
    assert pickle.loads(pickle.dumps(model)).fit(data).elbo == model.fit(data).elbo
