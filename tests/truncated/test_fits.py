"""Fits with few responsibilities: every schedule, executors, checkpoints, and what is refused."""

import numpy as np
import pytest
from checkpoint.comparing import after, assert_same_bits, broken_off_until_done
from scipy.sparse import csr_array

import caviar as cv
from caviar.engine.rows.truncated import truncated_rows

pytestmark = pytest.mark.filterwarnings("ignore::caviar.CaviarWarning")

K = 15


def table(n: int = 1500, missing: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = 3 * rng.normal(size=(K, 2))[rng.integers(0, K, n)] + 0.6 * rng.normal(size=(n, 2))
    X[rng.random(X.shape) < missing] = np.nan
    return X


MODEL = cv.models.normal_wishart_mixture(2, K)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("schedule", ["batch", cv.Incremental(4)])
@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_the_objective_never_falls_and_ends_with_all_responsibilities(schedule, missing):
    X = table(600 if missing else 1500, missing)
    fit = MODEL.fit({"x": X}, seed=0, schedule=schedule, responsibilities=4, max_iter=25)
    assert np.all(np.diff(fit.elbo_trace) >= -1e-9 * abs(fit.elbo))
    np.testing.assert_allclose(fit.elbo, fit.elbo_at({}, {"x": X}), rtol=1e-11)


def test_a_fit_that_has_settled_is_as_good_as_one_with_all_responsibilities():
    X = table()
    few, every = (MODEL.fit({"x": X}, seed=0, responsibilities=own, tol=1e-7) for own in (5, "all"))
    assert few.converged
    assert few.elbo > every.elbo - 1e-2 * len(X)


def test_all_components_in_each_set_make_the_fit_of_all_responsibilities():
    X, labels = table(), np.random.default_rng(1).integers(0, K, 1500)
    arguments = {"init": {"z": labels}, "accelerate": False, "schedule": "batch", "max_iter": 12}
    few, every = (MODEL.fit({"x": X}, responsibilities=own, **arguments) for own in (K, "all"))
    np.testing.assert_allclose(few.elbo_trace, every.elbo_trace, rtol=1e-11)


def test_small_steps():
    X = table()
    fit = MODEL.fit({"x": X}, seed=0, schedule=cv.Stochastic(500), responsibilities=4, max_iter=8)
    np.testing.assert_allclose(fit.elbo, fit.elbo_at({}, {"x": X}), rtol=1e-11)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("schedule", ["batch", cv.Incremental(4), cv.Stochastic(500)])
def test_a_fit_that_was_broken_off_ends_with_the_same_bits(schedule, tmp_path):
    arguments = {"seed": 0, "schedule": schedule, "responsibilities": 4, "max_iter": 6, "tol": 0.0}

    def fit(**more):
        return MODEL.fit({"x": table()}, **arguments, **more)

    kept = {"checkpoint": tmp_path / "c", "checkpoint_every": 0}
    found, n_breaks = broken_off_until_done(lambda **more: fit(**kept, **more), [{"progress": after(3)}])
    assert n_breaks == 1
    assert_same_bits(found, fit())


def test_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr(truncated_rows, "_BLOCK_ROWS", 256)
    fits = [MODEL.fit({"x": table()}, seed=0, responsibilities=4, max_iter=8, executor=own) for own in (1, 3)]
    assert_same_bits(*fits)


@pytest.mark.slow
def test_components_with_points_of_their_own():
    X = table()
    X[:200] += 1e7
    fit = MODEL.fit({"x": X}, seed=0, responsibilities=4, max_iter=15)
    assert np.all(np.diff(fit.elbo_trace) >= -1e-7 * abs(fit.elbo))
    np.testing.assert_allclose(fit.elbo, fit.elbo_at({}, {"x": X}), rtol=1e-6)


@pytest.mark.parametrize(("asked", "message"), [(0, "whole number from 1"), ("few", "whole number from 1")])
def test_other_numbers_are_refused(asked, message):
    with pytest.raises(cv.ParameterError, match=message):
        MODEL.fit({"x": table(100)}, responsibilities=asked)


def test_models_without_one_label_a_row_are_refused():
    model = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 1), 1, plates=cv.Plate("obs")))
    with pytest.raises(cv.ParameterError, match="one hidden label"):
        model.fit({"x": np.zeros(5)}, responsibilities=3)


def test_labels_known_in_part_are_refused():
    labels = np.full(300, np.nan)
    labels[:10] = 2
    with pytest.raises(cv.ParameterError, match="known in part"):
        MODEL.fit({"x": table(300), "z": labels}, responsibilities=3)


def test_documents_are_refused():
    model = cv.models.latent_dirichlet_allocation(2, 5)
    with pytest.raises(cv.ParameterError, match="documents"):
        model.fit({"word": csr_array(np.ones((4, 5)))}, responsibilities=3)


@pytest.mark.parametrize(
    "estimator",
    [cv.GaussianMixture, cv.BayesianGaussianMixture, cv.MixedMixture],
    ids=lambda own: own.__name__,
)
def test_estimators_hand_the_number_on(estimator, monkeypatch):
    made = []
    plain = truncated_rows.TruncatedRows.of.__func__

    def noted(kind, rows, n, **more):
        made.append(n)
        return plain(kind, rows, n, **more)

    monkeypatch.setattr(truncated_rows.TruncatedRows, "of", classmethod(noted))
    X = table(400)
    for asked in ("auto", 3):
        found = estimator(5, responsibilities=asked, random_state=0, max_iter=5).fit(X)
        assert set(made) == (set() if asked == "auto" else {3})
    assert found.predict_proba(X).shape == (400, 5)


def searches_of(monkeypatch, weight: float) -> list[int]:
    """Return after which passes a fit from random labels searches for components."""
    found: list[int] = []
    search = truncated_rows.TruncatedRows._found

    def noted(rows, supports, block):
        found.append(supports.age)
        return search(rows, supports, block)

    monkeypatch.setattr(truncated_rows.TruncatedRows, "_found", noted)
    labels = np.random.default_rng(1).integers(0, K, 1500)
    arguments = {"init": {"z": labels}, "accelerate": False, "max_iter": 20, "tol": 0.0}
    MODEL.fit({"x": table()}, responsibilities=2, sample_weight=np.full(1500, weight), **arguments)
    return found


def test_searches_follow_each_other_soon_while_sets_fall_behind(monkeypatch):
    """From random labels, where globals move far: more often than after so many passes anyway, for any weight."""
    found = searches_of(monkeypatch, 1.0)
    assert set(found) > {0, 1, 2, 4, 7, 15}
    assert len(found) < 20
    monkeypatch.undo()
    assert 6 < len(searches_of(monkeypatch, 10.0)) < 20
