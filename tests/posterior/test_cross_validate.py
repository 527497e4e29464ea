"""Cross-validation: the posterior of each fold is that of a fit to the other rows."""

import numpy as np
import pytest

import caviar as cv

OBS = cv.Plate("obs")


def conjugate():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    w = cv.MultivariateNormal("w", np.zeros(3), np.eye(3))
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), w), 2.0, plates=OBS))
    return model, {"X": X, "y": X @ [1.0, -1.0, 0.5] + rng.normal(0, 0.7, 40)}


def test_each_row_is_left_out_once():
    model, data = conjugate()
    folds = [rows for rows, _ in model.fit(data).cross_validate(data, n_folds=7)]
    assert sorted(np.concatenate(folds)) == list(range(40))
    assert {len(rows) for rows in folds} == {5, 6}
    again = [rows for rows, _ in model.fit(data).cross_validate(data, n_folds=7)]
    other = [rows for rows, _ in model.fit(data).cross_validate(data, n_folds=7, seed=1)]
    assert all(np.array_equal(*pair) for pair in zip(folds, again, strict=True))
    assert not all(np.array_equal(*pair) for pair in zip(folds, other, strict=True))


def test_leave_one_out_is_that_of_normal_equations():
    model, data = conjugate()
    for rows, posterior in model.fit(data).cross_validate(data, n_folds=40):
        X, y = np.delete(data["X"], rows, axis=0), np.delete(data["y"], rows)
        precision = np.eye(3) + 2 * X.T @ X
        np.testing.assert_allclose(posterior["w"].mean, np.linalg.solve(precision, 2 * X.T @ y), rtol=1e-9)
        np.testing.assert_allclose(posterior["w"].covariance, np.linalg.inv(precision), rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_mixture_ends_where_a_fit_to_the_others_does(weighted):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(m, 1, (n, 2)) for m, n in ((-3, 30), (3, 50))])
    weight = np.linspace(0.5, 2, 80) if weighted else None
    model = cv.models.gaussian_mixture(2, 2)
    posterior = model.fit({"x": x}, seed=0, sample_weight=weight)
    for rows, other in posterior.cross_validate({"x": x}, n_folds=4, sample_weight=weight):
        kept = np.setdiff1d(np.arange(80), rows)
        alone = model.fit({"x": x[kept]}, seed=0, sample_weight=None if weight is None else weight[kept])
        assert other.elbo == pytest.approx(alone.elbo, abs=1e-3)
        assert other.converged


def test_points_priors_and_missing_entries_stay_what_they_are():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    x[::7, 0] = np.nan
    model = cv.models.diagonal_mixture(2, 1)
    first = model.fit({"x": x[:30]})
    later = first.update({"x": x[30:]})
    for rows, other in later.cross_validate({"x": x[30:]}, n_folds=3):
        expected = first.update({"x": np.delete(x[30:], rows, axis=0)})
        assert other.elbo == pytest.approx(expected.elbo, rel=1e-8)
    tau = cv.Gamma("tau", 2, 2)
    noisy = cv.Model(cv.Normal("y", cv.Normal("mean", 0, 1), tau, plates=OBS))
    posterior = noisy.fit({"y": x[:, 1]}, point=["tau"])
    for _, other in posterior.cross_validate({"y": x[:, 1]}, n_folds=3):
        assert hasattr(other["tau"], "value")


def test_what_cannot_be_left_out_is_refused():
    model, data = conjugate()
    posterior = model.fit(data)
    with pytest.raises(cv.DataError, match="expected the data of the fit; q has another ELBO"):
        next(posterior.cross_validate({name: values[:20] for name, values in data.items()}))
    with pytest.raises(cv.ParameterError, match="n_folds must be between 2 and the number of rows, 40"):
        next(posterior.cross_validate(data, n_folds=41))
    with pytest.raises(cv.ParameterError, match="n_folds must be"):
        next(posterior.cross_validate(data, n_folds=0))
    x = {"x": np.random.default_rng(0).normal(size=(30, 2))}
    chain = cv.models.gaussian_hidden_markov_model(2, 2).fit(x, seed=0)
    with pytest.raises(cv.ModelError, match="the rows of 's' depend on their neighbours"):
        next(chain.cross_validate(x))
