"""A Bernoulli as an index is refused by a message with the label that says the same; that label runs, and is exact."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import norm

import caviar as cv

OBS, GROUP, KIND = cv.Plate("obs"), cv.Plate("group", 2), cv.Plate("kind", 2)
H = cv.Data("h", plates=OBS)
Y, GROUPS = np.array([0.3, 2.1, 1.4]), np.array([0, 1, 1])
EARLIER = np.array([1, 0, 1, 1])


def stated_in(number: cv.Bernoulli) -> str:
    """Return what the message offers in the place of a number as an index."""
    with pytest.raises(cv.ModelError, match=r"is a number, 0 or 1; use ") as error:
        cv.Normal("level", 0.0, 1.0, plates=KIND)[number]
    found = re.search(r"is a number, 0 or 1; use .*?((?:Categorical|Data)\(.*)$", str(error.value))
    assert found is not None
    return found[1]


@pytest.mark.parametrize("odds", [0.3, np.array([0.2, 0.7, 0.6])])
def test_known_probabilities(odds):
    """The label has the probabilities of the number: the evidence is a sum over both values in each row."""
    row = cv.Plate("row", 3)
    names = {"np": np, "row": row, "p": odds, "Categorical": cv.Categorical}
    label = eval(stated_in(cv.Bernoulli("b", odds, plates=row)), names)
    level = cv.Constant("level", [0.0, 2.0], plates=KIND)
    posterior = cv.Model(cv.Normal("y", level[label], 1.0, plates=row)).fit({"y": Y})
    logs = np.log(np.broadcast_arrays(1 - odds, odds, Y)[:2]) + norm([[0.0], [2.0]], 1).logpdf(Y)
    assert_allclose(posterior.elbo, logsumexp(logs, axis=0).sum(), rtol=1e-12)


@pytest.mark.parametrize("plates", [(), GROUP])
def test_a_beta(plates):
    """The Dirichlet has b first: with the same data of answers the same posterior as the Beta."""
    share = cv.Beta("share", 2.0, 1.5, plates=plates)
    chosen = share[H] if plates else share
    number = cv.Bernoulli("b", chosen, plates=OBS)
    names = {"obs": OBS, "group": GROUP, "h": H, "Categorical": cv.Categorical, "Dirichlet": cv.Dirichlet}
    label = eval(stated_in(number), names)
    data = {"b": EARLIER, **({"h": [0, 1, 0, 1]} if plates else {})}
    of_number, of_label = cv.Model(number).fit(data), cv.Model(label).fit(data)
    assert_allclose(of_label.elbo, of_number.elbo, rtol=1e-12)
    assert_allclose(of_label["share"].mean[..., 1], of_number["share"].mean, rtol=1e-12)


def test_an_answer_behind_a_link():
    """Observed, its values are known labels; hidden, it is a label behind a stick that is broken."""
    answer = cv.Bernoulli("b", cv.logistic(cv.Normal("w", 0.0, 1.0)), plates=OBS)
    known, hidden = re.findall(r"(?:Categorical|Data)\(.*?plates=obs\)", stated_in(answer))
    label = eval(known, {"obs": OBS, "Data": cv.Data})
    level = cv.Normal("level", 0.0, 1.0, plates=KIND)
    model = cv.Model(answer, cv.Normal("y", level[label], 1.0, plates=OBS))
    posterior = model.fit({"b": EARLIER[:3], "b_label": EARLIER[:3], "y": Y})
    assert_allclose(posterior["level"].mean, [Y[1] / 2, (Y[0] + Y[2]) / 3], rtol=1e-9)
    eta = cv.Normal("eta", 0.0, 1.0, plates=cv.Plate("question", 1))
    label = eval(
        hidden, {"obs": OBS, "eta": eta, "Categorical": cv.Categorical, "stick_breaking": cv.stick_breaking}
    )
    assert cv.Model(cv.Normal("y", level[label], 1.0, plates=OBS)).fit({"y": Y}).converged
