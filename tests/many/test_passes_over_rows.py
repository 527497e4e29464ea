"""A pass over the rows of groups: shares and entropies from logits less those of the first category."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import caviar as cv
from caviar.engine.groups import fit
from caviar.engine.groups.rows import GroupedRows
from caviar.engine.local import categorical
from caviar.engine.local.categorical import softmax_beside_first


@pytest.mark.parametrize("n_categories", [2, 3, 5])
@pytest.mark.parametrize("spread", [1.0, 60.0, 400.0, 3000.0])
@pytest.mark.parametrize("n_rows", [1, 7, 50, 200])
@pytest.mark.parametrize("weighted", [False, True])
def test_shares_beside_the_first_are_those_of_a_softmax(n_categories, spread, n_rows, weighted):
    """Of far logits as well, where products of sums would overflow."""
    rng = np.random.default_rng(0)
    logits = spread * rng.normal(size=(3, n_categories, n_rows))
    logits[:, 0] = 0.0
    weights = rng.random(n_rows) if weighted else None
    shares = logits.copy()
    shares[:, 0] = np.nan
    logs = softmax_beside_first(shares, weights)
    expected = logsumexp(logits, axis=1) @ (np.ones(n_rows) if weights is None else weights)
    np.testing.assert_allclose(shares, softmax(logits, axis=1), rtol=1e-11, atol=1e-250)
    np.testing.assert_allclose(logs, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_categories", [2, 4])
@pytest.mark.parametrize("weighted", ["no", "rows", "each"])
def test_far_logits_of_a_group_take_no_care_of_others(n_categories, weighted, monkeypatch):
    """All groups of the block took the careful path with them, which takes an exp for each category."""
    rng = np.random.default_rng(0)
    logits = 5.0 * rng.normal(size=(6, n_categories, 40))
    logits[2] *= 500.0
    logits[4, -1, 7] = -np.inf
    logits[:, 0] = 0.0
    weights = {"no": None, "rows": rng.random(40), "each": rng.random((6, 40))}[weighted]
    careful: list[int] = []
    plain = categorical.softmax_inplace

    def counted(own):
        careful.append(len(own))
        return plain(own)

    monkeypatch.setattr(categorical, "softmax_inplace", counted)
    shares = logits.copy()
    logs = softmax_beside_first(shares, weights)
    expected = np.vecdot(logsumexp(logits, axis=1), np.ones(40) if weights is None else weights)
    np.testing.assert_allclose(shares, softmax(logits, axis=1), rtol=1e-11, atol=1e-250)
    np.testing.assert_allclose(logs, expected, rtol=1e-12)
    assert careful == [2]


@pytest.mark.parametrize("n_categories", [1, 2, 4])
@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("is_out", [False, True])
def test_a_look_has_the_sums_and_entropies_of_each_group(n_categories, is_shared, is_out):
    """Also where the first category is ruled out, or nearly, and where groups lack rows."""
    rng = np.random.default_rng(1)
    counts = np.array([30, 30, 30]) if is_shared else np.array([30, 12, 25])
    features = rng.normal(size=(4, 1 if is_shared else 3, 30))
    features[0] = 1.0
    if not is_shared:
        features *= np.arange(30) < counts[:, None]
    weights = rng.random(30) if is_shared else None
    matrices = rng.normal(size=(3, n_categories, 4))
    if is_out and n_categories > 1:
        matrices[1, 0, 0] = -np.inf if is_shared else -800.0
    rows = GroupedRows.of(features, counts, weights)
    # lanes beyond the end of a vector may multiply an infinity by zero, depending on the processor
    with np.errstate(invalid="ignore"):
        sums, entropies = rows.look(matrices)
        logits = [matrices[group] @ features[:, 0 if is_shared else group] for group in range(3)]
    for group, n_rows in enumerate(counts):
        own = features[:, 0 if is_shared else group, :n_rows]
        shares = softmax(logits[group][:, :n_rows], axis=0)
        each = np.ones(n_rows) if weights is None else weights
        np.testing.assert_allclose(sums[group], shares * each @ own.T, rtol=1e-10, atol=1e-12)
        entropy = -(each * np.where(shares > 0, shares * np.log(np.maximum(shares, 1e-300)), 0)).sum()
        if not is_out:
            np.testing.assert_allclose(entropies[group], entropy, rtol=1e-9, atol=1e-10)


def test_nothing_is_asked_once_all_groups_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question went through all groups: of ten thousand a sixth of the time of a call."""
    asked: list[int] = []
    plain = fit.begin_groups

    def heard(*arguments: Any, **named: Any) -> Any:
        return plain(*arguments, **{**named, "hear": asked.append})

    monkeypatch.setattr(import_module("caviar.fitting.many.fit_many"), "begin_groups", heard)
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(60, 2)) + 6 * (rng.random((60, 1)) < 0.5) for _ in range(12)]
    fits = cv.fit_many(cv.GaussianMixture(2, random_state=0), tables)
    assert fits.is_batched.all()
    assert len(asked) <= 2 + fits.n_iter.max() / 5
