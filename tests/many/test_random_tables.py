"""Random statements of many tables: each fit has the objective of its own posterior, in a batch or by itself."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from starts.sets.statements import Statement

import caviar as cv


def _tables(stated: Statement, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return rows of the data of a statement in other orders, and fewer of them where it does not say how many."""
    tables = []
    for _ in range(4):
        own, table = rng.permutation(stated.n), {}
        if stated.row.size is None and stated.n > 4:
            own = own[: rng.integers(stated.n // 2, stated.n + 1)]
        for name, values in stated.data.items():
            plates = next((node.plates for node in stated.model.nodes if node.name == name), ())
            table[name] = values
            if stated.row in plates:
                table[name] = np.take(values, own, axis=plates.index(stated.row))
        tables.append(table)
    return tables


def _is_fitted(stated: Statement, table: dict[str, Any]) -> bool:
    try:
        stated.model.fit(table, point=stated.settings.get("point", []), seed=0, max_iter=30)
    except cv.CaviarError:
        return False
    return True


def _checked(seed: int, most: int) -> None:
    try:
        stated = Statement(seed)
    except cv.CaviarError:
        return
    if stated.n > most:
        return
    point, rng = stated.settings.get("point", []), np.random.default_rng(seed)
    tables = _tables(stated, rng)
    try:
        fits = cv.fit_many(stated.model, tables, point=point, n_restarts=2, seed=0, max_iter=30)
    except cv.CaviarError:
        # what is refused is so alone, too
        assert not all(_is_fitted(stated, table) for table in tables), stated.said
        return
    for number in np.flatnonzero(fits.is_batched):
        again = stated.model.fit(tables[number], point=point, init=fits[number], max_iter=0)
        assert again.elbo == pytest.approx(fits[number].elbo, rel=1e-6, abs=1e-6), stated.said


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", [105, 107, 109, 112, 115, 138, 140, 156])
def test_fits_of_a_batch_have_the_objective_of_their_posterior(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _checked(seed, 20)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 320, 5))
def test_more_fits_have_the_objective_of_their_posterior(first: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 5):
            _checked(seed, 20)
