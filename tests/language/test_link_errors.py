"""Links stand in the probability of an observed Bernoulli and nowhere else; the message is given word for word."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caviar as cv

OBS, GROUP = cv.Plate("obs"), cv.Plate("group", 3)
A, W = cv.Normal("a", 0.0, 1.0), cv.MultivariateNormal("w", np.zeros(2), np.eye(2))
Y = cv.Bernoulli("y", cv.probit(A), plates=OBS)
IN_A_MEAN = (
    "a mean is linear in its variables, so probit(Normal('a')) has no update there. For answers 0 and 1 state "
    "Bernoulli('y', probit(Normal('a'))); of shares between 0 and 1 take the log-odds as data"
)
BELONGS = "is the probability of an observed binary outcome, as in Bernoulli('y', probit(Normal('a')))"
KNOWN = (
    "If the probability is known, give it to the Bernoulli itself; a known array in a predictor is a Constant or a "
    "Data"
)
OBSERVED = (
    "its probability is a link, so it can only be observed. An unknown answer has no update, "
    "because the hidden 'y.utility' makes the predictor conjugate only given the answer. Make 'y' a leaf "
    "of the model, or give it a Beta or a logistic(...)."
)


def _y(probability: Any) -> cv.Bernoulli:
    return cv.Bernoulli("y", probability, plates=OBS)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "of a number": (
        lambda: cv.probit(0.3),
        f"probit takes a predictor: a Normal, or sums and products such as probit(dot(X, w) + a); got float. {KNOWN}",
    ),
    "of an array": (
        lambda: cv.logistic(np.zeros(3)),
        f"logistic takes a predictor: a Normal, or sums and products such as logistic(dot(X, w) + a); got "
        f"ndarray. {KNOWN}",
    ),
    "forgotten": (
        lambda: _y(cv.dot(cv.Data("X", plates=OBS), W)),
        "'probability' of Bernoulli 'y' takes no sum or product; use its logistic(...) or probit(...), which is a "
        "probability",
    ),
    "of a link": (
        lambda: cv.probit(cv.logistic(A)),
        "logistic(Normal('a')) is a link, which cannot be a part of a predictor; take the link of the whole sum",
    ),
    "of a Gamma": (
        lambda: _y(cv.probit(cv.Gamma("g", 1, 1))),
        "'probability' of Bernoulli 'y' cannot be the Gamma 'g'. Use a Normal, or a known value. Its log density "
        "needs the expected x, xx there; a Gamma has log_x, x.",
    ),
    "of a vector": (
        lambda: _y(cv.logistic(W)),
        "'probability' of Bernoulli 'y' must be a number, but the MultivariateNormal 'w' is a vector. Use "
        "a Normal, or a known value.",
    ),
    "of a square": (
        lambda: _y(cv.probit(A * A)),
        "'a' appears twice in one product of 'probability' of 'y', whose square would need its fourth "
        "moment. Use two "
        "variables, or square a known column beforehand.",
    ),
    "of a plate that is not chosen from": (
        lambda: _y(cv.probit(cv.Normal("m", 0, 1, plates=GROUP))),
        "'probability' of Bernoulli 'y' is repeated over plate 'group', but 'y' is not; add plate 'group' to 'y', or "
        "choose from it with a Categorical: m[z]",
    ),
    "in a mean": (
        lambda: cv.Normal("x", cv.probit(A), 1.0),
        f"'mean' of Normal 'x' takes no link: {IN_A_MEAN}",
    ),
    "in a mean without a precision": (
        lambda: cv.Normal("x", cv.probit(A)),
        f"'mean' of Normal 'x' takes no link: {IN_A_MEAN}",
    ),
    "in a precision": (
        lambda: cv.Normal("x", 0.0, cv.probit(A)),
        f"'precision' of Normal 'x' takes no link: probit(Normal('a')) {BELONGS}",
    ),
    "in probabilities": (
        lambda: cv.Categorical("c", cv.probit(A)),
        f"'probabilities' of Categorical 'c' takes no link: probit(Normal('a')) {BELONGS}",
    ),
    "of counts": (
        lambda: cv.Multinomial("c", None, cv.stick_breaking(A)),
        "'probabilities' of Multinomial 'c' takes no link: stick_breaking(Normal('a')) is the probabilities "
        "of one label in each row, as in Categorical('y', ...). Counts of K categories are K - 1 binary "
        "counts, each of what the earlier categories have left: Binomial('y', Data('left', plates=(obs, "
        "cut)), logistic(eta), plates=(obs, cut)), with the counts of the first K - 1 categories, left = "
        "total - the counts before, and the predictor eta of stick_breaking(eta). With softmax(eta) give each "
        "category of a count a row of its own, Categorical('y', softmax(eta), plates=obs), and fit with "
        "sample_weight=counts",
    ),
    "times a number 0 or 1": (
        lambda: _y(cv.Bernoulli("there", 0.5) * cv.Beta("p", 1, 1)),
        "'probability' of Bernoulli 'y' takes no sum or product; use its logistic(...) or probit(...), which "
        "is a probability. For a chance that only some rows have, as animals that are there, let a label "
        "choose it: p[z] with z = Categorical('z', Dirichlet('share', [1, 1]), plates=obs) and p = Beta('p', "
        "[1e-6, 1], [1e6, 1], plates=Plate('there', 2)), whose first chance is about 0",
    ),
    "in a Beta": (
        lambda: cv.Beta("b", cv.probit(A), 1.0),
        "'a' of Beta 'b' takes no link: it has no update there. Of shares between 0 and 1 take the log-odds as data, "
        "Normal('log odds', predictor, Gamma('tau', 1, 1))",
    ),
    "in a Constant": (
        lambda: cv.Constant("c", cv.probit(A)),
        f"Constant 'c' takes no link: probit(Normal('a')) {BELONGS}",
    ),
    "in a dot product": (
        lambda: cv.dot(cv.probit(A), W),
        "dot takes two vectors, not the link probit(Normal('a'))",
    ),
    "in a sum": (
        lambda: 1.0 + cv.probit(A),
        "probit(Normal('a')) is a link, which cannot be a part of a predictor; take the link of the whole sum",
    ),
    "in a product": (
        lambda: A * cv.probit(A),
        "probit(Normal('a')) is a link, which cannot be a part of a predictor; take the link of the whole sum",
    ),
    "of a latent answer": (
        lambda: cv.Normal("x", Y, 1.0, plates=OBS),
        f"'mean' of Normal 'x' cannot be the Bernoulli 'y': {OBSERVED}",
    ),
    "of an answer that is the probability of another": (
        lambda: cv.Bernoulli("second", Y, plates=OBS),
        f"'probability' of Bernoulli 'second' cannot be the Bernoulli 'y': {OBSERVED}",
    ),
    "of a hidden variable with another child": (
        lambda: cv.Normal("x", Y.hidden, 1.0, plates=OBS),
        "'mean' of Normal 'x' cannot be 'y.utility', the hidden variable of 'y': state a Normal, and let both depend "
        "on it",
    ),
    "with the name of its hidden variable taken": (
        lambda: cv.Model(_y(cv.probit(cv.Normal("y.utility", 0, 1)))),
        "two parts of the model are both named 'y.utility': Utility('y.utility', plates=(obs)) and "
        "Normal('y.utility'); rename one",
    ),
    "without its answers": (
        lambda: cv.Model(Y).fit({"a": 0.3}),
        "the data lack 'y', an observed variable of the model; pass {'y': array, ...}",
    ),
    "with other answers than yes and no": (
        lambda: cv.Model(Y).fit({"y": [0, 1, 2]}),
        "'y', a Bernoulli, must hold only 0 and 1",
    ),
    "with data for its hidden variable": (
        lambda: cv.Model(Y).fit({"y": [0, 1], "y.utility": [0.1, 0.2]}),
        "'y.utility' is a hidden variable: it is inferred and takes no data; leave it out",
    ),
    "with a point mass for its hidden variable": (
        lambda: cv.Model(cv.Bernoulli("y", cv.logistic(A))).fit({"y": 1}, point=["y.polya_gamma"]),
        "'y.polya_gamma' is the hidden variable of 'y' and cannot be a point mass; leave it out of point=",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_link_where_it_has_no_update_or_no_meaning(name: str) -> None:
    state, message = REFUSED[name]
    with pytest.raises(cv.CaviarError) as caught:
        state()
    assert str(caught.value) == message


def test_statements_read_like_the_story() -> None:
    y = cv.Bernoulli("y", cv.logistic(cv.dot(cv.Data("X", plates=OBS), W) + A), plates=OBS)
    slots = y.describe()["slots"]
    assert slots == {
        "probability": "logistic(dot(Data('X', plates=(obs)), MultivariateNormal('w')) + Normal('a'))"
    }
    assert list(cv.Model(y).variables) == ["y", "y.polya_gamma", "w", "a"]


@pytest.mark.parametrize("wrap", [lambda eta: eta, cv.exp])
def test_a_predictor_in_the_place_of_a_size_is_told_that_the_mean_comes_first(wrap):
    eta = cv.Normal("a", 0, 1) * cv.Data("x", plates=cv.Plate("obs"))
    with pytest.raises(cv.ModelError, match=r"comes first: NegativeBinomial\('y', mean, size\)"):
        cv.NegativeBinomial("y", 2.0, wrap(eta), plates=cv.Plate("obs"))


def test_what_counts_and_chances_are_refused_for_can_be_stated_as_the_messages_say():
    """Three counts of sticks that the binary counts agree with, and the probabilities of animals that are there."""
    rng, obs, cut = np.random.default_rng(0), cv.Plate("obs"), cv.Plate("cut", 2)
    counts = rng.multinomial(100, [0.5, 0.2, 0.3], size=30)
    eta = cv.Normal("eta", 0.0, 0.01, plates=cut)
    left = counts.sum(axis=1, keepdims=True) - np.cumsum(counts, axis=1) + counts
    y = cv.Binomial("y", cv.Data("left", plates=(obs, cut)), cv.logistic(eta), plates=(obs, cut))
    first, second = 1 / (1 + np.exp(-cv.Model(y).fit({"y": counts[:, :2], "left": left[:, :2]}).mean("eta")))
    np.testing.assert_allclose(
        [first, (1 - first) * second], counts[:, :2].sum(axis=0) / counts.sum(), atol=2e-3
    )
    there = rng.random(400) < 0.6
    seen = (rng.random((400, 6)) < 0.5) * there[:, None]
    chance = cv.Beta("p", [1e-6, 1], [1e6, 1], plates=cv.Plate("there", 2))
    z = cv.Categorical("z", cv.Dirichlet("share", [1, 1]), plates=obs)
    occasions = cv.Bernoulli("seen", chance[z], plates=(obs, cv.Plate("occasion", 6)))
    posterior = cv.Model(occasions).fit({"seen": seen * 1}, seed=0, uncertainty="mean_field")
    assert posterior["p"].mean[1] == pytest.approx(0.5, abs=0.04)
    assert posterior["share"].mean[1] == pytest.approx(there.mean(), abs=0.02)
