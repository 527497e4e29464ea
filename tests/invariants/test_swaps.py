"""Swaps of components: they raise the ELBO, are the same bits after an interruption, and are refused elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from thinning import amount

import caviar as cv
from caviar.engine.ascent.schedules.moves.halves import halves
from caviar.engine.ascent.schedules.moves.swaps import Mixture
from caviar.engine.design.features import FeatureTable
from caviar.engine.rows.row_map import RowMap


def _model(n_components: int = 8) -> cv.Model:
    return cv.models.normal_wishart_mixture(2, n_components)


def _data() -> np.ndarray:
    rng = np.random.default_rng(3)
    centres = np.array([[0, 0], [9, 0], [0, 9], [9, 9], [18, 0], [18, 9], [0, 18], [9, 18]], dtype=float)
    return (centres[:, None] + rng.normal(size=(8, 60, 2))).reshape(-1, 2)


def _poor() -> np.ndarray:
    """Return labels with two components in one cluster, and one component in two."""
    labels = np.repeat(np.arange(8), 60)
    labels[labels == 1] = 0
    labels[-60:-30] = 1
    return labels


def _fit(**arguments: Any) -> cv.Posterior:
    return _model().fit({"x": _data()}, init={"z": _poor()}, seed=0, uncertainty="mean_field", **arguments)


@pytest.mark.slow
def test_a_component_in_two_clusters_and_two_in_one_change_places():
    before, after = _fit(), _fit(swaps=True)
    truth = _model().fit({"x": _data()}, init={"z": np.repeat(np.arange(8), 60)}, uncertainty="mean_field")
    assert before.elbo < truth.elbo - 50
    assert after.elbo == pytest.approx(truth.elbo, abs=0.1)
    assert (np.diff(after.elbo_trace) >= -1e-9 * abs(after.elbo)).all()
    assert after.elbo == pytest.approx(after.elbo_at({}, {"x": _data()}), rel=1e-12)


@pytest.mark.slow
def test_an_interrupted_fit_goes_on_to_the_same_bits(tmp_path):
    class BrokenOffError(Exception):
        pass

    def break_off(told: Any) -> None:
        if told.iteration == 2:
            raise BrokenOffError

    kept = {"swaps": True, "checkpoint": tmp_path / "c", "checkpoint_every": 0}
    with pytest.raises(BrokenOffError):
        _fit(**kept, progress=break_off)
    np.testing.assert_array_equal(_fit(**kept).elbo_trace, _fit(swaps=True).elbo_trace)


@pytest.mark.slow
def test_threads_and_the_order_of_rows_change_nothing():
    one, four = _fit(swaps=True, executor=1), _fit(swaps=True, executor=4)
    np.testing.assert_array_equal(one.elbo_trace, four.elbo_trace)
    order = np.random.default_rng(0).permutation(480)
    turned = _model().fit(
        {"x": _data()[order]}, init={"z": _poor()[order]}, swaps=True, uncertainty="mean_field"
    )
    assert turned.elbo == pytest.approx(one.elbo, abs=0.01)


def test_where_they_are_senseless_they_are_refused():
    with pytest.raises(cv.ParameterError, match="without bound"):
        _model().fit({"x": _data()}, swaps=True, point=("weights", "theta"))
    with pytest.raises(cv.ParameterError, match="swaps is True, False or 'auto'"):
        _fit(swaps="often")


def _crowded() -> np.ndarray:
    """Return clusters that overlap, so many that starts seldom find all of them."""
    rng = np.random.default_rng(3)
    labels = rng.choice(16, 800, p=rng.dirichlet(np.full(16, 5.0)))
    centres = 5.0 * rng.normal(size=(16, 2))
    shapes = rng.normal(size=(16, 2, 2)) / np.sqrt(2) + 0.5 * np.eye(2)
    return centres[labels] + np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(800, 2)))


def _looks(monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> tuple[int, cv.Posterior]:
    """Return how often a fit goes through the rows, and the fit."""
    looks = 0

    def counted(method: Any) -> Any:
        def own(self: RowMap, *given: Any, **named: Any) -> Any:
            nonlocal looks
            looks += 1
            return method(self, *given, **named)

        return own

    with monkeypatch.context() as patch:
        for name in ("infer", "by_block", "sum_given"):
            patch.setattr(RowMap, name, counted(getattr(RowMap, name)))
        fit = _model(16).fit({"x": _crowded()}, seed=0, uncertainty="mean_field", **arguments)
    return looks, fit


@pytest.mark.slow
def test_a_fit_of_many_components_swaps_by_default_and_takes_no_more_than_three_times_as_long(monkeypatch):
    (plain, without), (swapping, usual) = _looks(monkeypatch, swaps=False), _looks(monkeypatch)
    assert usual.elbo > without.elbo + 1
    assert plain < swapping < 3 * plain


@pytest.mark.slow
def test_where_no_iteration_is_left_no_swap_is_looked_for(monkeypatch):
    plain, without = _looks(monkeypatch, swaps=False)
    assert _looks(monkeypatch, swaps="auto", max_iter=without.n_iter)[0] == plain
    assert without.converged


def test_a_given_start_and_a_plain_ascent_keep_their_components(monkeypatch):
    for own in ({"init": {"z": np.arange(800) % 16}}, {"accelerate": False})[: amount(1, 2)]:
        assert _looks(monkeypatch, **own)[0] == _looks(monkeypatch, swaps=False, **own)[0]


def test_components_are_merged_that_are_the_likeliest_two_of_some_rows(monkeypatch):
    looked, merges = [], Mixture.merges
    monkeypatch.setattr(Mixture, "merges", lambda own: looked.append((own, found := merges(own))) or found)
    _fit(swaps=True, max_iter=20)
    assert looked
    for mixture, found in looked:
        likeliest = np.sort(np.argsort(-mixture.natural, axis=0)[:2], axis=0).T
        pairs = {(min(own.taken, own.into), max(own.taken, own.into)) for own in found}
        assert pairs <= {tuple(pair) for pair in likeliest.tolist()}
        # each component has another one to go to
        assert {k for pair in pairs for k in pair} == set(range(8))


def test_answers_that_are_all_as_far_from_their_mean_are_cut_across_a_column():
    answers = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]).repeat(3, axis=0)
    cuts = halves(answers, np.ones(12), 2)
    assert all(cut.sum() == 6 for cut in cuts)
    assert cuts


def test_components_that_share_a_precision_are_fitted_where_halves_take_all_squares():
    """Halves of all components are found at once, and take rows more than once: their precision may be improper."""
    rows = np.random.default_rng(0).normal(size=(8, 2))
    mixture = cv.BayesianGaussianMixture(8, covariance_type="tied", random_state=0).fit(rows)
    assert mixture.converged_
    assert (np.diff(mixture.elbo_trace_) >= -1e-12).all()


def test_what_merges_and_cuts_are_worth_is_told_from_features_that_passes_keep(monkeypatch):
    """They take about as many looks at the rows as a fit has passes: features are written once for all of them."""
    filled: list[int] = []
    fill = FeatureTable.fill
    monkeypatch.setattr(FeatureTable, "fill", lambda *given: filled.append(1) or fill(*given))
    _fit(swaps=True, max_iter=20)
    assert 0 < len(filled) <= 20
