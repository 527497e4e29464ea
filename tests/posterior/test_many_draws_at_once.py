"""The log joint density of many draws together is that of each by itself."""

import numpy as np
import pytest

import caviar as cv
from caviar.engine.evaluation import log_joints as module
from caviar.engine.evaluation.at_points import log_joint_at
from caviar.engine.evaluation.log_joints import log_joints

OBS, GROUP = cv.Plate("obs"), cv.Plate("group", 4)
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(30, 2)) + np.where(RNG.random(30) < 0.5, -2.0, 2.0)[:, None]
LABELS = np.append(np.arange(4), RNG.integers(0, 4, 26))


def groups():
    a = cv.Normal("a", 0, cv.Gamma("between", 3, 3), plates=GROUP)
    at = cv.Normal("mu", 0, 0.5) + a[cv.Data("g", plates=OBS)]
    return cv.Model(cv.Normal("x", at, cv.Gamma("tau", 3, 3), plates=OBS)), {"g": LABELS, "x": ROWS[:, 0]}


def logistic():
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2))
    eta = cv.dot(cv.Data("X", plates=OBS), w)
    y = (ROWS[:, 0] > 0.3).astype(float)
    return cv.Model(cv.Bernoulli("y", cv.logistic(eta), plates=OBS)), {"X": ROWS, "y": y}


def mixture():
    return cv.models.gaussian_mixture(2, 2), {"x": ROWS}


def joint_mixture():
    return cv.models.normal_wishart_mixture(2, 2), {"x": ROWS}


def with_missing_rows():
    component = cv.Plate("component", 2)
    mean = cv.Normal("mean", [-2.0, 2.0], 1.0, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", [2.0, 2.0]), plates=OBS)
    x = ROWS[:, 0].copy()
    x[::7] = np.nan
    return cv.Model(cv.Normal("x", mean[z], cv.Gamma("tau", 2, 2), plates=OBS)), {"x": x}


def probit():
    """Local variables that meet the rows otherwise than in one product: draw after draw, as before."""
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2))
    eta = cv.dot(cv.Data("X", plates=OBS), w)
    y = (ROWS[:, 0] > 0.3).astype(float)
    return cv.Model(cv.Bernoulli("y", cv.probit(eta), plates=OBS)), {"X": ROWS, "y": y}


CASES = [groups, logistic, mixture, joint_mixture, with_missing_rows, probit]


def drawn(case, weights=None, n=7):
    model, data = case()
    posterior = model.fit(data, seed=0, sample_weight=weights, uncertainty="mean_field")
    problem, rows = posterior._evaluator.at_points(data, weights)
    values = posterior._shared.drawn(posterior._factors, n, np.random.default_rng(1))
    return problem, values, rows


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_together_as_by_itself(case, weighted):
    weights = np.linspace(0.5, 2.0, 30) if weighted and case is not with_missing_rows else None
    problem, values, rows = drawn(case, weights)
    found = log_joints(problem, values, rows)
    one_by_one = [log_joint_at(problem, module._cut(values, number), rows) for number in range(7)]
    np.testing.assert_allclose(found, one_by_one, rtol=1e-12)
    assert len(set(one_by_one)) == 7


@pytest.mark.parametrize("case", [own for own in CASES if own is not probit])
def test_a_model_of_products_takes_no_pass_a_draw(case, monkeypatch):
    """In portions, too, as of very many draws."""
    problem, values, rows = drawn(case)
    expected = log_joints(problem, values, rows)
    monkeypatch.setattr(module, "log_joint_at", lambda *_: pytest.fail("one draw by itself"))
    monkeypatch.setattr(module, "_MOST_NUMBERS", 1.0)
    np.testing.assert_allclose(log_joints(problem, values, rows), expected, rtol=1e-13)


def test_draws_that_lose_digits_are_evaluated_by_themselves(monkeypatch):
    """A component far from the others and very narrow, among draws of a mixture."""
    problem, values, rows = drawn(mixture)
    mean, precision = np.array(values["mean"]), np.array(values["precision"])
    mean[3, 0], precision[3, 0] = 1e5, 1e6 * np.eye(2)
    moved = {**values, "mean": mean, "precision": precision}
    asked = []

    def noted(problem, values, rows):
        asked.append(values["mean"][0, 0])
        return log_joint_at(problem, values, rows)

    monkeypatch.setattr(module, "log_joint_at", noted)
    found = log_joints(problem, moved, rows)
    assert asked == [1e5]
    assert found[3] == pytest.approx(log_joint_at(problem, module._cut(moved, 3), rows))
